# Auth cache: cached answers of authorization services.

cdef enum AuthOutcome:
    AUTH_PASSES = 0
    AUTH_DENIES = 1
    AUTH_FAILS = 2      # it did not answer, or not as it has to


cdef class AuthDecision:
    cdef:
        AuthOutcome outcome
        int status          # of the answer; 0: there was none
        bytes lines         # "name: value" lines: for the backend of a request that passes, for the client of another one
        bytes body          # for the client
        AuthEdits edits     # of one of gRPC that lets pass: what it does to request and answer; None: nothing
        int64_t until       # ms; in the cache it is believed before then


cdef class AuthAnswers:
    cdef:
        object entries      # OrderedDict digest -> AuthDecision, the one that was of no use for longest first
        size_t size         # bytes of them, about
        size_t limit

    cdef int keep(self, bytes key, AuthDecision decision) except -1
    cdef int drop(self, bytes key) except -1


cdef class AuthCache:
    cdef:
        AuthAnswers passes
        AuthAnswers denials
        Out question        # the one that is being written

    cdef AuthDecision find(self, bytes key, int64_t now)
    cdef int keep(self, bytes key, AuthDecision decision, int64_t until) except -1
