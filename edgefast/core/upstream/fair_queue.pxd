# Fair queue: users that wait, with their clients served in turn.

cdef class FairQueue(Timer):    # for queues whose users wait until somebody falls behind (BodyShare)
    cdef:
        Engine engine
        dict client_queues          # address -> Line, of those in which somebody stands
        object order        # OrderedDict Line -> None: whose turn is next
        Heap sizes         # of lines
        ClientQueue most           # whose client holds most of what is waited for: served after others; None: none
        uint32_t waiting    # users, of all clients
        uint32_t waiting_tunnels  # those of them that ask for a tunnel

    cdef int join(self, UpstreamUser user) except -1
    cdef int leave(self, UpstreamUser user) except -1
    cdef UpstreamUser first(self)
    cdef UpstreamUser first_without_tunnel(self)
    cdef int pass_turn(self, ClientQueue client_queue) except -1
    cdef bint make_room(self, UpstreamUser user, uint32_t most) except -1
    cdef UpstreamUser least_of(self, ClientQueue client_queue)
    cdef int refuse(self, UpstreamUser user) except -1


cdef class PoolQueue(FairQueue):    # who waits for any connection of a pool
    cdef:
        uint32_t *own       # where they are counted, EF_SHARE_PENDING
        bint reserved       # the next one is counted already
