# Fair queue: serves client addresses in turn: one user of each address is served before any address gets a second.
#
# In: users, each in one queue at most. Out: the next user; when the queue is full, the refused one: one of the client with most
# (share/client_share.pyx). Many users of one address therefore delay only their own, and cause no refusal of others. Each operation takes
# constant time. Users without an address count as one client.

cdef class FairQueue(Timer):
    def __cinit__(self, Engine engine, *_):
        self.engine = engine
        self.clients = ClientShare.__new__(ClientShare)
        self.clients.ranks_unknown = True

    cdef int join(self, UpstreamUser user) except -1:
        self.clients.enter(user.origin(), user)  # behind the others of its client, a new client behind the others
        self.waiting_tunnels += user.wants_tunnel
        user.waiting = True
        user.waits_in = self
        if user.waits_since == 0:
            user.waits_since = self.engine.wheel.now
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        """It has what it waited for, or waits no more."""
        cdef ClientEntry client = self.clients.owners[user]
        user.waits_in = None
        user.waiting = False
        self.clients.leave(user)
        self.waiting_tunnels -= user.wants_tunnel
        if client is self.most and client.count == 0:
            self.most = None
        return 0

    cdef UpstreamUser first(self):
        """Whose turn it is; there is somebody."""
        cdef ClientEntry client
        for client in self.clients.entries.values():
            if client is not self.most:
                return client.first()
        return self.most.first()

    cdef UpstreamUser first_without_tunnel(self):
        """The same among those that ask for no tunnel; None: all others do. A look at each of those in front of it."""
        cdef ClientEntry client
        cdef UpstreamUser user
        if self.waiting_tunnels == self.waiting():
            return None
        for client in self.clients.entries.values():
            for user in client.members:
                if not user.wants_tunnel:
                    return user
        return None

    cdef UpstreamUser serve_one(self, UpstreamUser user):
        """It was its turn: it waits no more, and the others' turns come before the next of its client."""
        cdef ClientEntry client = self.clients.owners[user]
        user.stop_waiting()
        self.clients.pass_turn(client)
        return user

    cdef bint make_room(self, UpstreamUser user, uint32_t most) except -1:
        """There is room for one more among at most so many; if need be, one of the client with most was refused, if the user's own has less."""
        cdef ClientEntry client
        if self.waiting() < most:
            return True
        client = self.clients.client_to_evict(user.origin(), 1)
        if client is None:
            return False
        self.refuse(self.least_of(client))
        return self.waiting() < most  # who was refused may have asked again

    cdef UpstreamUser least_of(self, ClientEntry client):
        """Who of it is refused first."""
        return client.last()

    cdef int refuse(self, UpstreamUser user) except -1:
        user.stop_waiting()
        self.engine.count(G_PENDING_REFUSED)
        self.engine.count(G_PENDING_GAVE_WAY)
        return user.on_up_failed(UP_OVERFLOW)


cdef class PoolQueue(FairQueue):
    cdef int join(self, UpstreamUser user) except -1:
        FairQueue.join(self, user)
        if self.reserved:
            self.reserved = False
        else:
            self.own[EF_SHARE_PENDING] += 1
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        self.own[EF_SHARE_PENDING] -= 1
        return FairQueue.leave(self, user)
