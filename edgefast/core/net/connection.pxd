# One TCP, TLS or unix connection on a uvloop transport, whatever is spoken on it.

cdef class Connection(Timer):
    cdef:
        Engine engine
        Session session     # who speaks on it; None when it is lost
        object transport
        int fd              # -1: TLS, or no socket: write through the transport
        bint tls
        int received_cell   # the counter of bytes that came
        size_t buffer_bytes # unsent bytes after which the other side is not read
        size_t unsent       # bytes the transport held when it was looked at last
        int stalls          # looks without progress
        bint closed         # connection_lost was seen, or we closed it
        bint broken         # a write failed; the read side tells the rest
        bint bulk           # the last read filled what it was given: a long body
        bint spilled        # the transport may hold unsent bytes
        bint write_paused   # the transport asked to wait
        bint read_paused
        bint scheduled      # _go_on is queued
        uint8_t *pending    # bytes received and not yet consumed
        size_t pending_len, pending_cap

    cdef int sendv(self, iovec *iov, int n, size_t total) except -1
    cdef int send(self, const void *data, size_t n) except -1
    cdef int end_writes(self) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef int schedule(self) except -1
    cdef int shut(self, bint abort) except -1
    cdef int watch_flush(self) except -1
    cdef bint flushing(self) except -1
    cdef bint has_room(self) noexcept
    cdef int arm(self, int64_t ms) except -1
    cdef void disarm(self) noexcept
    cdef int keep(self, const uint8_t *data, size_t n) except -1
    cdef void consume(self, size_t n) noexcept
    cdef void release_memory(self) noexcept
