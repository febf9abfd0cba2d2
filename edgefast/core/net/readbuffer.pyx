# Read buffer: the worker's one buffer for reads: its bytes are valid during one callback.

cdef class ReadBuffer:
    """The one buffer that every read goes to."""

    def __cinit__(self, Py_ssize_t size):
        self.data = <uint8_t *>malloc(size)
        self.size = size
        if self.data == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass
