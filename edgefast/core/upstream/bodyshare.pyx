# Body share: the share of a cluster's connections that incomplete request bodies may hold (docs/reference/http1.md, "Slow bodies").
#
# In: users with an incomplete request that need a connection. Out: a place, a position in the queue, or neither. Complete requests need no
# place and have all connections beyond the share: slow senders cannot take these, however many they are. When the share is used up, the
# body furthest behind `bodyRate` is evicted for a waiting one; before that none is cut off. Bodies that make progress come before those
# that do not, in the queue and at an eviction. Clients are served in turn. The one with most places, if these are more than
# `bodyClientShare`, loses one to a client with less. A client with thousands of requests therefore waits behind its own. A cluster has one
# while there are such bodies: the two refer to each other, and a worker rarely collects cycles.

cdef class BodyClients(ClientShare):
    cdef int64_t inactive_since(self, object member) except -2:
        """Until when its bytes suffice: the one with fewest is evicted first."""
        cdef UpstreamUser user = <UpstreamUser>member
        return user.trusted_until if user.keeps_waiting() else -1


cdef inline uint32_t share_of(uint32_t connections, uint32_t percent) noexcept:
    """At least one of them, and at least one is left to others where there are two."""
    cdef uint32_t places = <uint32_t>(<uint64_t>connections * percent // 100)
    if places >= connections:
        places = connections if percent >= 100 else connections - 1
    return places or 1


cdef class BodyShare(FairQueue):
    def __cinit__(self, Engine engine, Cluster cluster):
        self.cluster = cluster
        self.places = BodyClients.__new__(BodyClients)
        self.untrusted = EvictionHeap(True)
        self.stopped = EvictionHeap(False)
        self.gatherers = {}

    cdef uint32_t limit(self, HttpSettings settings) noexcept:
        """Places."""
        return share_of(self.cluster.max_connections, settings.body_share)

    cdef uint32_t client_limit(self, HttpSettings settings) noexcept:
        """Places that one client keeps when others wait."""
        return share_of(self.limit(settings), settings.body_client_share)

    cdef bint crowded(self, HttpSettings settings) noexcept:
        """So many are taken that a body has to show some of itself before it gets one."""
        return self.waiting() != 0 or self.places.count * 2 >= self.limit(settings)

    cdef bint has_places(self, HttpSettings settings) noexcept:
        """Somebody gets one without taking it from others."""
        return self.waiting() == 0 and self.places.count < self.limit(settings)

    cdef bint has_room(self, UpstreamUser user) except -1:
        """There is a place for this one; if need be, somebody has just given way."""
        return self.places.count < self.limit(user.settings) or self.evict(user)

    cdef bint has_less(self, object client, HttpSettings settings) except -1:
        """That client has less than one may keep."""
        cdef ClientEntry entry = self.places.entries.get(client)
        return entry is None or entry.count < self.client_limit(settings)

    # --- those that come ---------------------------------------------------------------------------------------------

    cdef bint try_enter(self, UpstreamUser user) except -1:
        """Take a place if that does not go before anybody who waits."""
        if self.waiting():
            self.serve()  # somebody may have fallen behind
        if self.waiting() or not self.has_room(user):
            return False
        self.hold(user)
        return True

    cdef Entry enter(self, UpstreamUser user) except <Entry>-1:
        """Take a place, now or later: then the cluster is asked again on the user's behalf."""
        if self.try_enter(user):
            return SHARE_ENTERED
        if not self.make_room(user, self.cluster.max_pending) and not self.preempt(user):
            return SHARE_FULL
        self.cluster.bodies = self  # whoever was refused may have been the last one
        self.join(user)
        if user.comes():
            self.serve()  # those before it may not
        if self.waiting() and self._slot < 0:
            self.engine.wheel.arm(self, self.engine.wheel.now + SHARE_LOOK_MS)
        return SHARE_WAITS

    cdef bint preempt(self, UpstreamUser user) except -1:
        """For a body that comes one that does not is refused, whoever's it is. False when there is none among SHARE_TURNS."""
        cdef UpstreamUser last
        if not user.comes():
            return False
        for last in self.clients.members_in_turn(SHARE_TURNS):
            if not last.comes():
                self.refuse(last)
                return self.waiting() < self.cluster.max_pending
        return False

    cdef UpstreamUser least_of(self, ClientEntry client):
        """The one who waits longest of those that do not come; if there is none among SHARE_TURNS, the last one."""
        cdef UpstreamUser user
        for user in islice(client.members, SHARE_TURNS):
            if not user.comes():
                return user
        return client.last()

    # --- those that go -----------------------------------------------------------------------------------------------

    cdef int leave(self, UpstreamUser user) except -1:
        FairQueue.leave(self, user)
        return self.end_unused()

    cdef int give_back(self, UpstreamUser user) except -1:
        """The body is complete, or nobody cares any more."""
        user.place = None
        self.places.leave(user)
        if self.waiting():
            self.serve()
        if self.gatherers and not self.dissolving:
            self.dissolving = True
            self.engine.loop.call_soon(self._release)
        return self.end_unused()

    cdef int forget(self, UpstreamUser user) except -1:
        """It gathers no more."""
        self.gatherers.pop(user, None)
        return self.end_unused()

    cdef int end_unused(self) except -1:
        if self.places.count == 0 and self.waiting() == 0 and not self.gatherers:
            self.engine.wheel.disarm(self)
            if self.cluster.bodies is self:
                self.cluster.bodies = None
        return 0

    def _release(self):
        """Those who gather because of a crowd go on when it is none any more."""
        cdef UpstreamUser user
        cdef int most = SHARE_BURST
        self.dissolving = False
        self.engine.wheel.refresh()
        while self.gatherers and most:
            user = next(iter(self.gatherers))
            if self.crowded(user.settings):
                return
            user.share_left()
            if user in self.gatherers:
                return
            most -= 1
        if self.gatherers:
            self.dissolving = True
            self.engine.loop.call_soon(self._release)

    # --- whose turn it is --------------------------------------------------------------------------------------------

    cdef UpstreamUser next_one(self):
        """The next one that comes, of the client whose turn it is; those before it have lost theirs. When none of SHARE_TURNS comes, the
        one behind them."""
        cdef UpstreamUser user, found = None
        cdef list lost = []
        for user in self.clients.members_in_turn(SHARE_TURNS):
            if user.comes():
                found = user
                break
            lost.append(user)
        for user in lost:
            (<ClientEntry>self.clients.owners[user]).members.move_to_end(user)
        return found if found is not None else self.first()

    cdef UpstreamUser next_with_less(self, HttpSettings settings):
        """The next one of a client that has less than one may keep; None: there is none among SHARE_TURNS clients."""
        cdef ClientEntry waiting
        for waiting in islice(self.clients.entries.values(), SHARE_TURNS):
            if self.has_less(waiting.client, settings):
                return waiting.first()
        return None

    cdef int serve(self) except -1:
        """Places for those who wait, in turn."""
        cdef UpstreamUser user
        cdef int most = SHARE_BURST
        if self.serving:
            return 0
        self.serving = True
        try:
            while self.waiting() and most:
                user = self.next_one()
                if not self.has_room(user):
                    user = self.next_with_less(user.settings)
                    if user is None or not self.has_room(user):
                        break
                if user.waits_in is None:  # who gave way has ended it, too
                    continue
                self.hold(user)
                self.serve_one(user)
                self.cluster.acquire(user)
                most -= 1
        finally:
            self.serving = False
        if self.waiting() and most == 0:
            return self.engine.wheel.arm(self, self.engine.wheel.now + TICK_MS)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        """Who waits looks now and then whether somebody gives way."""
        self.serve()
        if self.waiting() and self._slot < 0:
            return self.engine.wheel.arm(self, now + SHARE_LOOK_MS)
        return 0

    cdef bint evict(self, UpstreamUser user) except -1:
        """The one who is furthest behind has to go, or one of the client that has too much, and most; False when there is none."""
        cdef int64_t now = self.engine.wheel.now
        cdef ClientEntry rich
        cdef UpstreamUser last = (self.untrusted if user.comes() else self.stopped).first(now, now)
        if last is None and self.has_less(user.origin(), user.settings):
            rich = self.places.most()
            if rich is not None and rich.count > self.client_limit(user.settings):
                last = self.places.longest_idle(rich, now + NEVER_MS)
        if last is None:
            return False
        self.engine.count(G_BODIES_GAVE_WAY)
        serving, self.serving = self.serving, True  # its place is for who asked
        try:
            last.evict()
        finally:
            self.serving = serving
        return True

    cdef int hold(self, UpstreamUser user) except -1:
        self.places.enter(user.origin(), user)
        self.cluster.bodies = self  # whoever has just given way may have been the last one
        user.place = self
        user.progress_until = user.trusted_until = 0
        user.set_out()
        self.untrusted.add(user, self.places.count)
        self.stopped.add(user, self.places.count)
        return 0
