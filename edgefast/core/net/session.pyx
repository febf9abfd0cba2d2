# What a connection tells whoever speaks a protocol on it. Bytes in, bytes out: a session writes with the connection's `send` and `sendv`.
#
# A session that carries one stream at a time (HTTP/1) is its own stream, so the contracts of streams (exchange/inbound.pyx,
# exchange/outbound.pyx) stand on this one. None of these is called after on_lost.

cdef class Session:
    cdef int on_open(self) except -1:
        """The connection is there: `wire` is set."""
        raise NotImplementedError

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        """Bytes, valid during the call. Returns how many were consumed: the rest is kept, and comes again with what follows it."""
        raise NotImplementedError

    cdef bint holds_back(self) noexcept:
        """What is kept is not waited for: more need not be read now. Then wire.schedule() makes it go on."""
        return False

    cdef bint takes_bulk(self) noexcept:
        """A large read can go on at once: nobody's memory has to hold it."""
        return False

    cdef int on_writable(self, bint writable) except -1:
        """The peer takes no more for now, or does again."""
        raise NotImplementedError

    cdef int on_eof(self) except -1:
        """No more bytes will come; the connection closes."""
        raise NotImplementedError

    cdef int on_lost(self) except -1:
        """The connection is gone."""
        raise NotImplementedError

    cdef int on_deadline(self, int64_t now) except -1:
        """The deadline that was armed for `wire` has passed, and it is open."""
        raise NotImplementedError

    cdef int retire(self, PortTable port) except -1:
        """End after a short while if nothing is in flight and nothing comes; with a port, only if it is that one's."""
        return 0

    cdef int stop(self, bint abort) except -1:
        """End at once: with a reset, or only if nothing is in flight."""
        raise NotImplementedError
