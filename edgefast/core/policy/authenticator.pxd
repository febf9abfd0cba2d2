# Authenticator: authentication of a client.

cdef enum ProofResult:
    PROVEN = 0
    REFUSED = 1     # it is answered
    UNDECIDED = 2   # the event AUTH_PROOF follows
    DEFERRED = 3    # asked again at the end of the read
    PASSED_OVER = 4 # another unit of its policy may let the request pass


cdef class Authenticator:
    cdef:
        CredentialExtractor places
        HeaderNames sets        # what the backend hears of the client, and nobody hears from it; None: nothing
        bytes challenge         # header lines of a 401
        bytes forward           # name of the header that says who it is; b"": none

    cdef bint knows(self, Exchange ex, Routed *at, ef_request *request, LivePolicy policy, void **memory) except *
    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *
    cdef list all_places(self)
    cdef ProofResult accept(self, RuleAuthFlow flow, bytes user) except *
    cdef ProofResult deny(self, RuleAuthFlow flow, LivePolicy policy, bytes word) except *


cdef class ApiKeys(Authenticator):
    cdef:
        dict clients            # SHA-256 of a key -> client id
        bint sanitize


cdef class Tokens(Authenticator):
    cdef:
        list groups             # (Places, Verifier), in the order of their providers
        uint64_t cache_id          # in `cache`, of the only one of them
        TokenCache cache
        object clock
        bint optional
        bint fail_open
        frozenset names         # of the providers

    cdef ProofResult conclude(self, RuleAuthFlow flow, LivePolicy policy) except *
    cdef bint replaces_login(self, RuleAuthFlow flow, LivePolicy policy) except -1


cdef class Passwords(Authenticator):
    cdef:
        Engine engine
        dict users              # name -> hash
        tuple decoys            # one slow hash of each cost, all of which a wrong password is tried against; (): all are quick
