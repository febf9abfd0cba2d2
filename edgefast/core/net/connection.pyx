# Connection: bytes between a descriptor and a session, with a bound on either side, until its one end.
#
# In: events of the reactor. Out: calls on the session; on_lost is the last, after everything else of the turn. Bytes that the socket does
# not take at once are copied into the out-queue. Above `buffer_bytes` the session must wait. Input that the session does not consume comes
# again, before what follows. Errors are codes. A failed write is only recorded: the read side reports the reason, so that an early answer
# before a reset is not lost. A paused read costs a system call only if input comes.

cdef class Connection(Outgoing):
    def __dealloc__(self):
        self.release_memory()

    # --- life ------------------------------------------------------------------------------------------------------

    cdef int start(self, Reactor reactor, int fd, Session session, Watched before) except -1:
        """Serve an open descriptor, which is ours from here on, whatever happens. before: who has watched it so far, or None."""
        self.reactor = reactor
        self.session = session
        session.connection = self
        self.fd = fd
        self.state = WIRE_OPEN if self.wire is None else WIRE_OPENING
        try:
            if before is None:
                reactor.watch(self, EPOLLIN)
            else:
                reactor.pass_on(before, self)
            if self.state == WIRE_OPENING:
                if self.open_by:
                    reactor.wheel.arm(self, self.open_by)
                return self.on_opening()
            return self.on_opened()
        except OSError as error:  # the kernel watches no more of them
            return self.cut(end_of(error.errno), error.errno)
        except BaseException:
            reactor.fail(self, "connection: a new connection could not be set up")
        return 0

    cdef int on_opening(self) except -1:
        cdef int result = self.wire.open(self.fd)
        if result == WIRE_LOST:
            return self.cut(end_of(self.wire.error) if self.wire.error else END_WIRE, self.wire.error)
        if result == 1:
            self.state = WIRE_OPEN
            self.reactor.wheel.disarm(self)
            self.more = True  # what came behind the handshake may be in the wire already
            self.reactor.mark(self)
            return self.on_opened()
        return self.update()

    cdef int on_opened(self) except -1:
        cdef ConnectCallback connect_callback = self.connect_callback
        self.opened = True
        self.session.on_open()
        if connect_callback is not None and self.state == WIRE_OPEN:
            self.connect_callback = None
            connect_callback.on_opened(self)
        return self.update()

    cdef int cut(self, End why, int error) except -1:
        """The one end: the descriptor goes now, the session hears of it at the end of the turn."""
        if self.state == WIRE_OVER:
            return 0
        self.state = WIRE_OVER
        self.closed = True
        self.why = why
        self.error = error
        self.reactor.wheel.disarm(self)
        if self.fd >= 0:
            if self.body_end == BODY_RUNS or (self.body_end == BODY_GIVEN and self.unsent()):
                self.reset_at_close()
            self.reactor.unwatch(self, True)
            close(self.fd)
            self.fd = -1
        return self.reactor.mark(self)  # memory, too, goes then: the session may be reading it

    cdef int shut(self, bint abort) except -1:
        """Close after what is queued has been sent, as long as the peer takes some of it now and then; or at once, with a reset if
        something came that nobody has read."""
        if self.state == WIRE_OVER or (self.state == WIRE_CLOSING and not abort):
            return 0
        if abort or self.state == WIRE_OPENING:
            return self.cut(END_ABORTED, 0)
        self.state = WIRE_CLOSING
        self.closed = True
        self.reactor.wheel.disarm(self)
        if self.broken or self.out.len == 0:
            self.part()
        if self.state == WIRE_CLOSING:
            self.unsent_before = <size_t>-1
            self.stalls = 0
            self.watch_flush()
        return self.update()

    cdef int reset(self) except -1:
        """Close at once with a reset: the peer does not take it for an orderly end, and may lose unread data."""
        self.reset_at_close()
        return self.shut(True)

    cdef void reset_at_close(self) noexcept:
        cdef linger_t linger
        if self.fd >= 0:
            linger.l_onoff = 1
            linger.l_linger = 0
            setsockopt(self.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger))

    cdef int part(self) except -1:
        """Everything is sent: the last word of the wire, and the end, when that is sent, too."""
        if self.wire is not None:
            self.wire.last = False
            if not self.fin_sent and not self.broken and self.wire.end(self.fd) == WIRE_AGAIN:
                return 0
        return self.cut(END_CLOSED, 0)

    cdef int detach(self, bint fault) except -1:
        return self.cut(END_FAULT if fault else END_ABORTED, 0)

    cdef int on_turn_end(self) except -1:
        cdef Session session = self.session
        cdef ConnectCallback connect_callback = self.connect_callback
        if self.state != WIRE_OVER:
            if self.more and not self.read_paused and self.state == WIRE_OPEN:
                self.on_readable()
            if self.again:
                self.again = False
                self.consume_pending()
            if self.calls_session:
                self.calls_session = False
                if self.state == WIRE_OPEN:
                    session.on_turn_end()
            return self.update()
        self.release_memory()
        self.release()
        if session is None:
            return 0
        self.session = None  # the two hold each other
        self.connect_callback = None
        try:
            if self.opened:
                session.on_lost()
        finally:
            self.disarm()
            if connect_callback is not None:
                connect_callback.on_not_opened(self)
            self.wire = None
        return 0

    # --- time ------------------------------------------------------------------------------------------------------

    cdef int arm(self, int64_t ms) except -1:
        """The session's deadline is `ms` from now."""
        return 0 if self.closed else self.reactor.wheel.arm(self, self.reactor.wheel.now + ms)

    cdef void disarm(self) noexcept:
        """The session has no deadline."""
        if self.state != WIRE_CLOSING:
            self.reactor.wheel.disarm(self)

    cdef int on_due(self, int64_t now) except -1:
        cdef Session session = self.session
        if self.state == WIRE_OPEN:
            return session.on_deadline(now)
        if self.state == WIRE_CLOSING:
            return self.watch_flush()
        return self.cut(END_TIMED_OUT, ETIMEDOUT) if self.state == WIRE_OPENING else 0

    cdef int call_at_turn_end(self) except -1:
        self.calls_session = True
        return self.reactor.mark(self)

    # --- events ----------------------------------------------------------------------------------------------------

    cdef int on_events(self, uint32_t events) except -1:
        if self.state == WIRE_OPENING:
            return self.on_opening()
        if self.wire is not None:  # either direction may wait for either event
            if self.unsent() and events & (self.wire.writing | EPOLLERR | EPOLLHUP):
                self.on_writable()
            if self.state == WIRE_OPEN and not self.ended and not self.read_paused and events & (self.wire.reading | EPOLLERR | EPOLLHUP):
                self.on_readable()
        else:  # a hang-up is read up to its end, too: a close before that resets, and loses what the peer has not read yet
            if events & EPOLLOUT and self.out.len:
                self.on_writable()
            if events & (EPOLLIN | EPOLLERR | EPOLLHUP) and self.state == WIRE_OPEN and not self.ended and not self.read_paused:
                self.on_readable()
        if events & (EPOLLERR | EPOLLHUP) and (self.state == WIRE_CLOSING or self.ended or self.read_paused):
            if self.rests:  # it is read up to its end like any other that is not paused
                return self.on_later()
            return self.on_hung_up()
        return self.update()

    cdef int on_readable(self) except -1:
        """One read. More may be there: the next turn has it."""
        cdef uint8_t *data = self.reactor.buffer.data
        cdef size_t room = READ_BUFFER if self.bulk else READ_SMALL
        cdef ssize_t n
        if self.wire is None:
            n = plain_read(self.fd, data, room)
        else:
            n = self.wire.read(self.fd, data, room)
            self.more = self.wire.more
            if self.more:
                self.reactor.mark(self)
        if n > 0:
            return self.hand_on(data, n)
        if n == 0:
            self.ended = True
            if self.broken:  # the failed write has taken the error: whether the peer said its last word, nobody knows
                return self.cut(END_RESET, self.error)
            return self.session.on_eof()
        if n == WIRE_AGAIN:
            return 0
        if self.wire is None:
            return self.cut(end_of(errno), errno)
        return self.cut(end_of(self.wire.error) if self.wire.error else END_WIRE, self.wire.error)

    cdef int on_writable(self) except -1:
        cdef iovec iov
        cdef ssize_t sent
        cdef size_t before = self.unsent()
        iov.iov_base = self.out.data + self.out.at
        iov.iov_len = self.out.len
        sent = self.put(&iov, 1 if self.out.len else 0, self.out.len)
        if sent > 0 or self.unsent() < before:
            self.took_at = self.reactor.wheel.now
        if sent < 0:
            return 0
        queue_take(&self.out, sent)
        if self.unsent() == 0:
            if self.fin:
                self.finish_write()
            if self.state == WIRE_CLOSING:
                return self.part()
        if self.out.len == 0 and self.state == WIRE_OPEN:
            self.session.on_sent()
        if self.write_paused and self.out.len <= self.buffer_bytes // 4:
            self.write_paused = False
            if self.state == WIRE_OPEN:
                return self.session.on_writable(True)
        return 0

    cdef int on_hung_up(self) except -1:
        """Both directions are over while nobody reads: nothing can be sent any more, but there may still be something to read."""
        cdef int error = 0
        cdef socklen_t size = sizeof(error)
        if self.state == WIRE_CLOSING:
            return self.cut(END_RESET, 0)
        if self.state != WIRE_OPEN:
            return 0
        if self.ended:
            getsockopt(self.fd, SOL_SOCKET, SO_ERROR, &error, &size)
            if error or self.unsent():
                return self.cut(end_of(error) if error else END_RESET, error)
            self.reactor.unwatch(self, False)  # both sides have said their last; the session closes
            return 0
        self.reactor.unwatch(self, False)  # or it would be reported again and again; `resume` watches again
        return self.session.on_hangup()

    cdef int update(self) except -1:
        """Ask the kernel for what is wanted now."""
        cdef uint32_t wanted = 0
        if self.state == WIRE_OVER:
            return 0
        if self.state == WIRE_OPENING:
            wanted = self.wire.reading
        else:
            if not self.ended and self.state == WIRE_OPEN:
                if not self.read_paused:
                    wanted = EPOLLIN if self.wire is None else self.wire.reading
            if not self.broken and self.unsent():
                wanted |= EPOLLOUT if self.wire is None else self.wire.writing
        if wanted == self.events and self.watched:
            return 0
        if not self.watched and not wanted:
            return 0
        return self.reactor.change(self, wanted)

    # --- bytes in --------------------------------------------------------------------------------------------------

    cdef int hand_on(self, const uint8_t *data, size_t n) except -1:
        """What has come is for the session, behind what is kept."""
        cdef ssize_t used
        cdef Session session = self.session
        if self.counted != NULL:
            ef_stat_add(self.counted, n)
        self.bulk = n >= READ_SMALL and not self.read_paused and session.takes_bulk()
        if self.pending.len:
            self.keep(data, n)
            if self.state != WIRE_OPEN:
                return 0
            if not self.waits:
                used = session.received(self.pending.data + self.pending.at, self.pending.len)
                if self.state == WIRE_OPEN:
                    queue_take(&self.pending, used)
        else:
            used = session.received(data, n)
            if used < <ssize_t>n and self.state == WIRE_OPEN:
                self.keep(data + used, n - used)
        if self.pending.len >= PIPELINE_LIMIT and self.state == WIRE_OPEN and session.holds_back():
            return self.pause()
        return 0

    cdef int go_on(self) except -1:
        """Give the session what is kept once more, at the end of the turn."""
        self.again = True
        return self.reactor.mark(self)

    cdef int go_on_later(self) except -1:
        """The same in a turn to come, when everybody else has been looked at. What comes meanwhile is kept, too."""
        return self.reactor.later(self)

    cdef int rest(self) except -1:
        """Read on in a turn to come, when everybody else has been looked at: what comes is of no use to anybody."""
        self.rests = True
        self.pause()
        return self.reactor.later(self)

    cdef int on_later(self) except -1:
        if not self.rests:
            return self.consume_pending()
        self.rests = False
        if self.state != WIRE_OPEN or self.ended:
            return 0
        self.read_paused = False  # unless it rests again
        self.on_readable()
        return self.update()

    cdef int consume_pending(self) except -1:
        cdef ssize_t used
        cdef Session session = self.session
        if self.pending.len == 0 or self.state != WIRE_OPEN or self.write_paused:
            return 0
        self.read_paused = False  # unless somebody asks for it again
        used = session.received(self.pending.data + self.pending.at, self.pending.len)
        if self.state != WIRE_OPEN:
            return 0
        queue_take(&self.pending, used)
        if self.pending.len >= PIPELINE_LIMIT and session.holds_back():
            return self.pause()
        if self.more and not self.read_paused:
            self.reactor.mark(self)
        return self.update()

    cdef int pause(self) except -1:
        """Read no more. What comes meanwhile stays with the kernel, which slows the peer down."""
        self.read_paused = True
        return 0

    cdef int resume(self) except -1:
        if not self.read_paused or self.state != WIRE_OPEN:
            return 0
        self.read_paused = False
        if self.more:
            self.reactor.mark(self)
        return self.update()

    cdef int keep(self, const uint8_t *data, size_t n) except -1:
        """Bytes for later, behind what is kept already."""
        cdef iovec iov
        if n == 0:
            return 0
        if self.pending.len + n > PENDING_MOST:
            return self.cut(END_OVERFLOW, 0)
        iov.iov_base = <void *>data
        iov.iov_len = n
        return queue_append(&self.pending, &iov, 1, 0, n, PENDING_BLOCK)

    cdef bint is_quiet(self) noexcept:
        """Nothing has come that nobody has read, not even its end."""
        cdef uint8_t byte
        cdef ssize_t n
        if self.wire is not None:
            return not self.more
        n = recv(self.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)
        return n < 0 and (errno == EAGAIN or errno == EINTR)

    cdef void release_memory(self) noexcept:
        queue_free(&self.pending)
        queue_free(&self.out)

    # --- what is known of it ---------------------------------------------------------------------------------------

    cdef int learn_end(self, bint local, NetAddress *out) except -1:
        """The address of our end, or of the other one."""
        cdef sockaddr_storage name
        cdef socklen_t length = sizeof(name)
        if not local and self.peer.kind != ADDRESS_NONE:
            out[0] = self.peer
            return 0
        memset(out, 0, sizeof(NetAddress))
        if self.fd < 0:
            return 0
        if local and getsockname(self.fd, <sockaddr *>&name, &length) == 0:
            address_read(&name, out)
        elif not local and getpeername(self.fd, <sockaddr *>&name, &length) == 0:
            address_read(&name, out)
        return 0
