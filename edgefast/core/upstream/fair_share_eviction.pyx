# Fair share eviction: evicts slow exchanges of the client with most of a cluster's connections while other clients wait
# (docs/reference/http1.md, "Crowds").
#
# In: a cluster without free connections and with waiting users.
# Out: connections of the client address with most slow exchanges, the slowest first, for clients that hold at most half as many. An
# exchange is slow if its client sent or read less than EVICTION_RATE times `bodyRate` or `answerRate`. The rate counts from the time since
# when the exchange waits for its client, at least EVICTION_GRACE_MS ago. A client with few connections therefore waits for these and
# SHARE_LOOK_MS at most, however well each of a crowd keeps to the rates.
# Must never end an exchange that waits for its backend or progresses well, or one of an unidentified client. Such a client is behind a
# trusted proxy that names no client. It also never acts among users of one address. A cluster has one while users wait (as in
# bodyshare.pyx); it looks at all that may be slow, four times a second.

def _slow_rate(UpstreamUser user):
    return user.slow_rate()


cdef class FairShareEviction(Timer):
    def __cinit__(self, Engine engine, Cluster cluster):
        self.engine = engine
        self.cluster = cluster

    cdef int on_deadline(self, int64_t now) except -1:
        cdef FairShareEviction held = self  # it may be nobody else's when nobody waits
        cdef Cluster cluster = self.cluster
        cdef int gone
        cluster.pending.most = None
        if cluster.pending.waiting() == 0:
            if cluster.fair_share_eviction is held:
                cluster.fair_share_eviction = None
            return 0
        gone = self.make_room()
        return self.engine.wheel.arm(self, self.engine.wheel.now + (TICK_MS if gone == SHARE_BURST or cluster.pending.most is not None and gone else SHARE_LOOK_MS))

    cdef int make_room(self) except -1:
        """Returns how many gave way."""
        cdef Cluster cluster = self.cluster
        cdef UpstreamUser user
        cdef ClientShare slow
        cdef ClientEntry most
        cdef uint32_t left, keeps = crowded_at(cluster) // EVICTION_PART
        cdef int gone = 0
        if cluster.own[EF_SHARE_CONNECTIONS] < crowded_at(cluster):
            return 0
        if cluster.streams is not None:
            gone = cut_lasting(cluster)
        if gone or (cluster.bodies is None and cluster.answers is None):
            return gone
        slow = self.find_slow()
        most = slow.most()
        if most is None or most.count <= keeps:
            return 0
        left = min(self.count_others(slow), most.count - keeps, <uint32_t>SHARE_BURST)
        if left == 0:
            return 0
        cluster.pending.most = cluster.pending.clients.entries.get(most.client)
        for user in sorted(most.members, key=_slow_rate)[:left]:
            gone += user.yield_connection()
        return gone

    cdef ClientShare find_slow(self):
        """Users that are slow, by client."""
        cdef UpstreamUser user
        cdef ClientShare slow = ClientShare.__new__(ClientShare)
        cdef BodyShare bodies = self.cluster.bodies
        cdef AnswerShare answers = self.cluster.answers
        for holders in (bodies.places.owners if bodies is not None else (), answers.holders if answers is not None else ()):
            for user in holders:
                if user.slow_rate() >= 0:
                    slow.enter(user.origin(), user)
        return slow

    cdef uint32_t count_others(self, ClientShare slow):
        """Users that wait, of clients that hold at most half of what that one does; as far as SHARE_TURNS clients tell."""
        cdef ClientEntry waiting
        cdef uint32_t others = 0
        for waiting in islice(self.cluster.pending.clients.entries.values(), SHARE_TURNS):
            if slow.held(waiting.client) * 2 <= slow.top:
                others += waiting.count
        return others
