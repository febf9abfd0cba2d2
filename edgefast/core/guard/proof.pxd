# How a client proves who it is.

cdef enum Proven:
    PROVEN = 0
    REFUSED = 1     # it is answered
    UNDECIDED = 2   # Admittance.on_proof follows


cdef class Proof:
    cdef:
        Places places
        HeaderNames sets        # what the backend hears of the client, and nobody hears from it; None: nothing
        bytes challenge         # header lines of a 401
        bytes forward           # name of the header that says who it is; b"": none

    cdef bint knows(self, Exchange ex, Routed *at, Policy policy) except *
    cdef Proven judge(self, Admittance asker, Policy policy) except *
    cdef list all_places(self)
    cdef Proven accept(self, Admittance asker, bytes user) except *
    cdef Proven deny(self, Admittance asker, Policy policy, bytes word) except *


cdef class ApiKeys(Proof):
    cdef:
        dict clients            # SHA-256 of a key -> client id
        bint sanitize


cdef class Tokens(Proof):
    cdef:
        list groups             # (Places, Verifier), in the order of their providers
        uint64_t shelf          # in `cache`, of the only one of them
        TokenCache cache
        object clock
        bint optional
        bint fail_open
        frozenset names         # of the providers

    cdef int note(self, Exchange ex, outcome, Policy policy) except -1
    cdef Proven conclude(self, Admittance asker, Policy policy) except *


cdef class Passwords(Proof):
    cdef:
        Engine engine
        dict users              # name -> hash
        tuple decoys            # one slow hash of each cost, all of which a wrong password is tried against; (): all are quick
