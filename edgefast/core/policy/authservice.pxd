# Auth service: an authorization service that decides about requests.

cdef class AuthService:
    cdef:
        Engine engine
        list clusters           # names
        uint32_t *weights
        int64_t *current        # of smooth weighted round robin
        bytes path              # before the request's
        bytes path_override     # in place of it; b"": none
        HeaderNames sends       # of the request
        HeaderNames sets        # of the answer, towards the backend
        frozenset statuses      # that let a request pass
        CheckOptions options    # settings of an HTTP check that few policies have; None: the defaults
        bint grpc               # envoy.service.auth.v3.Authorization
        bint shows_all          # of gRPC: all of the request's headers, and what the proxy says of it
        frozenset named         # ... else these
        size_t body             # bytes of the request's that it is shown at most; 0: it is shown none
        int64_t timeout         # ms
        bint fail_open
        int status_on_error
        int64_t ttl             # ms; what it said is believed so long; 0: nothing is
        HeaderNames keys        # of the headers that tell questions apart; None: all that it is shown
        HeaderNames own_keys    # the same of the proxy's own lines
        bytes secret            # what digests of its questions are made with
        dict calls              # digest -> AuthCall under way, which others may wait for

    cdef int narrow_key(self, key_headers) except -1
    cdef Cluster choose(self)
    cdef bytes digest(self, RuleAuthFlow flow)
    cdef AuthDecision known(self, RuleAuthFlow flow)
    cdef int ask(self, RuleAuthFlow flow) except -1
