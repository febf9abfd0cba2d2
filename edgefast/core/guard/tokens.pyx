# Signed tokens as proofs of who a client is (ir.Jwt); what a token is, and whose, is edgefast/tokens, when it is verified tokendesk.py.
#
# In: a request that is to enter. Out: whose it is, its claims for rules and, as header lines, for its backend; or its answer: 401 for a token
# that is none, 403 for a good one for somebody else, and 503 while nobody can say: there are no keys, or too many tokens wait. Must never tell
# more of a token than one word.

cdef bytes _NO_TOKEN = b'www-authenticate: Bearer realm="gateway"\r\n'
cdef bytes _BAD_TOKEN = b'www-authenticate: Bearer realm="gateway", error="invalid_token"\r\n'  # RFC 6750 3.1
cdef object _SEVERAL = TokenOutcome("malformed")  # tokens that differ


cdef class Tokens(Proof):
    def __init__(self, Engine engine, spec):
        """spec: ir.Jwt. Raises ValueError for keys that are none."""
        from edgefast.core.guard.verifier import make_verifiers
        desk = engine.desk()
        self.groups = [(Places(one.places), one) for one in make_verifiers(desk, spec)]
        self.shelf = self.groups[0][1].shelf if len(self.groups) == 1 else 0
        self.cache, self.clock = desk.cache, desk.clock
        self.optional = spec.optional
        self.fail_open = spec.fail_open
        self.names = frozenset([one.name for one in spec.providers])
        headers = dict.fromkeys([forward_name(name).decode() for one in spec.providers for name, _ in one.claim_headers])
        self.sets = HeaderNames(headers) if headers else None
        self.challenge = _NO_TOKEN

    cdef bint knows(self, Exchange ex, Routed *at, Policy policy) except *:
        cdef KnownToken known
        cdef Carrier carrier
        cdef const uint8_t *token = NULL
        cdef size_t n = 0
        if self.shelf == 0:
            return False
        carrier = carried_by(at, ex)
        if not (<Places>PyTuple_GET_ITEM(<tuple>PyList_GET_ITEM(self.groups, 0), 0)).lone(&carrier, &token, &n):
            return False
        known = self.cache.look(self.shelf, token, n, self.clock())
        if known is None or not known.plain:
            return False
        self.note(ex, known.outcome, policy)
        return True

    cdef int note(self, Exchange ex, outcome, Policy policy) except -1:
        """Of a token that is good: rules, logs and spans hear of it."""
        ex.token = outcome
        ex.token_unit = policy.name
        user = outcome.user
        if user is None:
            subject = outcome.claims.get("sub")
            user = outcome.user = json_encode(subject[:TOKEN_SUBJECT]) if subject is not None else b""
        if user:
            ex.user = user
        return 0

    cdef Proven judge(self, Admittance asker, Policy policy) except *:
        """Whoever has several tokens gets in by the first that is good; else the last that is none decides."""
        cdef Places places
        cdef Carrier at
        cdef bytes token
        while asker.group < PyList_GET_SIZE(self.groups):
            outcome, asker.outcome_of_token = asker.outcome_of_token, None
            if outcome is None:
                places, verifier = self.groups[asker.group]
                at = carried_by(&asker.at, asker.ex)
                token = places.find(&at, None)
                if token is None:
                    asker.group += 1
                    continue
                outcome = _SEVERAL if places.several else verifier.look(token)
                if outcome is None:
                    asker.question = verifier.submit(token, asker.settle_token, asker.ex.origin() or b"")
                    outcome = asker.question.outcome
                    if outcome is None:
                        return UNDECIDED
                    asker.question = None
            asker.group += 1
            if outcome.status == 0:
                asker.lines += outcome.lines
                self.note(asker.ex, outcome, policy)
                return PROVEN
            if asker.refusal is None or outcome.status == 403:
                asker.refusal = outcome
        return self.conclude(asker, policy)

    cdef list all_places(self):
        return [places for places, _ in self.groups]

    cdef Proven conclude(self, Admittance asker, Policy policy) except *:
        """None of its tokens is good."""
        outcome = asker.refusal
        if self.fail_open or (outcome is None and self.optional):
            return PROVEN
        if outcome is None:
            return self.deny(asker, policy, _NO_PROOF)
        if outcome.status == 503:
            policy.refuse(asker.ex, 503, json_encode(outcome.word), F_AUTH_ERROR, b"retry-after: 1\r\n")
        else:
            policy.refuse(
                asker.ex, outcome.status, json_encode(outcome.word), F_DENIED, _BAD_TOKEN if outcome.status == 401 else b""
            )
        return REFUSED
