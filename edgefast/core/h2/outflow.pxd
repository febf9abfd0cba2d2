# Outflow: the unsent data of an HTTP/2 stream, on either side.

cdef struct H2Outflow:
    void *stream            # whose it is: H2Stream or H2Call; nghttp2 knows streams by this struct, which lies in them
    ByteQueue queue         # bytes of a body that the peer has not taken
    Out trailers            # fields behind them
    bint ended              # nothing comes behind what is in the queue
    bint deferred           # nghttp2 is to be told when there is more of it
