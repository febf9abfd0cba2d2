# Any group: the units of one policy of which one suffices.

cdef class AnyGroup:
    cdef:
        bint met                # a unit has let the request pass
        int left                # units that authenticate or call a service, and have not decided
        LivePolicy refuser      # the first unit that found no valid credential; None: none did
        bytes word              # of it, for the log
        bytes challenge         # header lines of all of them

    cdef bint defers(self, LivePolicy policy, bytes word, bytes challenge) except -1

cdef PolicyResult evaluate_any(RulePolicyChain chain, Exchange ex, Routed *at, ef_request *request) except *
cdef AnyGroup group_of(RuleAuthFlow flow, LivePolicy policy)
