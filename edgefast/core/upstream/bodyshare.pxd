# Body share: connections of a cluster that incomplete request bodies hold.

cdef class BodyClients(ClientShare):    # members: UpstreamUser that have a place
    pass


cdef enum Entry:
    SHARE_ENTERED = 1   # has a place
    SHARE_WAITS = 2     # stands in the queue
    SHARE_FULL = 3      # and so is the queue


cdef class BodyShare(FairQueue):
    cdef:
        Cluster cluster
        BodyClients places
        EvictionHeap untrusted    # of these, who has to give way to a body that comes
        EvictionHeap stopped      # ... and to one that does not
        dict gatherers      # UpstreamUser that ask nobody while so many hold places; in the order in which they came
        bint serving
        bint dissolving     # _let_go is queued

    cdef uint32_t limit(self, HttpSettings settings) noexcept
    cdef uint32_t client_limit(self, HttpSettings settings) noexcept
    cdef bint crowded(self, HttpSettings settings) noexcept
    cdef bint has_places(self, HttpSettings settings) noexcept
    cdef bint has_room(self, UpstreamUser user) except -1
    cdef bint try_enter(self, UpstreamUser user) except -1
    cdef Entry enter(self, UpstreamUser user) except <Entry>-1
    cdef bint has_less(self, object client, HttpSettings settings) except -1
    cdef bint preempt(self, UpstreamUser user) except -1
    cdef int give_back(self, UpstreamUser user) except -1
    cdef int forget(self, UpstreamUser user) except -1
    cdef int end_unused(self) except -1
    cdef UpstreamUser next_one(self)
    cdef UpstreamUser next_with_less(self, HttpSettings settings)
    cdef int serve(self) except -1
    cdef bint evict(self, UpstreamUser user) except -1
    cdef int hold(self, UpstreamUser user) except -1
