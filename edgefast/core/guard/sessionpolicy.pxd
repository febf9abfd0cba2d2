# Sessions that endpoints keep.

cdef class SessionPolicy:
    cdef:
        bytes name
        HeaderNames header      # None: it is a cookie
        int64_t absolute        # ms that a session lasts; 0: without end
        int64_t idle            # ms that it may rest; 0: without end
        bint permanent          # its cookie says how long
        bytes regex_path        # Path of cookies where a pattern has matched
        bytes path              # the last one that was made: a rule as a rule has one

    cdef Backend choose(self, Exchange ex, Routed *at, const ef_hit *hit)
    cdef bint read(self, Exchange ex, Routed *at, NamedSession found)
    cdef bint bind(self, Exchange ex, NamedSession found) except -1
    cdef bint parse(self, const uint8_t *value, size_t n, NamedSession found) noexcept
    cdef bytes path_of(self, Routed *at, const ef_hit *hit)
    cdef int tell(self, Exchange ex) except -1
    cdef bytes line(self, Exchange ex, bytes value, int64_t left)


# What a request says of its session, and what its answer needs for that.
cdef class NamedSession:
    cdef:
        SessionPolicy policy
        uint64_t identity       # what it calls its endpoint; 0: the request has none that holds
        int64_t until           # ms since 1970; 0: without end
        int64_t idle_until      # the same
        bytes path              # of its cookie
        Backend backend         # whose endpoint it names; None: none of the rule's
