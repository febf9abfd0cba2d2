# Bytes that wait: what is not sent yet, what is not consumed yet.

cdef struct ByteQueue:
    uint8_t *data
    size_t at           # of the first byte that waits
    size_t len
    size_t room
