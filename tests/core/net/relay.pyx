# A relay for tests: two sessions, each the other's source, with both ends' half-closes and bounds passed on.

_halves = []


def seen_halves():
    """Those that were made since this was asked last."""
    found = _halves[:]
    _halves.clear()
    return found


cdef class Half(Driven):
    """One side of a relay."""
    cdef:
        Half other
        bint over       # its peer has ended
        readonly size_t most

    def __init__(self):
        _halves.append(self)

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        cdef Half other = self.other
        if other is None:
            return 0
        other.connection.send(data, n)
        if other.connection.out.len > other.most:
            other.most = other.connection.out.len
        if other.connection.write_paused:
            self.connection.pause()
        return n

    cdef int on_writable(self, bint writable) except -1:
        return self.other.connection.resume() if writable and self.other is not None else 0

    cdef int on_eof(self) except -1:
        self.over = True
        if self.other is not None:
            self.other.connection.end_writes()
            if self.other.over:
                self.other.connection.shut(False)
                self.connection.shut(False)
        return 0

    cdef int on_lost(self) except -1:
        cdef Half other = self.other
        Driven.on_lost(self)
        self.other = None
        if other is not None:
            other.other = None
            other.connection.shut(self.connection.why != END_CLOSED)
        return 0


cdef class RelayDial(Dial):
    cdef Half up, down

    cdef int on_opened(self, Connection connection) except -1:
        if self.down.connection.closed:
            return connection.shut(True)
        self.up.other = self.down
        self.down.other = self.up
        self.down.connection.resume()
        return self.down.connection.go_on()

    cdef int on_failed(self, End why, int error) except -1:
        return self.down.connection.shut(True)


cdef int relay(Reactor reactor, Half down, tuple to) except -1:
    """Pass on what comes from a client that is being admitted."""
    cdef RelayDial dial = RelayDial()
    down.deaf = True
    dial.down = down
    dial.up = Half()
    return dial.begin(reactor, to[0], to[1], dial.up, 10000)
