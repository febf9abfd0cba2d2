# Session: the interface between a connection and its protocol. A session writes with the connection's `send` and `sendv`.
#
# A session with one stream at a time (HTTP/1) is its own stream. The interfaces of streams (exchange/inbound.pyx, exchange/outbound.pyx)
# are therefore based on this one. Each of these methods may close the connection. After on_open, on_lost always comes and is the last call,
# after everything else of the turn; connection.why has the reason. A session that raises loses its own connection only.

cdef class Session:
    cdef int on_open(self) except -1:
        """The connection is there: bytes may be sent."""
        return 0

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        """Bytes, valid during the call. Returns how many were consumed: the rest is kept, and comes again with what follows it."""
        raise NotImplementedError

    cdef bint holds_back(self) noexcept:
        """What is kept is not waited for: more need not be read now. Then connection.go_on() or go_on_later() makes it go on."""
        return False

    cdef bint takes_bulk(self) noexcept:
        """A large read can go on at once: nobody's memory has to hold it."""
        return False

    cdef int on_writable(self, bint writable) except -1:
        """The peer takes no more for now, or does again."""
        return 0

    cdef int on_sent(self) except -1:
        """The socket has taken all that waited for it."""
        return 0

    cdef int on_eof(self) except -1:
        """The peer has sent its last byte; it may still read."""
        return self.connection.shut(False)

    cdef int on_hangup(self) except -1:
        """The peer is gone while reading is paused: what it sent before can still be read after `resume`."""
        return 0

    cdef int on_turn_end(self) except -1:
        """Asked for with connection.call_at_turn_end."""
        return 0

    cdef int on_lost(self) except -1:
        """The connection is gone."""
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        """The deadline that was armed for the connection has passed, and it is open."""
        return 0

    cdef int retire(self, object port, bint outdated) except -1:
        """End after a short time if no request is in flight and none comes; with a port, only a connection of that port. `outdated`: the TLS
        rule of the port has changed, so the connection is reset after HttpSettings.tls_drain."""
        return 0

    cdef int stop(self, bint abort) except -1:
        """End at once: with a reset, or only if nothing is in flight."""
        return self.connection.shut(abort)

    cdef int64_t inactive_since(self, bint busy) except -2:
        """ms of the wheel since which no request is in flight, or, if `busy`, since which the request waits for the client; -1: neither."""
        return -1

    cdef int preempt(self) except -1:
        """End, and release the place at once: another client needs it."""
        raise NotImplementedError
