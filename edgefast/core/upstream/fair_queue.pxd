# Fair queue: users that wait, with their clients served in turn.

cdef class FairQueue(Timer):    # for queues whose users wait until somebody falls behind (BodyShare)
    cdef:
        Engine engine
        ClientShare clients     # UpstreamUsers that wait, by UpstreamUser.origin()
        ClientEntry most        # the client with most of what is waited for: served after others; None: none
        uint32_t waiting_tunnels  # users that ask for a tunnel

    cdef inline uint32_t waiting(self) noexcept:
        """Users, of all clients."""
        return self.clients.count

    cdef int join(self, UpstreamUser user) except -1
    cdef int leave(self, UpstreamUser user) except -1
    cdef UpstreamUser first(self)
    cdef UpstreamUser first_without_tunnel(self)
    cdef UpstreamUser serve_one(self, UpstreamUser user)
    cdef bint make_room(self, UpstreamUser user, uint32_t most) except -1
    cdef UpstreamUser least_of(self, ClientEntry client)
    cdef int refuse(self, UpstreamUser user) except -1


cdef class PoolQueue(FairQueue):    # who waits for any connection of a pool
    cdef:
        uint32_t *own       # where they are counted, EF_SHARE_PENDING
        bint reserved       # the next one is counted already
