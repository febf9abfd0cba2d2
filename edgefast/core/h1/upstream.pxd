# A connection to a backend: HTTP/1.1, client side.

cdef enum UpState:
    U_IDLE = 0      # in the pool, or handed out and nothing sent yet
    U_HEAD = 1      # waiting for (more of) a response head
    U_LENGTH = 2
    U_CHUNKED = 3
    U_EOF = 4       # body until the connection ends
    U_TUNNEL = 5    # after 101


# Why a user lost its connection (UpstreamUser.on_up_lost).
cdef enum UpLost:
    LOST_RESET = 1      # the peer closed or reset
    LOST_PROTOCOL = 2   # the response was refused


cdef class Upstream(Connection):
    cdef:
        Endpoint endpoint
        Cluster cluster
        UpstreamUser user
        UpState state
        unsigned method         # of the request in flight, enum ef_method
        uint32_t served         # requests that this connection has carried to their end
        uint32_t informational  # 1xx of this response
        int64_t idle_since      # ms
        uint64_t left           # body bytes still to come
        ef_chunk chunk
        object ssl              # the context it was made with; None: plain
        str sni
        bytes local             # "10.0.0.1:40000", our end; None: no log line has asked for it
        int64_t idle_ms         # how long it may wait in the pool
        bint attached
        bint parked             # in the pool
        bint keep_alive
        bint got_bytes          # any byte of the response has come
        bint request_done       # the whole request was written

    cdef int begin(self, UpstreamUser user, unsigned method) except -1
    cdef int write_request(self, Out *head, iovec *iov, int n, size_t total, bint chunked, bint end) except -1
    cdef int park(self) except -1
    cdef bint is_current(self) noexcept
    cdef int drop(self) except -1
    cdef ssize_t process(self, const uint8_t *data, size_t n) except -1
    cdef ssize_t on_head(self, const uint8_t *data, size_t n) except -1
    cdef int finish(self, size_t extra) except -1
    cdef int fail(self, int why) except -1
