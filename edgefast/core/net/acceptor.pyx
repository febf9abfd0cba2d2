# The acceptor: connections from a listening socket's queue into sessions.
#
# In: a listening descriptor, which stays its owner's. Out: a Session per connection, from `admit`. A burst per turn, so that no listener
# and no connection waits for another listener's queue. When descriptors run out, those who wait are turned away with the reactor's spare
# one: a client that knows at once is better off than one that waits; when not even that is possible, the queue rests for a moment. Must
# never spin, and never lose the queue: whoever stops an acceptor may pass its socket on.

cdef enum Taken:
    TAKEN_ONE = 1
    TAKEN_NONE = 0      # the queue is empty
    TAKEN_REST = -2     # it cannot be read now


cdef class Acceptor(Opener):
    cdef Session admit(self, const NetAddress *peer):
        """Who serves a connection that was accepted; None: it is closed at once."""
        raise NotImplementedError

    cdef Wire wire(self):
        """What its bytes go through; None: nothing."""
        return None

    cdef void on_turned_away(self) noexcept:
        """Somebody was closed for want of a descriptor."""

    cdef int listen(self, Reactor reactor, int fd) except -1:
        """Accept on this non-blocking, listening descriptor from now on."""
        cdef int one = 1
        cdef sockaddr_storage name
        cdef socklen_t length = sizeof(name)
        self.reactor = reactor
        self.fd = fd
        if getsockname(fd, <sockaddr *>&name, &length) < 0:
            raise OSError(errno, "getsockname")
        self.inet = name.ss_family != AF_UNIX
        if self.inet:  # accepted sockets inherit it
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
        return reactor.watch(self, EPOLLIN)

    cpdef int stop(self) except -1:
        """Accept no more. The descriptor is its owner's again, with all that waits in its queue."""
        if self.fd < 0:
            return 0
        self.reactor.wheel.disarm(self)
        self.reactor.unwatch(self, False)
        self.fd = -1
        self.release()
        return 0

    cdef int on_events(self, uint32_t events) except -1:
        self.take(ACCEPT_BURST)
        return 0

    cpdef int take(self, int most) except -1:
        """Accept what waits, at most so many. Returns how many there were."""
        cdef int taken = 0, result
        if not self.reactor.in_turn:
            self.reactor.wheel.refresh()
        while taken < most and self.fd >= 0:
            result = self.take_one()
            if result == TAKEN_NONE:
                break
            if result == TAKEN_REST:
                self.pause()
                break
            taken += 1
        return taken

    cdef int take_one(self) except -1:
        cdef sockaddr_storage name
        cdef socklen_t length
        cdef NetAddress peer
        cdef Session session
        cdef Connection made
        cdef int fd, error
        while True:
            length = sizeof(name)
            fd = accept4(self.fd, <sockaddr *>&name, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)
            if fd >= 0:
                break
            error = errno
            if error == EAGAIN:
                return TAKEN_NONE
            if error == EMFILE or error == ENFILE or error == ENOMEM or error == ENOBUFS:
                return TAKEN_ONE if self.turn_away() else TAKEN_REST
            if error == EBADF or error == ENOTSOCK or error == EINVAL:
                _log.error("a listening socket is none any more: error %d", error)
                return TAKEN_REST
            # Anything else is the end of the connection that waited (accept(2)); the next one has its turn.
        self.accepted += 1
        try:
            address_read(&name, &peer)
            session = self.admit(&peer)
            if session is None:
                close(fd)
                return TAKEN_ONE
            made = Connection.__new__(Connection)
            made.wire = self.wire()
            if made.wire is not None:
                made.opener = self
        except BaseException:
            close(fd)
            self.reactor.faults += 1
            _log.exception("a connection could not be admitted")
            return TAKEN_ONE
        made.peer = peer
        made.open_by = self.reactor.wheel.now + self.handshake_ms
        made.start(self.reactor, fd, session, None)
        return TAKEN_ONE

    cdef bint turn_away(self) noexcept:
        """Close one who waits, at the price of the spare descriptor for a moment."""
        cdef int fd
        if not self.reactor.restore_spare():
            return False
        close(self.reactor.spare)
        self.reactor.spare = -1
        fd = accept4(self.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd >= 0:
            close(fd)
            self.turned_away += 1
            self.on_turned_away()
        self.reactor.restore_spare()
        return fd >= 0

    cdef int pause(self) except -1:
        """Leave the queue alone for a moment."""
        if self.fd < 0:
            return 0
        self.paused = True
        self.reactor.unwatch(self, False)
        return self.reactor.wheel.arm(self, self.reactor.wheel.now + ACCEPT_PAUSE_MS)

    cdef int on_deadline(self, int64_t now) except -1:
        if self.paused and self.fd >= 0:
            self.paused = False
            self.reactor.watch(self, EPOLLIN)
        return 0

    cdef int let_go(self, bint fault) except -1:
        return self.pause() if fault else self.stop()
