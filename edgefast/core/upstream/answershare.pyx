# Answer share: the share of a cluster's connections that answers may hold while their clients read slowly (docs/reference/http1.md, "Slow
# readers").
#
# In: exchanges with a client that reads no more for now; users that wait for a connection.
# Out: connections for these, taken from slow readers: those behind `answerRate`, and above the share, those that read least. While no user
# waits for a connection, nothing is checked and nothing is cut off. The bytes that a client reads are those that its kernel acknowledges: a
# queue that empties by steps shows little of a slow network. A cluster has one while there are such answers (as in bodyshare.pyx).
# Clients do not count here: a slow reader ends for any request that waits. FairShareEviction counts the slow readers of each client.

cdef class AnswerShare(Timer):
    def __cinit__(self, Engine engine, Cluster cluster):
        self.engine = engine
        self.cluster = cluster
        self.holders = set()
        self.late = deque()
        self.fresh = deque()

    cdef uint32_t limit(self, HttpSettings settings) noexcept:
        """Answers that keep their connection when others wait: a share of what request bodies leave."""
        cdef uint32_t bodies = self.cluster.bodies.places.count if self.cluster.bodies is not None else 0
        return share_of(self.cluster.max_connections - min(bodies, self.cluster.max_connections), settings.answer_share)

    cdef int hold(self, Exchange user) except -1:
        """From now on it is the client that is waited for."""
        user.slow = self
        # Whoever waits here again has not lost what its reading paid for.
        user.reads_until = max(user.reads_until, self.engine.wheel.now + BODY_PATIENCE_MS)
        user.slow_at = self.engine.wheel.now
        user.slow_left = user.untaken = user.down.untaken()
        self.cluster.answers = self
        self.holders.add(user)
        if self.watching:
            self.fresh.append((user.reads_until, user))
        return self.make_room() if self.watching or self.cluster.pending.waiting() else 0

    cdef int leave(self, Exchange user) except -1:
        """Its client reads again, or it has ended."""
        if self.watching and user.down is not None:
            self.credit(user)
        user.slow = None
        self.holders.discard(user)
        return self.end_unused()

    cdef int end_unused(self) except -1:
        if not self.holders and not self.serving and self.cluster.answers is self:
            self.engine.wheel.disarm(self)
            self.cluster.answers = None
        return 0

    cdef void connection_lost(self) noexcept:
        if self.leaving:
            self.leaving -= 1

    cdef int make_room(self) except -1:
        """Somebody waits for a connection."""
        cdef Cluster cluster = self.cluster
        cdef Exchange user
        cdef int most = SHARE_BURST
        if self.serving or cluster.own[EF_SHARE_CONNECTIONS] < crowded_at(cluster):
            return 0
        self.serving = True
        try:
            if not self.watching or self.engine.wheel.now >= self.look_at:
                self.look()
            while most and cluster.pending.waiting() > self.leaving:
                user = self.next_one()
                if user is None:
                    break
                self.engine.count(G_ANSWERS_GAVE_WAY)
                self.leaving += 1
                user.cut_answer()
                most -= 1
        finally:
            self.serving = False
        if self.holders:
            return self.engine.wheel.arm(self, self.engine.wheel.now + (TICK_MS if most == 0 else SHARE_LOOK_MS))
        return self.end_unused()

    cdef int on_deadline(self, int64_t now) except -1:
        if self.cluster.pending.waiting():
            self.make_room()
            return self.engine.wheel.arm(self, now + SHARE_LOOK_MS) if self.holders and self.deadline <= now else 0
        self.watching = False
        self.leaving = 0
        self.late.clear()
        self.fresh.clear()
        return 0

    cdef Exchange next_one(self):
        """Who has to give way; None: nobody."""
        cdef Exchange user
        cdef int64_t until
        while self.late or self.fresh:
            queue = self.late if not self.fresh or (self.late and self.late[0][0] <= self.fresh[0][0]) else self.fresh
            until, user = queue[0]
            if user.slow is self and user.reads_until == until:
                if until > self.engine.wheel.now and <uint32_t>len(self.holders) <= self.limit(user.settings):
                    return None
                queue.popleft()
                return user
            queue.popleft()  # it reads again, or has ended
        return None

    cdef int credit(self, Exchange user) except -1:
        """What its client took since the last time pays for some time, at most for BODY_GRACE_MS. One system call."""
        cdef int64_t now = self.engine.wheel.now
        cdef size_t untaken = user.down.untaken()
        if untaken < user.untaken:
            user.reads_until = min(
                max(user.reads_until, now) + <int64_t>((user.untaken - untaken) * 1000 // user.settings.answer_rate), now + BODY_GRACE_MS
            )
        user.untaken = untaken
        return 0

    cdef int look(self) except -1:
        """All of them are told apart by what their clients took; so now and then."""
        cdef Exchange user
        cdef int64_t now = self.engine.wheel.now
        cdef list found = []
        cdef int number = 0
        for user in self.holders:
            self.credit(user)
            number += 1
            found.append((user.reads_until, number, user))  # the number: users have no order
        found.sort()
        self.late = deque([(one[0], one[2]) for one in found])
        self.fresh.clear()
        self.watching = True
        self.look_at = now + SHARE_LOOK_MS
        return 0
