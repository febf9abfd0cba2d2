# A growing buffer of bytes.

cdef struct Out:
    uint8_t *data
    size_t size, cap
