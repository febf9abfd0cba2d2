# Gather: one gathered write to one client: a head, body pieces and chunk framing, sent together at the end of a read of the backend.
#
# In: pieces that stay readable until flush. Out: one send. Valid during one callback; one per worker. All body pieces of a flush become one
# chunk; its size line is filled in last. An exception between a piece and its flush leaves pieces behind; they never reach another client.

cdef class Gather:
    def __cinit__(self, Engine engine):
        self.engine = engine
        self.size_piece = -1

    cdef void reset(self) noexcept:
        self.to = None
        self.n = 0
        self.bytes = 0
        self.size_piece = -1
        self.chunk_bytes = 0

    cdef inline int aim(self, Connection to) except -1:
        """What follows is for this one."""
        if self.to is not to:
            self.reset()
            self.to = to
        return 0

    cdef int add(self, Connection to, const void *data, size_t n) except -1:
        self.aim(to)
        if self.n >= MAX_IOV:
            self.flush(to)
            self.aim(to)
        self.push(data, n)
        return 0

    cdef int add_chunked(self, Connection to, const void *data, size_t n) except -1:
        self.aim(to)
        if self.n >= MAX_IOV:
            self.flush(to)
            self.aim(to)
        if self.size_piece < 0:
            self.size_piece = self.n
            self.n += 1
        self.chunk_bytes += n
        self.push(data, n)
        return 0

    cdef int add_last_chunk(self, Connection to) except -1:
        self.aim(to)
        self.close_chunk()
        self.push(<const char *>b"0\r\n\r\n", 5)
        return 0

    cdef int add_trailers(self, Connection to, const void *lines, size_t n) except -1:
        """The last chunk, and fields behind it."""
        self.aim(to)
        if self.n >= MAX_IOV:
            self.flush(to)
            self.aim(to)
        self.close_chunk()
        self.push(<const char *>b"0\r\n", 3)
        self.push(lines, n)
        self.push(<const char *>b"\r\n", 2)
        return 0

    cdef inline void push(self, const void *data, size_t n) noexcept:
        self.pieces[self.n].iov_base = <void *>data
        self.pieces[self.n].iov_len = n
        self.n += 1
        self.bytes += n

    cdef void close_chunk(self) noexcept:
        """All body pieces so far become one chunk: fill in its size line, add the end of line."""
        cdef Out line
        if self.size_piece < 0:
            return
        line.data = self.size_line
        line.size = 0
        line.cap = sizeof(self.size_line)
        out_hex(&line, self.chunk_bytes)
        out_raw(&line, <const char *>b"\r\n", 2)
        self.pieces[self.size_piece].iov_base = self.size_line
        self.pieces[self.size_piece].iov_len = line.size
        self.bytes += line.size
        self.push(<const char *>b"\r\n", 2)
        self.size_piece = -1
        self.chunk_bytes = 0

    cdef int flush(self, Connection to) except -1:
        cdef int n
        cdef size_t total
        if self.to is not to:
            return 0
        self.close_chunk()
        n = self.n
        total = self.bytes
        self.reset()
        if n == 0:
            return 0
        self.engine.count_n(G_DOWNSTREAM_BYTES_SENT, total)
        return to.sendv(self.pieces, n, total)
