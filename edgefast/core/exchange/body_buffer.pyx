# Body buffer: memory of a worker for bodies that are buffered whole, beyond their bodyStart (docs/reference/http1.md, "Slow bodies").
#
# In: bodies that need more of it, or release theirs. Out: whether they may have it. All bodies together hold at most BODY_GATHER_LIMIT
# bytes. Those of one cluster hold no more than it leaves for all others. A cluster therefore always finds memory that no other cluster can
# take. Without enough memory, stalled bodies are evicted before any request is denied. For a body that makes progress, those that do not
# are evicted (as in bodyshare.pyx); for others, those behind `bodyRate`. Bodies of clusters that hold more than their own part come first,
# then those of the same cluster.
# Must never end a body that makes progress, or one that waits for its backend.

cdef class BodyBuffer:
    def __cinit__(self, Engine engine):
        self.engine = engine
        self.borrowers = {}
        self.late = {}

    cdef bint reserve(self, Exchange ex, size_t more) except -1:
        """This body may hold so many bytes more."""
        cdef Cluster cluster = ex.backend.cluster
        cdef int most = GATHER_BURST
        if more == 0:  # also where its cluster holds more than it would get now
            return True
        while not self.has_room(cluster, more):
            if most == 0 or not self.make_room(ex):
                self.engine.count(G_BODIES_NOT_GATHERED)
                return False
            most -= 1
        self.held += more
        cluster.gathered += more
        ex.body.borrowed += more
        self.borrowers[ex] = None
        return True

    cdef bint has_room(self, Cluster cluster, size_t more) noexcept:
        """`more` is at most what one read brings, so that nothing here overflows."""
        return self.held + more <= BODY_GATHER_LIMIT and cluster.gathered + more <= BODY_GATHER_LIMIT - self.held - more

    cdef bint make_room(self, Exchange ex) except -1:
        """Somebody who does not come has given way; False: there is none."""
        cdef Cluster own = ex.backend.cluster, cluster
        cdef Exchange last = None
        cdef int64_t until = self.engine.wheel.now
        if ex.comes():
            until += BODY_GRACE_MS - BODY_PATIENCE_MS
        if self.engine.wheel.now >= self.look_at:
            self.look()
        for cluster in list(self.late):
            if cluster.gathered > own.gathered:
                last = self.find(cluster, until, ex)
                if last is not None:
                    break
        else:
            last = self.find(own, until, ex)
        if last is None:
            return False
        self.engine.count(G_BODIES_GAVE_WAY)
        last.evict()
        return True

    cdef Exchange find(self, Cluster cluster, int64_t until, Exchange requester):
        """The one of the cluster that is furthest behind, if its bytes paid for no time after `until`; never the one that asks."""
        cdef Exchange ex
        cdef object late = self.late.get(cluster)
        while late:
            ex = late[0]
            if ex is not requester and ex.body.borrowed and ex.body.state == BODY_GATHERING and not ex.finished and not ex.comes():
                return late.popleft() if ex.progress_until <= until else None
            late.popleft()  # it has ended, comes again, or has just brought what it asks room for
        self.late.pop(cluster, None)
        return None

    cdef int look(self) except -1:
        """Find all that do not come: once a tick, for going through them at each arrival would be an attack of its own."""
        cdef Exchange ex
        cdef Cluster cluster
        cdef int64_t now = self.engine.wheel.now
        cdef dict rests = {}
        self.look_at = now + TICK_MS
        self.late = {}
        for ex in self.borrowers:
            if ex.body.state == BODY_GATHERING and not ex.finished and not ex.comes():
                (self.late if ex.progress_until <= now else rests).setdefault(ex.backend.cluster, deque()).append(ex)
        for cluster, others in rests.items():
            self.late.setdefault(cluster, deque()).extend(others)
        return 0

    cdef int give_back(self, Exchange ex) except -1:
        """It holds nothing of it any more."""
        cdef Cluster cluster = ex.backend.cluster
        self.held -= ex.body.borrowed
        cluster.gathered -= ex.body.borrowed
        ex.body.borrowed = 0
        del self.borrowers[ex]
        if not self.borrowers:
            self.late = {}
        return 0
