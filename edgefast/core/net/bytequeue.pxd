# Byte queue: bytes that are not sent or not consumed yet.

cdef struct ByteQueue:
    uint8_t *data
    size_t at           # of the first byte that waits
    size_t len
    size_t room
