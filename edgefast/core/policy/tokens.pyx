# Tokens: JWT authentication of a client (ir.Jwt); edgefast/auth/jwt has the token format, token_verification.py the verification.
#
# In: a request before admission. Out: the client, its claims for rules and, as header lines, for its backend; or its answer. 401: an
# invalid token. 403: a valid one for another audience. 503: the result is unknown: no keys, or too many tokens wait.
# Must never reveal more of a token than one word.
#
# A token passes six stops:
#
#   1 extract    CredentialExtractor.find: the header, cookie or parameter of a provider group
#   2 cache      TokenCache.find: the outcome of the same token, until it expires or its key is no longer trusted
#   3 queue      TokenVerifier.submit: joins the job of the same token, or waits for its client's turn
#   4 verify     TokenVerifier._judge: form, claims, signature; in the loop, or on the thread if that takes too long
#   5 outcome    TokenVerifier._settle: each request that waits receives it (AUTH_PROOF, auth_flow.pyx); a signed one is cached
#   6 authorize  `note_token` gives the claims to rules, logs and the backend, then evaluate_token_policies; or `conclude` answers

cdef bytes _NO_TOKEN = b'www-authenticate: Bearer realm="gateway"\r\n'
cdef bytes _BAD_TOKEN = b'www-authenticate: Bearer realm="gateway", error="invalid_token"\r\n'  # RFC 6750 3.1
cdef object _SEVERAL = TokenOutcome("malformed")  # tokens that differ


cdef int note_token(Exchange ex, outcome, LivePolicy policy) except -1:
    """Of a token that is good: rules, logs and spans hear of it."""
    ex.token = outcome
    ex.token_unit = policy.name
    user = outcome.user
    if user is None:
        subject = outcome.claims.get("sub")
        user = outcome.user = json_encode(subject[:TOKEN_SUBJECT]) if isinstance(subject, str) else b""
    if user:
        ex.user = user
    return 0


cdef class Tokens(Authenticator):
    def __init__(self, Engine engine, spec):
        """spec: ir.Jwt. Raises ValueError for keys that are none."""
        from edgefast.core.policy.token_requirements import make_verifiers
        token_verifier = units_of(engine).get_token_verifier()
        self.groups = [(CredentialExtractor(one.places), one) for one in make_verifiers(token_verifier, spec)]
        self.cache_id = self.groups[0][1].cache_id if len(self.groups) == 1 else 0
        self.cache, self.clock = token_verifier.cache, token_verifier.clock
        self.optional = spec.optional
        self.fail_open = spec.fail_open
        self.names = frozenset([one.name for one in spec.providers])
        headers = dict.fromkeys([forward_name(name).decode() for one in spec.providers for name, _ in one.claim_headers])
        self.sets = HeaderNames(headers) if headers else None
        self.challenge = _NO_TOKEN

    cdef bint knows(self, Exchange ex, Routed *at, ef_request *request, LivePolicy policy, void **memory) except *:
        cdef CachedToken known
        cdef CredentialSource carrier
        cdef const uint8_t *token = NULL
        cdef size_t n = 0
        if self.cache_id == 0:
            return False
        carrier = carried_by(at, ex)
        if not (<CredentialExtractor>PyTuple_GET_ITEM(<tuple>PyList_GET_ITEM(self.groups, 0), 0)).find_single(&carrier, &token, &n):
            return False
        known = self.cache.look(self.cache_id, token, n, self.clock())
        if known is None or not known.admits or (known.lines and (ex.filter_lines is not None or at.given)):
            return False
        note_token(ex, known.outcome, policy)
        if known.lines:
            copy_head(at, request, None, b"", known.lines, known.spans, memory)
        return True

    cdef ProofResult authenticate(self, RuleAuthFlow flow, LivePolicy policy) except *:
        """Whoever has several tokens gets in by the first that is good; else the last that is none decides."""
        cdef CredentialExtractor places
        cdef CredentialSource at
        cdef bytes token
        while flow.group < PyList_GET_SIZE(self.groups):
            outcome, flow.outcome_of_token = flow.outcome_of_token, None
            if outcome is None:
                places, verifier = self.groups[flow.group]
                at = carried_by(&flow.at, flow.ex)
                token = places.find(&at, None)
                if token is None:
                    flow.group += 1
                    continue
                outcome = _SEVERAL if places.several else verifier.look(token)
                if outcome is None:
                    flow.question = verifier.submit(token, flow.settle_token, flow.ex.origin() or b"")
                    outcome = flow.question.outcome
                    if outcome is None:
                        return UNDECIDED
                    flow.question = None
            flow.group += 1
            if outcome.status == 0:
                flow.lines += outcome.lines
                note_token(flow.ex, outcome, policy)
                if self.replaces_login(flow, policy):
                    places, _ = self.groups[flow.group - 1]
                    at = carried_by(&flow.at, flow.ex)
                    flow.passed_login.admit_token(flow, places.find(&at, None))
                return PROVEN
            if flow.refusal is None or outcome.status == 403:
                flow.refusal = outcome
        return self.conclude(flow, policy)

    cdef list all_places(self):
        return [places for places, _ in self.groups]

    cdef bint replaces_login(self, RuleAuthFlow flow, LivePolicy policy) except -1:
        """A login let the request pass because of its token: only a verified token admits it."""
        return flow.passed_login is not None and policy.name == flow.passed_login.tokens_unit

    cdef ProofResult conclude(self, RuleAuthFlow flow, LivePolicy policy) except *:
        """None of its tokens is good."""
        outcome = flow.refusal
        if (self.fail_open or (outcome is None and self.optional)) and not self.replaces_login(flow, policy):
            return PROVEN
        if outcome is None:
            return self.deny(flow, policy, _NO_PROOF)
        if outcome.status == 503:
            policy.refuse(flow.ex, 503, json_encode(outcome.word), F_AUTH_ERROR, b"retry-after: 1\r\n")
        elif outcome.status == 401:
            refuse_client(flow, policy, json_encode(outcome.word), _BAD_TOKEN)
        else:
            policy.refuse(flow.ex, outcome.status, json_encode(outcome.word), F_DENIED, b"")
        return REFUSED
