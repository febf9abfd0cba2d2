# The share of a cluster's connections that request bodies may hold while they are still coming (docs/http1.md, "Slow bodies").
#
# In: users whose request is not complete, as they ask for a connection. Out: a place, or a place in the queue, or neither. Requests that
# are complete need no place, and what the share leaves is theirs: whoever sends slowly, and however many do, cannot take it. When the
# share is used up, whoever fell furthest behind `bodyRate` gives way to whoever waits; while there is room nobody is ever cut off.
# A cluster has one while there are such bodies: the two hold each other, and a worker hardly ever looks for cycles.

cdef class BodyShare:
    def __cinit__(self, Engine engine, Cluster cluster):
        self.engine = engine
        self.cluster = cluster
        self.holders = set()
        self.waiting = deque()

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

    cdef bint has_room(self, HttpSettings settings) except -1:
        return <uint32_t>len(self.holders) < self.limit(settings) or self.evict()

    cdef bint try_enter(self, UpstreamUser user) except -1:
        """Take a place if that does not go before anybody who waits."""
        if self.waiting:
            self.serve()  # those that left still stand there
        if self.waiting or not self.has_room(user.settings):
            return False
        self.hold(user)
        return True

    cdef Entry enter(self, UpstreamUser user) except <Entry>-1:
        """Take a place, now or later: then the cluster is asked again on the user's behalf."""
        cdef UpstreamUser other
        if self.try_enter(user):
            return SHARE_ENTERED
        if <uint32_t>len(self.waiting) >= self.cluster.max_pending:
            self.waiting = deque([one for one in self.waiting if is_waiting(one)])
        if <uint32_t>len(self.waiting) >= self.cluster.max_pending:
            return SHARE_FULL
        user.waiting = True
        self.waiting.append((user, user.ticket))
        return SHARE_WAITS

    cdef int leave(self, UpstreamUser user) except -1:
        """The body is complete, or nobody cares any more."""
        user.place = None
        self.holders.discard(user)
        if self.waiting:
            self.serve()
        if not self.holders and not self.waiting and self.cluster.bodies is self:
            self.cluster.bodies = None
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
                one = self.waiting[0]
                user = one[0]
                if is_waiting(one):
                    if not self.has_room(user.settings):
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

    cdef bint evict(self) except -1:
        """The one who is furthest behind has to go; False when nobody is behind."""
        cdef UpstreamUser user, last = None
        cdef int64_t now = self.engine.wheel.now
        if now < self.look_at:
            return False
        for user in self.holders:
            if (last is None or user.progress_until < last.progress_until) and user.keeps_waiting():
                last = user
        if last is None or last.progress_until > now:
            self.look_at = now + SHARE_LOOK_MS  # going through all of them for each arrival would be an attack of its own
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
        user.progress_until = self.engine.wheel.now + BODY_GRACE_MS
        self.holders.add(user)
        user.placed()
        return 0


cdef bint is_waiting(tuple one):
    cdef UpstreamUser user = one[0]
    return user.waiting and user.ticket == <uint32_t>one[1]
