# What a stream of HTTP/2 has still to send, whichever side it is on.

cdef struct H2Outflow:
    void *stream            # whose it is: H2Stream or H2Call; nghttp2 knows streams by this struct, which lies in them
    ByteQueue queue         # bytes of a body that the peer has not taken
    Out trailers            # fields behind them
    bint ended              # nothing comes behind what is in the queue
    bint deferred           # nghttp2 is to be told when there is more of it
