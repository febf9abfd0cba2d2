# Gather: one gathered write.

cdef class Gather:
    cdef:
        Engine engine
        Connection to           # whose pieces these are; None: there are none
        iovec pieces[40]        # MAX_IOV, and what closing a chunk and a body adds
        int n
        size_t bytes
        int size_piece          # the piece that will hold the chunk's size line; -1: none open
        size_t chunk_bytes
        uint8_t size_line[20]

    cdef void reset(self) noexcept
    cdef int add(self, Connection to, const void *data, size_t n) except -1
    cdef int add_chunked(self, Connection to, const void *data, size_t n) except -1
    cdef int add_last_chunk(self, Connection to) except -1
    cdef inline int aim(self, Connection to) except -1
    cdef int add_trailers(self, Connection to, const void *lines, size_t n) except -1
    cdef void push(self, const void *data, size_t n) noexcept
    cdef void close_chunk(self) noexcept
    cdef int flush(self, Connection to) except -1
