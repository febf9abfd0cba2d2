# Policy chain: the policy units of a rule, and their checks of a request.

cdef class LivePolicy(Policy):
    cdef:
        Engine engine
        Access access           # None: it has none
        Authenticator proof     # None: it wants none
        AuthService service     # None: it asks nobody
        str group               # its policy, of whose units one suffices; None: this one decides


cdef class RulePolicyChain(PolicyChain):
    cdef:
        list policies           # of LivePolicy, in the order in which they are asked
        AuthService own         # the rule's own filter ExternalAuth, asked last; None: there is none

    cdef PolicyResult evaluate(self, Exchange ex, Routed *at, ef_request *request) except *
    cdef PolicyResult start_auth(self, Exchange ex, Routed *at, ef_request *request, dict groups) except *
    cdef int redact(self, Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef int drop_matched_headers(self, Out *trailers) except -1
