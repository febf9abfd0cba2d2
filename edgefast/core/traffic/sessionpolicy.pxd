# Session policy: session persistence with endpoints.

# One of them, as a value says it.
cdef struct SessionToken:
    uint64_t identity       # what it calls its endpoint
    int64_t until           # ms since 1970; 0: without end
    int64_t idle_until      # the same


cdef class SessionPolicy:
    cdef:
        bytes name
        HeaderNames header      # None: it is a cookie
        int64_t absolute        # ms that a session lasts; 0: without end
        int64_t idle            # ms that it may rest; 0: without end
        bint permanent          # its cookie says how long
        bytes place             # attributes of cookies: Path and Domain
        bytes same_site         # the attribute of cookies
        bint conditional        # ... which some clients do not get
        bint secure             # cookies are, also without TLS
        bint stays              # when its endpoint fails, while that exists
        bint first              # before weights

    cdef int read(self, Exchange ex, Cluster cluster, Routed *at) except -1
    cdef Backend find_backend(self, Exchange ex, Routed *at)
    cdef Backend in_value(self, Exchange ex, const uint8_t *value, size_t n, int *left)
    cdef int read_value(self, NamedSession found, Exchange ex, Cluster cluster, const uint8_t *value, size_t n) except -1
    cdef bint holds(self, const SessionToken *token) noexcept
    cdef int write_session(self, Exchange ex) except -1
    cdef bytes line(self, Exchange ex, bytes value, int64_t left)


# What a request says of its session.
cdef class NamedSession:
    cdef:
        SessionPolicy policy
        SessionToken own        # with the backend that it has; identity 0: it says none that holds
        list others             # bytes: those that may be with others; None: there are none
        int left                # sessions that are looked at still
        bint rejects_none       # its client takes no cookie with SameSite=None
