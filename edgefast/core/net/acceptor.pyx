# Acceptor: accepts connections from a listening socket's queue into sessions.
#
# In: a listening descriptor; its owner keeps it. Out: a Session per connection, from `admit`. It accepts one burst per turn, so that no
# listener and no connection waits for another listener's queue. It accepts one in every turn while a client waits for a place: the kernel's
# queue does not separate addresses, so a client waits there behind all others. When descriptors run out, it closes waiting connections with
# the reactor's spare one: an early close is better for a client than a wait. When even that is impossible, the queue rests for a moment.
# Must never spin, and never lose the queue: another process may take over the socket of a stopped acceptor.

cdef class Acceptor(ConnectCallback):
    cdef Session admit(self, const NetAddress *peer):
        """Who serves a connection that was accepted; None: it is closed at once."""
        raise NotImplementedError

    cdef Wire wire(self):
        """What its bytes go through; None: nothing."""
        return None

    cdef int on_accepted(self, Connection connection) except -1:
        """Its wire is to open; on_opened or on_not_opened follows."""
        return 0

    cdef void on_turned_away(self) noexcept:
        """Somebody was closed for want of a descriptor."""

    cdef int listen(self, Reactor reactor, int fd) except -1:
        """Accept on this non-blocking, listening descriptor from now on."""
        cdef int one = 1, ahead = SEND_AHEAD
        cdef sockaddr_storage name
        cdef socklen_t length = sizeof(name)
        self.reactor = reactor
        self.fd = fd
        if getsockname(fd, <sockaddr *>&name, &length) < 0:
            raise OSError(errno, "getsockname")
        self.inet = name.ss_family != AF_UNIX
        if self.inet:  # accepted sockets inherit it
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
            setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &ahead, sizeof(ahead))
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
        if self.turn == self.reactor.turn:
            return 0  # it has had its burst
        self.turn = self.reactor.turn
        if self.take(ACCEPT_BURST) == ACCEPT_BURST:
            self.reactor.again(self)
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
        length = sizeof(name)
        fd = accept4(self.fd, <sockaddr *>&name, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd < 0:
            error = errno
            if error == EAGAIN:
                return TAKEN_NONE
            if error == EMFILE or error == ENFILE or error == ENOMEM or error == ENOBUFS:
                return self.turn_away()
            if (
                error == ECONNABORTED or error == EINTR or error == EPROTO or error == ENOPROTOOPT or error == ENETDOWN
                or error == ENETUNREACH or error == EHOSTDOWN or error == EHOSTUNREACH or error == ENONET
            ):
                return TAKEN_ONE  # the end of the connection that waited (accept(2)); the next one has its turn
            # No socket any more, or a policy of the system forbids it: asked again at once it would say the same.
            if not self.reported:
                self.reported = True
                _log.error("listener: connections cannot be accepted: %s", strerror(error).decode())
            return TAKEN_REST
        self.reported = False
        self.accepted += 1
        try:
            address_read(&name, &peer)
            self.taken = fd
            session = self.admit(&peer)
            if session is None:
                close(fd)
                return TAKEN_ONE
            made = Connection.__new__(Connection)
            made.wire = self.wire()
            if made.wire is not None:
                made.connect_callback = self
                self.on_accepted(made)
        except BaseException:
            close(fd)
            ef_stat_add(self.reactor.cells.faults, 1)
            _log.exception("listener: a connection could not be admitted")
            return TAKEN_ONE
        made.peer = peer
        made.open_by = self.reactor.wheel.now + self.handshake_ms
        made.start(self.reactor, fd, session, None)
        return TAKEN_ONE

    cdef Taken turn_away(self) noexcept:
        """Close one who waits, at the price of the spare descriptor for a moment."""
        cdef Taken taken = TAKEN_ONE
        cdef int fd
        if not self.reactor.restore_spare():
            return TAKEN_REST
        close(self.reactor.spare)
        self.reactor.spare = -1
        fd = accept4(self.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
        if fd >= 0:
            close(fd)
            self.turned_away += 1
            self.on_turned_away()
        else:  # the kernel takes the descriptor before it looks at the queue
            taken = TAKEN_NONE if errno == EAGAIN else TAKEN_REST
        self.reactor.restore_spare()
        return taken

    cdef int pause(self) except -1:
        """Leave the queue alone for a moment."""
        if self.fd < 0:
            return 0
        self.paused = True
        self.reactor.unwatch(self, False)
        return self.reactor.wheel.arm(self, self.reactor.wheel.now + ACCEPT_PAUSE_MS)

    cdef int on_due(self, int64_t now) except -1:
        if self.paused and self.fd >= 0 and not self.reactor.closing:
            try:
                self.reactor.watch(self, EPOLLIN)
            except OSError:  # what was short before may still be
                return self.pause()
            self.paused = False
        return 0

    cdef int detach(self, bint fault) except -1:
        return self.pause() if fault else self.stop()
