# Dial: one connect, and its wire's handshake, by one deadline.
#
# In: an address, the session of the new connection. Out: on_opened or on_failed, once, never from within `begin`.
# Must never resolve a name, and never decide whether to connect again: the caller does.

cdef class Dial(ConnectCallback):
    cdef Wire wire(self):
        """What the connection's bytes go through; None: nothing."""
        return None

    cdef int on_failed(self, End why, int error) except -1:
        """There is no connection."""
        raise NotImplementedError

    cdef int begin(self, Reactor reactor, bytes host, int port, Session session, int64_t timeout) except -1:
        """Connect, within so many ms. Port -1: `host` is the path of a unix socket."""
        self.reactor = reactor
        self.session = session
        self.hold()
        if not reactor.in_turn:
            reactor.wheel.refresh()
        self.give_up = reactor.wheel.now + timeout
        try:
            return self.connect_now(host, port)
        except ValueError:
            return self.end(END_OTHER, EINVAL)
        except OSError as error:
            return self.end(end_of(error.errno), error.errno)
        except BaseException:
            reactor.fail(self, "connection: a connect could not be started")
        return 0

    cdef int connect_now(self, bytes host, int port) except -1:
        cdef int one = 1
        socket_name(host, port, &self.to)
        if self.reactor.closing:
            return self.end(END_ABORTED, 0)
        if self.reactor.own_ports is not None and leads_here(self.reactor.own_ports, &self.to, False):
            return self.end(END_REFUSED, EACCES)
        self.fd = socket(self.to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
        if self.fd < 0:
            return self.end(end_of(errno), errno)
        if self.to.address.ss_family != AF_UNIX:
            setsockopt(self.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
        return self.attempt()

    cdef int attempt(self) except -1:
        cdef int error
        cdef int64_t again
        if connect(self.fd, <sockaddr *>&self.to.address, self.to.length) < 0:
            error = errno
            if error == EAGAIN and self.to.address.ss_family == AF_UNIX:  # its queue is full, and nobody tells when it has room
                again = self.reactor.wheel.now + DIAL_RETRY_MS
                return self.reactor.wheel.arm(self, again if again < self.give_up else self.give_up)
            if error != EINPROGRESS:
                return self.end(end_of(error), error)
        self.reactor.watch(self, EPOLLOUT)  # reported at once when it is connected already
        return self.reactor.wheel.arm(self, self.give_up)

    cdef int on_events(self, uint32_t events) except -1:
        cdef int error = 0
        cdef socklen_t size = sizeof(error)
        if getsockopt(self.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0:
            error = errno
        if error:
            return self.end(end_of(error), error)
        self.reactor.wheel.disarm(self)
        return self.on_connected()

    cdef int on_connected(self) except -1:
        """The descriptor is the connection's now, which says whether it could be opened."""
        cdef Connection made = Connection.__new__(Connection)
        cdef Session session = self.session
        made.wire = self.wire()
        made.connect_callback = self
        made.open_by = self.give_up
        address_read(&self.to.address, &made.peer)
        self.session = None
        return made.start(self.reactor, self.fd, session, self)

    cdef int on_not_opened(self, Connection connection) except -1:
        return self.on_failed(connection.why, connection.error)

    cdef int on_due(self, int64_t now) except -1:
        if self.fd < 0:
            return 0
        if now < self.give_up and not self.watched:
            return self.attempt()
        return self.end(END_TIMED_OUT, ETIMEDOUT)

    cdef int end(self, End why, int error) except -1:
        """No connection. Whoever asked hears of it at the end of the turn."""
        if self.why != END_NONE:
            return 0
        self.why = why
        self.error = error
        self.reactor.wheel.disarm(self)
        if self.fd >= 0:
            self.reactor.unwatch(self, True)
            close(self.fd)
            self.fd = -1
        return self.reactor.mark(self)

    cdef int on_turn_end(self) except -1:
        self.session = None
        self.release()
        return self.on_failed(self.why, self.error)

    cdef int detach(self, bint fault) except -1:
        return self.end(END_FAULT if fault else END_ABORTED, 0)
