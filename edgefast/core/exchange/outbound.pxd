# Outbound: the interface between a request and the stream to its backend.

# Why a user lost its stream (UpstreamUser.on_up_lost).
cdef enum UpLost:
    LOST_RESET = 1      # the peer closed or reset
    LOST_PROTOCOL = 2   # the response was refused
    LOST_SWITCHED = 3   # the peer switched to a protocol that nobody asked for


cdef class Outbound(Session):
    cdef:
        Engine engine
        Endpoint endpoint
        UpstreamUser user
        bytes protocol          # as logs call it
        bint is_http2
        uint32_t served         # requests that this connection has carried to their end
        bint write_paused       # the backend takes no more for now
        bint got_bytes          # any byte of the response has come
        bint unprocessed        # nothing of the request was looked at: with any method it may go to another one
        bint shares             # its connection carries others, too: who is slow keeps nobody from one
        bint may_refuse         # the backend can say that of a request that has been sent
        bint tunnel             # the response's head began one: bytes both ways until somebody ends it
        # in the pool
        bint parked
        int64_t idle_since      # ms

    # a request and its response
    cdef int begin(self, UpstreamUser user, unsigned method, bint unsized, uint64_t announced, bytes asked, bint takes_trailers) except -1
    cdef int write(self, Out *head, iovec *iov, int n, size_t total, bint end, Out *trailers) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef bint has_room(self) noexcept
    cdef size_t unsent(self) noexcept
    cdef int drop(self, Cut why) except -1
    cdef int hang_up(self) except -1
    cdef int end_tunnel(self) except -1
    cdef bytes local_address(self)
    # the pool's questions
    cdef bint is_open(self) noexcept
    cdef bint is_current(self) noexcept
    cdef bint is_quiet(self) noexcept
    cdef int park(self) except -1
