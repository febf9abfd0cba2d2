# Connections of a cluster that are held for request bodies still to come.

cdef enum Entry:
    SHARE_ENTERED = 1   # has a place
    SHARE_WAITS = 2     # stands in the queue
    SHARE_FULL = 3      # and so is the queue


cdef class BodyShare:
    cdef:
        Engine engine
        Cluster cluster
        set holders         # UpstreamUser that have a place
        dict clients        # address -> BodyClient, of those that hold places or wait
        object turns        # OrderedDict of BodyClient with somebody who waits: whose turn is next
        uint32_t waiting    # users, of all clients
        dict gatherers      # UpstreamUser that ask nobody while so many hold places; in the order in which they came
        int64_t look_at[3]  # ms; before then nobody can be found who has to give way (1: to a body that comes, 2: to a client with less)
        bint serving
        bint dissolving     # _let_go is queued

    cdef uint32_t limit(self, HttpSettings settings) noexcept
    cdef uint32_t client_limit(self, HttpSettings settings) noexcept
    cdef bint crowded(self, HttpSettings settings) noexcept
    cdef bint has_places(self, HttpSettings settings) noexcept
    cdef bint has_room(self, UpstreamUser user) except -1
    cdef bint try_enter(self, UpstreamUser user) except -1
    cdef Entry enter(self, UpstreamUser user) except <Entry>-1
    cdef BodyClient client_of(self, UpstreamUser user)
    cdef int let_go(self, BodyClient client) except -1
    cdef bint has_less(self, UpstreamUser user) except -1
    cdef bint make_way(self, UpstreamUser user, BodyClient own) except -1
    cdef int leave(self, UpstreamUser user) except -1
    cdef int forget(self, UpstreamUser user) except -1
    cdef int end_unused(self) except -1
    cdef UpstreamUser next_one(self)
    cdef UpstreamUser next_with_less(self, HttpSettings settings)
    cdef int serve(self) except -1
    cdef bint evict(self, UpstreamUser user) except -1
    cdef int hold(self, UpstreamUser user) except -1
