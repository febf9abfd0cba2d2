# A queue in which clients have turns: who waits stands in the line of its own address, and of each line one is served before any has two.
#
# In: users, each in one queue at most. Out: whose turn it is; who is refused when the queue is full: one of the longest line. So however many
# come from one address, and however often they come again, others wait no longer than their own, and are not refused for them. Whatever is
# asked of it costs the same among few and many.

cdef class Turns(Timer):
    def __cinit__(self, Engine engine, *_):
        self.engine = engine
        self.lines = {}
        self.order = OrderedDict()
        self.sizes = Ranks.__new__(Ranks)

    cdef int join(self, UpstreamUser user) except -1:
        cdef bytes address = user.origin()
        cdef Line line = self.lines.get(address)
        if line is None:
            line = Line.__new__(Line)
            line.address = address
            line.turns = self
            self.lines[address] = line
            self.order[line] = None  # behind the others
        line.users[user] = None
        self.sizes.up(line)
        self.waiting += 1
        self.switching += user.switches
        user.waiting = True
        user.line = line
        if user.waits_since == 0:
            user.waits_since = self.engine.wheel.now
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        """It has what it waited for, or waits no more."""
        cdef Line line = user.line
        user.line = None
        user.waiting = False
        del line.users[user]
        self.sizes.down(line)
        self.waiting -= 1
        self.switching -= user.switches
        if line.count == 0:
            if self.most is line:
                self.most = None
            del self.lines[line.address]
            del self.order[line]
        return 0

    cdef UpstreamUser first(self):
        """Whose turn it is; there is somebody."""
        cdef Line line
        for line in self.order:
            if line is not self.most:
                return line.first()
        return self.most.first()

    cdef UpstreamUser first_without_tunnel(self):
        """The same among those that ask for no tunnel; None: all others do. A look at each of those in front of it."""
        cdef Line line
        cdef UpstreamUser user
        if self.switching == self.waiting:
            return None
        for line in self.order:
            for user in line.users:
                if not user.switches:
                    return user
        return None

    cdef int pass_turn(self, Line line) except -1:
        """One of it was served: the others' turns come before its next."""
        if line.count:
            self.order.move_to_end(line)
        return 0

    cdef bint make_room(self, UpstreamUser user, uint32_t most) except -1:
        """There is room for one more among at most so many; if need be, somebody of the longest line was refused, when the user's own is
        shorter."""
        cdef Line own, longest
        if self.waiting < most:
            return True
        longest = <Line>self.sizes.first()
        own = self.lines.get(user.origin())
        if longest is None or longest.count <= 1 + (own.count if own is not None else 0):
            return False
        self.refuse(self.least_of(longest))
        return self.waiting < most  # who was refused may have asked again

    cdef UpstreamUser least_of(self, Line line):
        """Who of it is refused first."""
        return line.last()

    cdef int refuse(self, UpstreamUser user) except -1:
        user.stop_waiting()
        self.engine.count(G_PENDING_REFUSED)
        self.engine.count(G_PENDING_GAVE_WAY)
        return user.on_up_failed(UP_OVERFLOW)


cdef class PoolTurns(Turns):
    cdef int join(self, UpstreamUser user) except -1:
        Turns.join(self, user)
        if self.reserved:
            self.reserved = False
        else:
            self.own[EF_SHARE_PENDING] += 1
        return 0

    cdef int leave(self, UpstreamUser user) except -1:
        self.own[EF_SHARE_PENDING] -= 1
        return Turns.leave(self, user)
