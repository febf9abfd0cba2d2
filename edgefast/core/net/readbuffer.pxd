# The one buffer that every read goes to.

cdef class ReadBuffer:
    cdef:
        uint8_t *data
        Py_ssize_t size
