# Policy chain: the policy units of a rule, and their checks of a request.

cdef enum PolicyResult:
    ADMITTED = 0
    ANSWERED = 1    # it was refused
    WAITING = 2     # proofs and services decide: AuthFlow sends it on or answers it


cdef class Policy:
    cdef:
        object __weakref__
        readonly str name
        int status              # not 0: it is broken or not here, and requests are answered with this
        object traffic          # ir.Traffic or None
        Access access           # None: it has none
        Authenticator proof             # None: it wants none
        list places             # of Places: where requests carry credentials for it, also while it is broken; None: nowhere
        AuthService service     # None: it asks nobody
        ef_stat_row *row        # cells P_*; never NULL
        bytes log               # b'"security/ns/name#authorization"'

    cdef int refuse(self, Exchange ex, int status, bytes rule, uint32_t flag, bytes lines=*) except -1


cdef class PolicyChain:
    cdef:
        list policies           # of Policy, in the order in which they are asked
        AuthService own         # the rule's own filter ExternalAuth, asked last; None: there is none

    cdef PolicyResult evaluate(self, Exchange ex, Routed *at, ef_request *request) except *
    cdef PolicyResult start_auth(self, Exchange ex, Routed *at, ef_request *request) except *
    cdef int redact(self, Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len) except -1
    cdef int drop_matched_headers(self, Out *trailers) except -1
