# Body: the body of a request, on its way to a backend.

# Where the bytes of a body go. body.pyx has the table of transitions.
cdef enum BodyState:
    BODY_HELD = 0           # no backend is asked yet
    BODY_GATHERING = 1      # ... before more of the body is here, or before services or a delay release the request
    BODY_DEFERRED = 2       # ... before the end of the read: HTTP/2 may cancel the request in the same read
    BODY_FORWARDING = 3     # a backend was asked: bytes go to its connection


@cython.final
cdef class Body:
    cdef:
        list mirrors            # Mirror, each with a copy of the request; None: none
        Out kept                # bytes kept for a connection to come, or for a retry
        Out trailers            # fields behind it
        BodyState state
        bint expected           # the client announced a body
        bint unsized            # its length is not known
        bint done               # the client has sent all of it
        bint replayable         # `kept` is complete so far: a retry is possible
        bint shown              # services were shown more than every request may hold, and nobody has lent it memory yet
        uint64_t announced      # bytes, as the head says; 0 if it is unsized
        uint64_t received       # bytes
        uint64_t limit          # bytes at most; 0: no limit
        int64_t left            # bytes that are known to come after what is being handed over; -1: not known
        int64_t late_at         # ms; a body that is still gathered then is a slow one
        size_t borrowed         # bytes beyond bodyStart of what all bodies of the worker may hold (body_buffer.pyx, policy/auth_body_buffer.pyx)

    cdef void reset(self) noexcept
    cdef void enter(self, BodyState state) noexcept
    cdef int start(self, Exchange ex) except -1
    cdef int gather(self, Exchange ex) except -1
    cdef bint gathers_on(self, Exchange ex, size_t total) except -1
    cdef int go(self, Exchange ex) except -1
    cdef int open_mirrors(self, Exchange ex) except -1
    cdef int take(self, Exchange ex, iovec *iov, int n, size_t total, int64_t left) except -1
    cdef int take_trailers(self, Exchange ex, const uint8_t *lines, size_t n) except -1
    cdef int sift_trailers(self, Exchange ex) except -1
    cdef int end(self, Exchange ex) except -1
    cdef bint keep_auth_body(self, Exchange ex) except -1
    cdef void forget(self) noexcept
