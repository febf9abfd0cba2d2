# Logins: OIDC authentication of a client by its session cookies.

cdef class Logins(Authenticator):
    cdef:
        object flow             # LoginFlow (login_flow.py)
        object clock
        uint64_t cache_id       # in `cache`, of the sessions of this client
        TokenCache cache
        list names              # of the session's cookies, the first one always there
        bytes state_prefix      # of the names of other cookies that backends never get
        bytes callback_path, logout_path
        str tokens_unit         # name of the jwt unit that decides about requests with a token; None: no such
        bint owns_authorization # the backend's Authorization is the proxy's to set

    cdef CachedToken look(self, Exchange ex, Routed *at)
    cdef bytes sealed(self, const uint8_t *first, size_t n, const ef_request *request)
    cdef bint is_own_path(self, Routed *at) noexcept
    cdef object read_request(self, RuleAuthFlow flow)
    cdef ProofResult settle(self, RuleAuthFlow flow, LivePolicy policy, object decision) except *
    cdef ProofResult admit(self, RuleAuthFlow flow, LivePolicy policy, object outcome) except *
    cdef int answer(self, RuleAuthFlow flow, LivePolicy policy, object reply) except -1
    cdef bint is_own_cookie(self, const uint8_t *name, size_t n) noexcept
    cdef bytes other_cookies(self, Exchange ex, Routed *at, bint *found)
    cdef int strip(self, RuleAuthFlow flow) except -1
    cdef Tokens tokens_of(self, RuleAuthFlow flow)
    cdef int admit_token(self, RuleAuthFlow flow, bytes token) except -1
