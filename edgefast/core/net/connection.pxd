# One TCP, TLS or unix connection on a uvloop transport: what Downstream and Upstream share.

cdef class Connection(Timer):
    cdef:
        Engine engine
        object transport
        int fd              # -1: TLS, write through the transport
        bint tls
        size_t buffer_bytes # unsent bytes after which the other side is not read
        size_t unsent       # bytes the transport held when it was looked at last
        int stalls          # looks without progress
        bint closed         # connection_lost was seen, or we closed it
        bint broken         # a write failed; the read side tells the rest
        bint bulk           # the last read filled what it was given: a long body
        bint spilled        # the transport may hold unsent bytes
        bint write_paused   # the transport asked to wait
        bint read_paused
        uint8_t *pending    # bytes received and not yet consumed
        size_t pending_len, pending_cap
        ef_head *partial    # scan state of a head that came in pieces
        Witness witness     # while a body is read

    cdef int attach(self, object transport, bint tls) except -1
    cdef int sendv(self, iovec *iov, int n, size_t total) except -1
    cdef int send(self, const void *data, size_t n) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef int shut(self, bint abort) except -1
    cdef int watch_flush(self) except -1
    cdef bint flushing(self) except -1
    cdef bint has_room(self) noexcept
    cdef int keep(self, const uint8_t *data, size_t n) except -1
    cdef void consume(self, size_t n) noexcept
    cdef void release_memory(self) noexcept
    cdef void keep_witness(self) noexcept
    cdef void drop_witness(self) noexcept
