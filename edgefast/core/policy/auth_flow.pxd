# Auth flow: authentication and external authorization of a request, before it goes on.

cdef class RuleAuthFlow(AuthFlow):
    cdef:
        Exchange ex             # None: it is decided
        list proofs             # Proof, in the order in which they are asked for; None: none is
        list proof_policies            # LivePolicy of each
        Py_ssize_t proved       # of them are there
        object job              # what a proof waits for (passwords.py); None: nothing
        bytes proven            # what came of it: whose the request is, b"": nobody's; None: nobody has said
        Py_ssize_t group        # of Tokens: whose places were looked at
        object question         # that a token is asked about (token_verification.py); None: none
        object outcome_of_token # what came of it; None: nobody has said
        object login            # what a login waits for (login_flow.py); None: nothing
        object login_decision   # what came of it; None: nothing yet
        str passed_unit         # of jwt: a session is in place of its token; None: none
        Logins passed_login     # a token is in place of its session; None: none
        object refusal          # of tokens: the outcome that it will be answered with, if none is good
        list token_policies             # LivePolicy whose rules ask for a token, which speak last; None: none
        list accesses           # Access of each
        bytes query             # in place of the request's; None: that one is
        dict groups             # AnyGroup by policy; None: every unit decides
        list services           # AuthService, in the order in which they are asked
        list policies           # LivePolicy of each; None: the rule's own filter
        Py_ssize_t n            # of them have spoken
        AuthCall call           # that it waits for; None: none
        bytes key               # AuthService.known
        bint alone              # what others are told is not for it: its next question is its own
        AuthDecision outcome     # of a call that was over while it was begun
        Routed at
        ef_request request
        void *memory            # its head, copied: its bytes are gone when an answer comes; NULL: it has not waited
        bint lent           # memory is, for a body that lies here until all have spoken (auth_body_buffer.pyx)
        bytes lines             # what services say of it, for the backend
        size_t most             # bytes of its body that all who are shown it take; 0: nobody is
        InjectedFault fault             # for which it waits, though everybody has let it pass; None: for none
        int64_t until           # ms; how long
        bint aborts             # and is refused then
        bint gathered           # its body was awaited, or is complete
        bint unproven           # its password is not tried
        bint running            # the driver runs: it sees a new state when the step returns

    cdef int bound_body(self) except -1
    cdef PolicyResult begin(self) except *
    cdef int step(self) except -1
    cdef int authenticate(self) except -1
    cdef int gather(self) except -1
    cdef int check_rate(self) except -1
    cdef int ask(self) except -1
    cdef int check_delay(self) except -1
    cdef int resume(self) except -1
    cdef int wait(self, AuthState state) except -1
    cdef int keep(self, bytes more) except -1
    cdef int on_decision(self, AuthDecision decision) except -1
    cdef int ask_alone(self) except -1
    cdef bint takes(self, AuthDecision decision, bint cached) except -1
    cdef int deny(self, AuthDecision decision) except -1
    cdef bint was_set(self, const uint8_t *name, size_t n) noexcept
    cdef int admit(self) except -1
    cdef int too_large(self) except -1
