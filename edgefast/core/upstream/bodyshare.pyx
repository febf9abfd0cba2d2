# The share of a cluster's connections that request bodies may hold while they are still coming (docs/http1.md, "Slow bodies").
#
# In: users whose request is not complete, as they ask for a connection. Out: a place, or a place in the queue, or neither. Requests that
# are complete need no place, and what the share leaves is theirs: whoever sends slowly, and however many do, cannot take it. When the
# share is used up, whoever fell furthest behind `bodyRate` gives way to whoever waits; while there is room nobody is ever cut off. Bodies
# that come go before those that do not: in the queue, and where somebody has to give way. Clients (BodyClient) have turns, and one that
# holds more than `bodyClientShare` gives way to one that holds less: who comes in thousands waits behind its own.
# A cluster has one while there are such bodies: the two hold each other, and a worker hardly ever looks for cycles.

cdef inline uint32_t share_of(uint32_t connections, uint32_t percent) noexcept:
    """At least one of them, and at least one is left to others where there are two."""
    cdef uint32_t places = <uint32_t>(<uint64_t>connections * percent // 100)
    if places >= connections:
        places = connections if percent >= 100 else connections - 1
    return places or 1


cdef class BodyShare:
    def __cinit__(self, Engine engine, Cluster cluster):
        self.engine = engine
        self.cluster = cluster
        self.holders = set()
        self.clients = {}
        self.turns = OrderedDict()
        self.gatherers = {}

    cdef uint32_t limit(self, HttpSettings settings) noexcept:
        """Places."""
        return share_of(self.cluster.max_connections, settings.body_share)

    cdef uint32_t client_limit(self, HttpSettings settings) noexcept:
        """Places that one client keeps when others wait."""
        return share_of(self.limit(settings), settings.body_client_share)

    cdef bint crowded(self, HttpSettings settings) noexcept:
        """So many are taken that a body has to show some of itself before it gets one."""
        return self.waiting != 0 or <uint32_t>len(self.holders) * 2 >= self.limit(settings)

    cdef bint has_places(self, HttpSettings settings) noexcept:
        """Somebody gets one without taking it from others."""
        return self.waiting == 0 and <uint32_t>len(self.holders) < self.limit(settings)

    cdef bint has_room(self, UpstreamUser user) except -1:
        """There is a place for this one; if need be, somebody has just given way."""
        return <uint32_t>len(self.holders) < self.limit(user.settings) or self.evict(user)

    # --- clients -----------------------------------------------------------------------------------------------------

    cdef BodyClient client_of(self, UpstreamUser user):
        cdef bytes address = user.origin()
        cdef BodyClient client = self.clients.get(address)
        if client is None:
            client = BodyClient.__new__(BodyClient)
            client.share = self
            client.address = address
            self.clients[address] = client
        return client

    cdef int let_go(self, BodyClient client) except -1:
        """Of one that has nothing any more."""
        if client.places == 0 and client.size() == 0 and self.clients.get(client.address) is client:
            del self.clients[client.address]
        return 0

    cdef bint has_less(self, UpstreamUser user) except -1:
        """Its client has less than one may keep."""
        cdef BodyClient client = self.clients.get(user.origin())
        return client is None or client.places < self.client_limit(user.settings)

    # --- those that come ---------------------------------------------------------------------------------------------

    cdef bint try_enter(self, UpstreamUser user) except -1:
        """Take a place if that does not go before anybody who waits."""
        if self.waiting:
            self.serve()  # somebody may have fallen behind
        if self.waiting or not self.has_room(user):
            return False
        self.hold(user)
        return True

    cdef Entry enter(self, UpstreamUser user) except <Entry>-1:
        """Take a place, now or later: then the cluster is asked again on the user's behalf."""
        cdef BodyClient client
        if self.try_enter(user):
            return SHARE_ENTERED
        client = self.client_of(user)
        if self.waiting >= self.cluster.max_pending and not self.make_way(user, client):
            self.let_go(client)
            return SHARE_FULL
        client.join(user)
        if user.comes():
            self.serve()  # those before it may not
        return SHARE_WAITS

    cdef bint make_way(self, UpstreamUser user, BodyClient own) except -1:
        """Somebody in the full queue is refused: the last one of the client with most in it, if this one's has less; else, for a body
        that comes, one that does not. False when there is none: SHARE_TURNS are looked at."""
        cdef UpstreamUser last = None
        cdef BodyClient client, most = own
        cdef int looks = SHARE_TURNS
        for client in self.turns:
            if client.size() > most.size():
                most = client
            looks -= 1
            if looks == 0:
                break
        looks = SHARE_TURNS
        if most.size() > own.size() + 1:
            last = most.first_that_stopped(&looks)
            if last is None:
                last = next(reversed(most.users))
        elif user.comes():
            for client in self.turns:
                last = client.first_that_stopped(&looks)
                if last is not None or looks == 0:
                    break
        if last is None:
            return False
        last.stop_waiting()
        self.engine.count(G_PENDING_REFUSED)
        last.on_up_failed(UP_OVERFLOW)
        self.clients[own.address] = own  # whoever was refused may have been the last one of the same client
        self.cluster.bodies = self
        return True

    # --- those that go -----------------------------------------------------------------------------------------------

    cdef int leave(self, UpstreamUser user) except -1:
        """The body is complete, or nobody cares any more."""
        cdef BodyClient client = user.sender
        user.place = None
        user.sender = None
        self.holders.discard(user)
        client.places -= 1
        self.let_go(client)
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
        if not self.holders and self.waiting == 0 and not self.gatherers and self.cluster.bodies is self:
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

    # --- whose turn it is --------------------------------------------------------------------------------------------

    cdef UpstreamUser next_one(self):
        """The next one that comes, of the client whose turn it is; those before it have lost theirs. When none of SHARE_TURNS comes, the
        one behind them."""
        cdef UpstreamUser user, found = None
        cdef BodyClient client
        cdef list lost = []
        cdef int looks = SHARE_TURNS
        for client in self.turns:
            for user in client.users:
                if user.comes():
                    found = user
                    break
                lost.append((client, user))
                looks -= 1
                if looks == 0:
                    break
            if found is not None or looks == 0:
                break
        for client, user in lost:
            client.users.move_to_end(user)
        if found is None:
            client = next(iter(self.turns))
            found = client.first()
        return found

    cdef UpstreamUser next_with_less(self, HttpSettings settings):
        """The next one of a client that has less than one may keep; None: there is none among SHARE_TURNS clients."""
        cdef BodyClient client
        cdef uint32_t limit = self.client_limit(settings)
        cdef int looks = SHARE_TURNS
        for client in self.turns:
            if client.places < limit:
                return client.first()
            looks -= 1
            if looks == 0:
                break
        return None

    cdef int serve(self) except -1:
        """Places for those who wait, in turn."""
        cdef UpstreamUser user
        cdef BodyClient client
        cdef int most = SHARE_BURST
        if self.serving:
            return 0
        self.serving = True
        try:
            while self.waiting and most:
                user = self.next_one()
                if not self.has_room(user):
                    user = self.next_with_less(user.settings)
                    if user is None or not self.has_room(user):
                        break
                if user.line is None:  # who gave way has ended it, too
                    continue
                client = <BodyClient>user.line
                self.hold(user)
                user.stop_waiting()
                if client.size():
                    self.turns.move_to_end(client)
                self.cluster.acquire(user, 0)
                most -= 1
        finally:
            self.serving = False
        return 0

    cdef bint evict(self, UpstreamUser user) except -1:
        """The one who is furthest behind has to go, or of a client that has too much the one who brought least; False when there is none."""
        cdef UpstreamUser one, last = None, rich = None
        cdef int64_t now = self.engine.wheel.now, until, least = 0, poorest = 0
        cdef bint comes = user.comes(), less = now >= self.look_at[2] and self.has_less(user)
        cdef uint32_t limit = self.client_limit(user.settings)
        if now < self.look_at[comes] and not less:
            return False
        for one in self.holders:
            until = one.trusted_until if comes else one.progress_until
            if (last is None or until < least) and one.keeps_waiting():
                last = one
                least = until
            if less and one.sender.places > limit and one.sender.address is not None:
                if (rich is None or one.trusted_until < poorest) and one.keeps_waiting():
                    rich = one
                    poorest = one.trusted_until
        if last is None or least > now:
            # going through all of them for each arrival would be an attack of its own
            self.look_at[comes] = now + SHARE_LOOK_MS if last is None else max(min(least, now + SHARE_LOOK_MS), now + TICK_MS)
            if rich is None:
                if less:
                    self.look_at[2] = now + SHARE_LOOK_MS
                return False
            last = rich
        self.engine.count(G_BODIES_GAVE_WAY)
        serving, self.serving = self.serving, True  # its place is for who asked
        try:
            last.give_way()
        finally:
            self.serving = serving
        return True

    cdef int hold(self, UpstreamUser user) except -1:
        cdef BodyClient client = self.client_of(user)
        self.cluster.bodies = self  # whoever has just given way may have been the last one
        client.places += 1
        user.place = self
        user.sender = client
        user.set_out()
        self.holders.add(user)
        user.placed()
        return 0
