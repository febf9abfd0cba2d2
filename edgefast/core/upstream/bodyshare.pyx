# The share of a cluster's connections that request bodies may hold while they are still coming (docs/http1.md, "Slow bodies").
#
# In: users whose request is not complete, as they ask for a connection. Out: a place, or a place in the queue, or neither. Requests that
# are complete need no place, and what the share leaves is theirs: whoever sends slowly, and however many do, cannot take it. When the
# share is used up, whoever fell furthest behind `bodyRate` gives way to whoever waits; while there is room nobody is ever cut off. Bodies
# that come go before those that do not: in the queue, and where somebody has to give way.
# A cluster has one while there are such bodies: the two hold each other, and a worker hardly ever looks for cycles.

cdef class BodyShare:
    def __cinit__(self, Engine engine, Cluster cluster):
        self.engine = engine
        self.cluster = cluster
        self.holders = set()
        self.waiting = deque()
        self.gatherers = {}

    cdef uint32_t limit(self, HttpSettings settings) noexcept:
        """Places; at least one, and at least one connection is left to others where there are two."""
        cdef uint32_t most = self.cluster.max_connections
        cdef uint32_t places = <uint32_t>(<uint64_t>most * settings.body_share // 100)
        if places >= most:
            places = most if settings.body_share >= 100 else most - 1
        return places or 1

    cdef bint crowded(self, HttpSettings settings) noexcept:
        """So many are taken that a body has to show some of itself before it gets one."""
        return self.waiting or <uint32_t>len(self.holders) * 2 >= self.limit(settings)

    cdef bint has_places(self, HttpSettings settings) noexcept:
        """Somebody gets one without taking it from others."""
        return not self.waiting and <uint32_t>len(self.holders) < self.limit(settings)

    cdef bint has_room(self, UpstreamUser user) except -1:
        """There is a place for this one; if need be, somebody has just given way."""
        return <uint32_t>len(self.holders) < self.limit(user.settings) or self.evict(user.comes())

    cdef bint try_enter(self, UpstreamUser user) except -1:
        """Take a place if that does not go before anybody who waits."""
        if self.waiting:
            self.serve()  # those that left still stand there
        if self.waiting or not self.has_room(user):
            return False
        self.hold(user)
        return True

    cdef Entry enter(self, UpstreamUser user) except <Entry>-1:
        """Take a place, now or later: then the cluster is asked again on the user's behalf."""
        if self.try_enter(user):
            return SHARE_ENTERED
        if <uint32_t>len(self.waiting) >= self.cluster.max_pending:
            self.waiting = deque([one for one in self.waiting if is_waiting(one)])
        if <uint32_t>len(self.waiting) >= self.cluster.max_pending and not (user.comes() and self.make_way()):
            return SHARE_FULL
        user.waiting = True
        self.waiting.append((user, user.ticket))
        if user.comes():
            self.serve()  # those before it may not
        return SHARE_WAITS

    cdef bint make_way(self) except -1:
        """The first in the full queue that does not come is refused; False when all come."""
        cdef UpstreamUser user
        for one in self.waiting:
            user = one[0]
            if is_waiting(one) and not user.comes():
                self.waiting.remove(one)
                user.waiting = False
                self.engine.count(G_PENDING_REFUSED)
                user.on_up_failed(UP_OVERFLOW)
                return True
        return False

    cdef int leave(self, UpstreamUser user) except -1:
        """The body is complete, or nobody cares any more."""
        user.place = None
        self.holders.discard(user)
        if self.waiting:
            self.serve()
        if self.gatherers and not self.dissolving:
            self.dissolving = True
            self.engine.loop.call_soon(self._let_go)
        return self.end_unused()

    cdef int forget(self, UpstreamUser user) except -1:
        """It gathers no more."""
        self.gatherers.pop(user, None)
        return self.end_unused()

    cdef int end_unused(self) except -1:
        if not self.holders and not self.waiting and not self.gatherers and self.cluster.bodies is self:
            self.cluster.bodies = None
        return 0

    def _let_go(self):
        """Those who gather because of a crowd go on when it is none any more."""
        cdef UpstreamUser user
        cdef int most = SHARE_BURST
        self.dissolving = False
        self.engine.wheel.refresh()
        while self.gatherers and most:
            user = next(iter(self.gatherers))
            if self.crowded(user.settings):
                return
            user.crowd_left()
            if user in self.gatherers:
                return
            most -= 1
        if self.gatherers:
            self.dissolving = True
            self.engine.loop.call_soon(self._let_go)

    cdef int turn(self) except -1:
        """The next one that comes goes to the head of the queue: those before it have lost their turn."""
        cdef UpstreamUser user
        cdef int n = 0
        for one in self.waiting:
            user = one[0]
            if user.comes() or n == SHARE_TURNS:
                self.waiting.rotate(-n)
                return 0
            n += 1
        return 0

    cdef int serve(self) except -1:
        """Places for those who wait, in turn."""
        cdef UpstreamUser user
        cdef int most = SHARE_BURST
        if self.serving:
            return 0
        self.serving = True
        try:
            while self.waiting and most:
                self.turn()
                one = self.waiting[0]
                user = one[0]
                if is_waiting(one):
                    if not self.has_room(user):
                        break
                    self.hold(user)
                    user.waiting = False
                    self.waiting.popleft()
                    self.cluster.acquire(user, 0)
                    most -= 1
                else:
                    self.waiting.popleft()
        finally:
            self.serving = False
        return 0

    cdef bint evict(self, bint comes) except -1:
        """The one who is furthest behind has to go; False when nobody is behind."""
        cdef UpstreamUser user, last = None
        cdef int64_t now = self.engine.wheel.now, until, least = 0
        if now < self.look_at[comes]:
            return False
        for user in self.holders:
            until = user.trusted_until if comes else user.progress_until
            if (last is None or until < least) and user.keeps_waiting():
                last = user
                least = until
        if last is None or least > now:
            # going through all of them for each arrival would be an attack of its own
            self.look_at[comes] = now + SHARE_LOOK_MS if last is None else max(min(least, now + SHARE_LOOK_MS), now + TICK_MS)
            return False
        self.engine.count(G_BODIES_GAVE_WAY)
        serving, self.serving = self.serving, True  # its place is for who asked
        try:
            last.give_way()
        finally:
            self.serving = serving
        return True

    cdef int hold(self, UpstreamUser user) except -1:
        self.cluster.bodies = self  # whoever has just given way may have been the last one
        user.place = self
        user.set_out()
        self.holders.add(user)
        user.placed()
        return 0


cdef bint is_waiting(tuple one):
    cdef UpstreamUser user = one[0]
    return user.waiting and user.ticket == <uint32_t>one[1]
