# The pool of a cluster: its connections, who has them, who waits for one.
#
# In: users that need a connection, connections that are free again. Out: a ready Outbound for an UpstreamUser, now or later, or one
# failure. Limits: connections per cluster and worker, waiting users per cluster and worker; nothing waits without a deadline (the
# user's own).

cdef class Pool:
    # --- what a cluster knows --------------------------------------------------------------------------------------------------------

    cdef Endpoint pick(self, uint64_t tried):
        """An endpoint that is not among the tried ones, if there is another; None: there is none."""
        raise NotImplementedError

    cdef bint resolving(self):
        """A name is not resolved yet: there may be endpoints soon."""
        raise NotImplementedError

    # --- connections -----------------------------------------------------------------------------------------------------------------

    cdef int acquire(self, UpstreamUser user, uint64_t tried) except -1:
        """Give the user a connection: on_up_ready or on_up_failed is called, now or later."""
        cdef Endpoint endpoint
        cdef Outbound up
        cdef Entry entry
        user.ticket += 1
        user.chosen = False
        user.stop_waiting()
        if user.streams and user.place is None:
            entry = self.share().enter(user)
            if entry == SHARE_WAITS:
                return 0
            if entry == SHARE_FULL:
                self.engine.count(G_PENDING_REFUSED)
                return user.on_up_failed(UP_OVERFLOW)
        if self.size == 0:
            if self.resolving():
                return self.wait(user)
            return user.on_up_failed(UP_NO_ENDPOINT)
        endpoint = self.pick(tried)
        if endpoint is None:
            return user.on_up_failed(UP_NO_ENDPOINT)
        up = self.checkout(endpoint)
        if up is not None:
            self.load[endpoint.index].active += 1
            user.endpoint = endpoint
            user.chosen = True
            self.engine.count(G_UPSTREAM_REUSES)
            return user.on_up_ready(up)
        if self.connections >= self.max_connections:
            up = self.any_idle()  # of whichever endpoint: waiting beside an idle connection would be absurd
            if up is not None:
                self.load[up.endpoint.index].active += 1
                user.endpoint = up.endpoint
                user.chosen = True
                self.engine.count(G_UPSTREAM_REUSES)
                return user.on_up_ready(up)
            self.wait(user)
            return self.answers.make_room() if self.answers is not None else 0
        return self.dial(user, endpoint)

    cdef int wait(self, UpstreamUser user) except -1:
        """Until there is a connection; when too many do, the client with most of them gives way."""
        if self.pending.make_room(user, self.max_pending):
            self.pending.join(user)
            return self.serve_pending()  # who gave way may have left a connection, too
        self.engine.count(G_PENDING_REFUSED)
        return user.on_up_failed(UP_OVERFLOW)

    cdef UpstreamUser next_pending(self):
        """Whose turn it is, who waits no more; None: nobody does."""
        cdef UpstreamUser user
        cdef Line line
        if self.pending.waiting == 0:
            return None
        user = self.pending.first()
        line = user.line
        user.stop_waiting()
        self.pending.pass_turn(line)
        return user

    cdef Outbound checkout(self, Endpoint endpoint):
        """A living idle connection of the endpoint, the one used last; None when it has none."""
        cdef Outbound up
        while PyList_GET_SIZE(endpoint.idle):
            up = endpoint.idle.pop()
            if not up.is_open():
                continue
            if self.engine.wheel.now - up.idle_since > PEEK_AFTER_MS and not up.is_quiet():
                up.stop(True)
                continue
            return up
        return None

    cdef Outbound any_idle(self):
        cdef Endpoint endpoint
        cdef Outbound up
        for endpoint in self.endpoints:
            if PyList_GET_SIZE(endpoint.idle) and not self.load[endpoint.index].ejected:
                up = self.checkout(endpoint)
                if up is not None:
                    return up
        return None

    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1:
        cdef H1Client up
        cdef PoolDial dial
        user.waiting = True
        user.endpoint = endpoint
        user.chosen = True
        self.load[endpoint.index].active += 1
        self.connections += 1
        self.engine.count(G_UPSTREAM_CONNECTS)
        up = H1Client.__new__(H1Client, self.engine, endpoint)
        dial = PoolDial.__new__(PoolDial)
        dial.pool = self
        dial.endpoint = endpoint
        dial.user = user
        dial.ticket = user.ticket
        dial.up = up
        return dial.begin(self.engine.reactor, endpoint.host.encode(), endpoint.port or -1, up, user.settings.connect_timeout)

    cdef int on_dialed(self, UpstreamUser user, uint32_t ticket, Outbound up) except -1:
        """A new connection: for whom it was made, else for the pool."""
        cdef bint wanted = user.waiting and user.ticket == ticket
        if not up.is_current():
            up.stop(True)
            self.done(up.endpoint)
            if wanted:
                user.waiting = False
                return self.acquire(user, 0)
            return 0
        if wanted:
            user.waiting = False
            return user.on_up_ready(up)
        self.done(up.endpoint)
        return up.park()

    cdef int on_dial_failed(self, UpstreamUser user, uint32_t ticket, Endpoint endpoint, UpFailure why) except -1:
        self.engine.count(G_UPSTREAM_CONNECT_FAILURES)
        endpoint.failed()
        self.done(endpoint)
        if user.waiting and user.ticket == ticket:
            user.waiting = False
            user.on_up_failed(why)
        return self.serve_pending()

    cdef int release(self, Outbound up) except -1:
        """A connection is free again: whose turn it is gets it, else the pool."""
        cdef Endpoint endpoint = up.endpoint
        cdef UpstreamUser user
        if endpoint.index < 0 or not up.is_open():
            up.stop(False)
            return 0
        user = self.next_pending()
        if user is not None:
            user.endpoint = endpoint
            user.chosen = True
            self.load[endpoint.index].active += 1
            return user.on_up_ready(up)
        endpoint.idle.append(up)
        return 0

    cdef int lost(self, Outbound up) except -1:
        self.connections -= 1
        if self.answers is not None:
            self.answers.connection_lost()
        if up.parked:
            up.parked = False
            try:
                up.endpoint.idle.remove(up)
            except ValueError:
                pass
        return self.serve_pending()

    cdef void done(self, Endpoint endpoint) noexcept:
        """A try on this endpoint has ended, however it did."""
        if endpoint.index >= 0 and self.load[endpoint.index].active > 0:
            self.load[endpoint.index].active -= 1

    cdef BodyShare share(self):
        """The share of bodies, made when the first one comes; it goes with the last one."""
        if self.bodies is None:
            self.bodies = BodyShare(self.engine, <Cluster>self)
        return self.bodies

    cdef AnswerShare slow_answers(self):
        """The same of answers."""
        if self.answers is None:
            self.answers = AnswerShare(self.engine, <Cluster>self)
        return self.answers

    cdef int serve_pending(self) except -1:
        while self.pending.waiting and (self.size or not self.resolving()):
            if self.size and self.connections >= self.max_connections:
                return 0
            self.acquire(self.next_pending(), 0)
        return 0
