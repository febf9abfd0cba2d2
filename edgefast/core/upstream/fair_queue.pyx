# Fair queue: serves client addresses in turn: one user of each address is served before any address gets a second.
#
# In: users, each in one queue at most. Out: the next user; when the queue is full, the refused one: one of the longest client queue. Many
# users of one address therefore delay only their own, and cause no refusal of others. Each operation takes constant time.

cdef class FairQueue(Timer):
    def __cinit__(self, Engine engine, *_):
        self.engine = engine
        self.client_queues = {}
        self.order = OrderedDict()
        self.sizes = Heap.__new__(Heap)

    cdef int join(self, UpstreamUser user) except -1:
        cdef bytes address = user.origin()
        cdef ClientQueue client_queue = self.client_queues.get(address)
        if client_queue is None:
            client_queue = ClientQueue.__new__(ClientQueue)
            client_queue.address = address
            client_queue.queue = self
            self.client_queues[address] = client_queue
            self.order[client_queue] = None  # behind the others
        client_queue.users[user] = None
        self.sizes.up(client_queue)
        self.waiting += 1
        self.waiting_tunnels += user.wants_tunnel
        user.waiting = True
        user.client_queue = client_queue
        if user.waits_since == 0:
            user.waits_since = self.engine.wheel.now
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        """It has what it waited for, or waits no more."""
        cdef ClientQueue client_queue = user.client_queue
        user.client_queue = None
        user.waiting = False
        del client_queue.users[user]
        self.sizes.down(client_queue)
        self.waiting -= 1
        self.waiting_tunnels -= user.wants_tunnel
        if client_queue.count == 0:
            if self.most is client_queue:
                self.most = None
            del self.client_queues[client_queue.address]
            del self.order[client_queue]
        return 0

    cdef UpstreamUser first(self):
        """Whose turn it is; there is somebody."""
        cdef ClientQueue client_queue
        for client_queue in self.order:
            if client_queue is not self.most:
                return client_queue.first()
        return self.most.first()

    cdef UpstreamUser first_without_tunnel(self):
        """The same among those that ask for no tunnel; None: all others do. A look at each of those in front of it."""
        cdef ClientQueue client_queue
        cdef UpstreamUser user
        if self.waiting_tunnels == self.waiting:
            return None
        for client_queue in self.order:
            for user in client_queue.users:
                if not user.wants_tunnel:
                    return user
        return None

    cdef int pass_turn(self, ClientQueue client_queue) except -1:
        """One of it was served: the others' turns come before its next."""
        if client_queue.count:
            self.order.move_to_end(client_queue)
        return 0

    cdef bint make_room(self, UpstreamUser user, uint32_t most) except -1:
        """There is room for one more among at most so many; if need be, somebody of the longest line was refused, when the user's own is
        shorter."""
        cdef ClientQueue own, longest
        if self.waiting < most:
            return True
        longest = <ClientQueue>self.sizes.first()
        own = self.client_queues.get(user.origin())
        if longest is None or longest.count <= 1 + (own.count if own is not None else 0):
            return False
        self.refuse(self.least_of(longest))
        return self.waiting < most  # who was refused may have asked again

    cdef UpstreamUser least_of(self, ClientQueue client_queue):
        """Who of it is refused first."""
        return client_queue.last()

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
