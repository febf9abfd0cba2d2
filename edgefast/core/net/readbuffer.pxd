# Read buffer: the one buffer for all reads.

cdef class ReadBuffer:
    cdef:
        uint8_t *data
        Py_ssize_t size
