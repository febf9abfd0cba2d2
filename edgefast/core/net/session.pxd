# Session: the protocol on a connection.

cdef class Session:
    cdef:
        Connection connection   # None until it is made; it stays when it is lost
        Timer leaving           # resets the connection when it expires, with any request in flight; None: no deadline

    cdef int on_open(self) except -1
    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1
    cdef bint holds_back(self) noexcept
    cdef bint takes_bulk(self) noexcept
    cdef int on_writable(self, bint writable) except -1
    cdef int on_sent(self) except -1
    cdef int on_eof(self) except -1
    cdef int on_hangup(self) except -1
    cdef int on_turn_end(self) except -1
    cdef int on_lost(self) except -1
    cdef int on_deadline(self, int64_t now) except -1
    cdef int retire(self, object port, bint outdated) except -1
    cdef int stop(self, bint abort) except -1
    cdef int64_t inactive_since(self, bint busy) except -2
    cdef int preempt(self) except -1
