# Pool: the connections of a cluster, their users, and the waiting users.
#
# In: users that need a connection, released connections. Out: a ready Outbound for an UpstreamUser, now or later, or one failure.
# Limits: connections per cluster and worker, waiting users per cluster and worker; nothing waits without a deadline (the user's own).

cdef UpstreamUser next_seated(DialQueue queue):
    """Whose turn it is, who goes on at once: it keeps its place among the requests of the cluster."""
    queue.served = queue.first()
    try:
        return queue.serve_one(queue.served)
    finally:
        queue.served = None


cdef class Pool(Timer):
    # --- what a cluster knows --------------------------------------------------------------------------------------------------------

    cdef Endpoint pick(self, uint64_t tried, uint8_t health_mask, Balance balance, uint64_t key):
        """An endpoint that is not among the tried ones, if there is another; None: there is none. `key` is of BY_KEY."""
        raise NotImplementedError

    cdef bint resolving(self):
        """A name is not resolved yet: there may be endpoints soon."""
        raise NotImplementedError

    cdef int look(self) except -1:
        """See who is out, and until when the first of them is."""
        raise NotImplementedError

    # --- what comes later ------------------------------------------------------------------------------------------------------------

    cdef int rearm(self) except -1:
        cdef int64_t at = stricter(self.back_at, self.request_at)
        if at:
            return self.engine.wheel.arm(self, at)
        self.engine.wheel.disarm(self)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        try:
            if self.back_at and self.back_at <= now:
                self.look()
            if self.request_at and self.request_at <= now:
                request_connections_again(self)
        finally:
            self.rearm()
        return 0

    # --- connections -----------------------------------------------------------------------------------------------------------------

    cdef int acquire(self, UpstreamUser user) except -1:
        """Give the user a connection, to an endpoint that it has not tried, if there is one: on_up_ready or on_up_failed is called, now or
        later."""
        cdef int why
        user.ticket += 1
        user.chosen = False
        user.stop_waiting()
        if user.probing:
            return user.on_up_failed(UP_OTHERWISE)  # whoever asks how one endpoint is, is given no other
        if user.breaker is None:
            return self.find(user)
        why = user.breaker.admit(self, user)
        if why:
            return self.overflow(user, why)
        try:
            return self.find(user)
        finally:
            user.breaker.settle(self, user)

    cdef int overflow(self, UpstreamUser user, int why) except -1:
        self.engine.count(G_PENDING_REFUSED)
        return user.on_up_failed(<UpFailure>why)

    cdef int find(self, UpstreamUser user) except -1:
        cdef uint8_t health_mask = MASK_EJECTED
        cdef bint moved = False
        cdef Endpoint endpoint
        cdef Outbound up
        cdef Entry entry
        if user.streams and user.place is None:
            entry = self.share().enter(user)
            if entry == SHARE_WAITS:
                return 0
            if entry == SHARE_FULL:
                return self.overflow(user, UP_OVERFLOW)
        if self.size == 0:
            if self.resolving():
                return self.wait(user)
            return user.on_up_failed(UP_NO_ENDPOINT)
        if user.check is not None or user.panic:
            health_mask = effective_mask(<Cluster>self, user.check, user.panic)
        endpoint = choose_endpoint(<Cluster>self, user, health_mask)
        if endpoint is None:
            return user.on_up_failed(UP_NO_ENDPOINT)
        while endpoint is not None:
            up = checkout(self, user, endpoint)
            if up is not None:
                self.engine.count(G_UPSTREAM_REUSES)
                return self.give(user, up)
            if endpoint.coming is not None and may_join(self, endpoint, user):
                return endpoint.coming.queue.join(user)
            if may_connect(self, user, endpoint) or (not moved and make_place(self, user)):
                return self.dial(user, endpoint)
            if moved or user.breaker is None or user.breaker.each < 0:
                break
            moved = True
            endpoint = choose_with_room(<Cluster>self, user, health_mask)
        up = any_free(self, user)  # of whichever endpoint: waiting beside an idle connection would be absurd
        if up is not None:
            self.engine.count(G_UPSTREAM_REUSES)
            return self.give(user, up)
        self.wait(user)
        if self.answers is not None:
            self.answers.make_room()
        return self.share_out()

    cdef int wait(self, UpstreamUser user) except -1:
        """Until there is a connection; when too many do, the client with most of them gives way."""
        cdef uint32_t most = self.max_pending
        if user.breaker is not None:
            user.breaker.settle(self, user)  # it is admitted anew when its turn comes, which may be at once
            most = user.breaker.pending_here(self, most)
            if self.pending.waiting() > most:  # by others' bounds: nobody has to give way for who cannot stay
                return self.overflow(user, UP_OVERFLOW)
        if self.pending.make_room(user, most) and (user.breaker is None or user.breaker.reserve(self)):
            self.pending.join(user)
            if user.breaker is not None and user.breaker.bounds_connections() and self.size:
                request_connections(self, TICK_MS)
            return self.serve_pending()  # who gave way may have left a connection, too
        return self.overflow(user, UP_OVERFLOW)

    cdef int share_out(self) except -1:
        """While somebody waits, a client that holds a large part of what there is may have to give way."""
        if self.pending.waiting() and self.fair_share_eviction is None:
            self.fair_share_eviction = FairShareEviction.__new__(FairShareEviction, self.engine, <Cluster>self)
            return self.fair_share_eviction.on_deadline(self.engine.wheel.now)
        return 0

    cdef int give(self, UpstreamUser user, Outbound up) except -1:
        cdef int why = user.breaker.admit(self, user) if user.breaker is not None and not user.counted else 0
        if why:
            up.drop(CUT_CANCEL)  # others came meanwhile
            return self.overflow(user, why)
        self.begin(user, up.endpoint)
        return user.on_up_ready(up)

    # --- connections that are being made ---------------------------------------------------------------------------------------------

    cdef PoolDial make_dial(self, UpstreamUser user, Endpoint endpoint, bint alone):
        """It is counted already (may_connect). `alone`: it is to be HTTP/1.1, and one user's."""
        cdef PoolDial dial = PoolDial.__new__(PoolDial)
        if (<Cluster>self).health is self.engine.health:
            self.engine.count(G_UPSTREAM_CONNECTS)
        dial.pool = self
        dial.endpoint = endpoint
        dial.outlier = user.outlier
        dial.fresh = ProtocolNegotiation.__new__(ProtocolNegotiation, self.engine, endpoint, user.settings, dial, alone)
        return dial

    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1:
        cdef PoolDial dial
        if self.protocol == SPEAKS_H2 or (self.protocol == SPEAKS_ALPN and endpoint.speaks != SPEAKS_H1 and not user.wants_tunnel):
            self.dial_more(user, endpoint)
            return endpoint.coming.queue.join(user)
        dial = self.make_dial(user, endpoint, self.protocol == SPEAKS_H1 or user.wants_tunnel)
        user.waiting = True
        self.begin(user, endpoint)
        dial.user = user
        dial.ticket = user.ticket
        return dial.begin(self.engine.reactor, endpoint.host.encode(), endpoint.port or -1, dial.fresh, user.connect_timeout or user.settings.connect_timeout)

    cdef int dial_more(self, UpstreamUser user, Endpoint endpoint) except -1:
        """A connection for whoever comes to wait for it."""
        cdef PoolDial dial = self.make_dial(user, endpoint, False)
        dial.queue = DialQueue.__new__(DialQueue, self.engine)
        dial.queue.endpoint = endpoint
        endpoint.coming = dial
        return dial.begin(self.engine.reactor, endpoint.host.encode(), endpoint.port or -1, dial.fresh, user.connect_timeout or user.settings.connect_timeout)

    cdef int on_dialed(self, UpstreamUser user, uint32_t ticket, Outbound up) except -1:
        """A new connection of HTTP/1.1: for whom it was made, else for the pool."""
        cdef bint wanted = user.waiting and user.ticket == ticket
        if not up.is_current():
            up.stop(True)
            if wanted:
                user.waiting = False
                self.keep_place(user, up.endpoint)
                return self.acquire(user)
            self.done(up.endpoint)
            return 0
        if wanted:
            user.waiting = False
            return user.on_up_ready(up)
        self.done(up.endpoint)
        return up.park()

    cdef int on_dialed_by_many(self, PoolDial dial, Outbound up) except -1:
        """The same where it was not known that it would be HTTP/1.1: one has it, and the others need one each."""
        cdef Endpoint endpoint = dial.endpoint
        cdef UpstreamUser user
        endpoint.coming = None
        endpoint.speaks = SPEAKS_H1
        if not up.is_current() or endpoint.index < 0:
            up.stop(True)
        elif dial.queue.waiting():
            user = next_seated(dial.queue)
            self.give(user, up)
        else:
            up.park()
        return self.ask_again(dial.queue)

    cdef int on_shared(self, PoolDial dial, MultiplexedSession session) except -1:
        """A new connection of HTTP/2."""
        cdef Endpoint endpoint = dial.endpoint
        cdef UpstreamUser user
        if endpoint.coming is dial:
            endpoint.coming = None
        endpoint.speaks = SPEAKS_H2
        if endpoint.index < 0:
            session.drain()
        else:
            endpoint.shared.append(session)
        if dial.queue is None:  # of a user that was thought to be alone
            user = dial.user
            if user.waiting and user.ticket == dial.ticket:
                user.waiting = False
                self.keep_place(user, endpoint)
                return self.give(user, open_call(session, user)) if session.takes(user.wants_tunnel) else self.acquire(user)
            self.done(endpoint)
            return 0
        while dial.queue.waiting() and session.takes(False):
            user = next_seated(dial.queue)
            self.give(user, open_call(session, user))
        self.ask_again(dial.queue)
        return self.on_capacity(session)

    cdef int ask_again(self, DialQueue queue) except -1:
        """There is nothing for them here."""
        while queue.waiting():
            self.acquire(next_seated(queue))
        return 0

    cdef int on_capacity(self, MultiplexedSession session) except -1:
        """The longest waiting users get what there is; who asks for a tunnel that this one cannot have stays where it stands."""
        cdef UpstreamUser user
        while self.pending.waiting() and session.endpoint.is_regular() and session.takes(False):
            if self.protocol == SPEAKS_H2 or session.connects:
                user = self.pending.first()
            else:
                user = self.pending.first_without_tunnel()
            if user is None or is_used_up(session, user):
                return 0
            self.give(self.pending.serve_one(user), open_call(session, user))
        return 0

    cdef int on_dial_failed(self, PoolDial dial, UpFailure why) except -1:
        cdef Endpoint endpoint = dial.endpoint
        cdef UpstreamUser user
        if (<Cluster>self).health is self.engine.health:  # else it is asked how it is, and nobody is judged by that
            self.engine.count(G_UPSTREAM_CONNECT_FAILURES)
            if not is_own_fault(dial.error):
                endpoint.failed(dial.outlier, False)
        if endpoint.coming is dial:
            endpoint.coming = None
        if dial.queue is None:
            user = dial.user
            self.done(endpoint)
            if user.waiting and user.ticket == dial.ticket:
                user.waiting = False
                user.on_up_failed(failure_for(user, dial, why))
        else:
            while dial.queue.waiting():
                user = dial.queue.serve_one(dial.queue.first())
                user.on_up_failed(failure_for(user, dial, why))
        return self.serve_pending()

    # --- connections that come back --------------------------------------------------------------------------------------------------

    cdef int release(self, Outbound up) except -1:
        """A connection is free again: whose turn it is gets it, else the pool."""
        cdef Endpoint endpoint = up.endpoint
        cdef UpstreamUser user
        cdef int why
        if not endpoint.is_regular() or not up.is_open() or is_bound_elsewhere(self, endpoint):
            up.stop(False)
            return 0
        if self.release_to >= 0 and release_freed(self, up):
            return 0
        while self.pending.waiting():
            user = self.pending.first()
            if has_carried(user, up.served):
                return up.stop(True)  # and there is room for another one, for whom it waits
            self.pending.serve_one(user)
            why = user.breaker.admit(self, user) if user.breaker is not None else 0
            if why:
                self.overflow(user, why)
                continue
            self.begin(user, endpoint)
            return user.on_up_ready(up)
        endpoint.idle.append(up)
        return 0

    cdef int lost(self, Outbound up) except -1:
        connection_gone(self, up.endpoint)
        if self.answers is not None:
            self.answers.connection_lost()
        if up.parked:
            up.parked = False
            try:
                up.endpoint.idle.remove(up)
            except ValueError:
                pass
        return self.serve_pending()

    cdef int lost_shared(self, MultiplexedSession session) except -1:
        connection_gone(self, session.endpoint)
        if session.retired:
            self.retiring -= 1
        if session.lent:
            self.own[EF_SHARE_LEAVING] -= 1
            self.lent_until = self.engine.wheel.now + 2 * BORROW_MS
        if session in session.endpoint.shared:
            session.endpoint.shared.remove(session)
        return 0

    cdef void begin(self, UpstreamUser user, Endpoint endpoint) noexcept:
        """A try of the user's, on this endpoint."""
        user.endpoint = endpoint
        user.chosen, user.waits_since = True, 0
        if user.counted:
            user.counted = False
            self.load[endpoint.index].active += 1
        else:
            self.count(endpoint)

    cdef void keep_place(self, UpstreamUser user, Endpoint endpoint) noexcept:
        """Its try leaves this endpoint and goes on: where it may be one too many it stays one of the cluster's requests, which it was before
        others came."""
        self.done(endpoint)
        if user.breaker is not None:
            user.counted = True
            self.own[EF_SHARE_REQUESTS] += 1

    cdef void count(self, Endpoint endpoint) noexcept:
        """A try on this endpoint."""
        self.load[endpoint.index].active += 1
        self.own[EF_SHARE_REQUESTS] += 1

    cdef void done(self, Endpoint endpoint) noexcept:
        """A try on this endpoint has ended, however it did."""
        if self.own[EF_SHARE_REQUESTS]:
            self.own[EF_SHARE_REQUESTS] -= 1
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
        """Whoever may have a connection now. Who finds that there is none after all waits again, until there is news."""
        cdef UpstreamUser user
        if self.serving or self.pending.waiting() == 0:
            return 0
        self.serving = True
        try:
            while self.pending.waiting() and (self.size or not self.resolving()):
                user = self.pending.first()
                if self.size and not could_connect(self, user):
                    user = first_connectable(self)
                    if user is None:
                        return 0
                self.acquire(self.pending.serve_one(user))
                if user.waits_in is self.pending:
                    return 0
        finally:
            self.serving = False
        return 0
