# Policy chain: live policy units: a rule holds the object, the table replaces its content. A unit that a rule names and that is missing is
# closed: requests are answered with 500 until it comes.
#
# In: ir.PolicyUnit from the table, requests that matched a rule. Out: an admission, an answer, or a wait.
# Must never let a request with a broken unit pass.

cdef bytes label_policy(str name):
    """Of a unit's row: "policy", then the policy and its unit, in a part of its own, which is kept where a label is cut (csrc/stat.h)."""
    policy, _, unit = name.partition("#")
    return f"policy\t{policy}\t{unit or policy.partition('/')[0]}".encode()


cdef class LivePolicy:
    def __init__(self, Engine engine, str name):
        self.engine = engine
        self.name = name
        self.status = 500
        self.log = json_encode(name)
        label = label_policy(name)
        self.row = ef_stat_hold(engine.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))

    cdef int update(self, spec) except -1:
        """Take what the table says now; None: it says nothing any more. Raises ValueError and leaves what was before."""
        cdef Authenticator proof = None
        cdef Engine engine = self.engine
        access, service = None, None
        if spec is not None and spec.status == 0:
            if spec.authorization is not None:
                access = Access(engine, spec.authorization)
            elif spec.ext_auth is not None:
                service = AuthService(engine, spec.ext_auth)
            elif spec.api_key is not None:
                proof = ApiKeys(spec.api_key)
            elif spec.basic is not None:
                proof = Passwords(engine, spec.basic)
            elif spec.oidc is not None:
                proof = Logins(engine, self.name, spec.oidc)
            elif spec.jwt is not None:
                proof = Tokens(engine, spec.jwt)
            elif spec.traffic is None:
                raise ValueError(f"policy {self.name} has no settings")
        self.status = 500 if spec is None else spec.status
        if spec is not None:  # rules with a missing policy answer 500, and still log no credentials
            self.places = proof.all_places() if proof is not None else [CredentialExtractor(one) for one in spec.places] or None
        self.access = access
        self.proof = proof
        self.service = service
        self.group = self.name.partition("#")[0] if spec is not None and spec.any else None
        self.traffic = spec.traffic if spec is not None and spec.status == 0 else None
        return 0


cdef int count_decision(Engine engine, LivePolicy policy, AuthDecision decision, bint cached) except -1:
    """All that is counted of what services say is counted here; `policy` None: the rule's own filter's."""
    if decision.outcome == AUTH_DENIES:
        engine.count(G_AUTH_DENIED)
    elif decision.outcome == AUTH_FAILS:
        engine.count(G_AUTH_ERRORS)
    if cached:
        engine.count(G_AUTH_CACHED)
    if policy is not None:
        if cached:
            ef_stat_add(&policy.row.cells[P_CACHED], 1)
        ef_stat_add(&policy.row.cells[
            P_ALLOWED if decision.outcome == AUTH_PASSES else P_DENIED if decision.outcome == AUTH_DENIES else P_ERROR
        ], 1)
    return 0


cdef class RulePolicyChain:
    def __init__(self, Engine engine, spec):
        self.policies = [engine.tables.policy(name) for name in spec.policies]
        self.own = AuthService(engine, spec.ext_auth) if spec.ext_auth is not None else None

    cdef PolicyResult evaluate(self, Exchange ex, Routed *at, ef_request *request) except *:
        """What all units together say; local ones come first, since whoever they refuse costs nobody a question."""
        cdef LivePolicy policy, proof_policy = None
        cdef list sets = None
        cdef Py_ssize_t asked = 0
        cdef void *memory = NULL
        cdef bint grouped = False
        for policy in self.policies:
            grouped |= policy.group is not None
            if policy.proof is not None:
                proof_policy = policy
                if policy.proof.sets is not None:
                    sets = joined(sets, policy.proof.sets)
            elif policy.service is not None:
                asked += 1
                sets = joined(sets, policy.service.sets)
        if self.own is not None:
            asked += 1
            sets = joined(sets, self.own.sets)
        if sets is not None:
            ex.sets = sets if ex.sets is None else ex.sets + sets  # filters of its listener have theirs
            strip_headers(sets, at, request)
        if grouped:
            return evaluate_any(self, ex, at, request)
        for policy in self.policies:
            if policy.status:
                policy.refuse(ex, policy.status, None, F_INVALID)
                return ANSWERED
            if policy.access is not None and policy.access.asks_token:  # it speaks last
                asked += 1
            elif policy.access is not None:
                if not policy.access.admits(ex.client, ex.down.peer, request, None):
                    policy.refuse(ex, 403, policy.access.decided.log if policy.access.decided is not None else None, F_DENIED)
                    return ANSWERED
                ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
            elif policy.proof is not None and policy is not proof_policy:
                asked += 1
        if proof_policy is None and asked == 0:
            return ADMITTED
        if asked == 0 and proof_policy.proof.knows(ex, at, request, proof_policy, &memory):  # nothing but this is asked, and nothing is to be waited for
            ef_stat_add(&proof_policy.row.cells[P_ALLOWED], 1)
            if memory == NULL:
                return ADMITTED
            try:
                ex.admit(at, request)
            finally:
                free(memory)
            return WAITING
        return self.start_auth(ex, at, request, None)

    cdef PolicyResult start_auth(self, Exchange ex, Routed *at, ef_request *request, dict groups) except *:
        """Let the request prove whose it is, and show it to services. Afterwards it is somebody else's affair."""
        cdef AnyGroup group
        cdef RuleAuthFlow flow = RuleAuthFlow.__new__(RuleAuthFlow)
        cdef LivePolicy policy
        flow.services, flow.policies = [], []
        flow.groups = groups
        for policy in self.policies:
            group = group_of(flow, policy)
            if group is not None and group.met and policy.access is None:
                continue
            if policy.proof is not None:
                if flow.proofs is None:
                    flow.proofs, flow.proof_policies = [], []
                flow.proofs.append(policy.proof)
                flow.proof_policies.append(policy)
            elif policy.service is not None:
                flow.services.append(policy.service)
                flow.policies.append(policy)
            elif policy.access is not None and policy.access.asks_token:
                if flow.token_policies is None:
                    flow.token_policies, flow.accesses = [], []
                flow.token_policies.append(policy)
                flow.accesses.append(policy.access)
        if self.own is not None:
            flow.services.append(self.own)
            flow.policies.append(None)  # the rule's own filter
        flow.ex = ex
        flow.at = at[0]
        flow.request = request[0]
        flow.lines = b""
        if ex.body.expected:
            flow.bound_body()
        return flow.begin()

    cdef int redact(self, Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len) except -1:
        """Cover what a request proves itself by, before anybody can answer it."""
        cdef LivePolicy policy
        cdef CredentialSource at
        if ex.raw.size == 0:
            return 0
        at.base, at.spans, at.n_spans, at.drop_flags = base, &head.spans[0], head.n_spans, 0
        at.query, at.query_len = query, query_len
        for policy in self.policies:
            if policy.places is not None:
                cover_credentials(ex, policy.places, &at)
        return 0

    cdef int drop_matched_headers(self, Out *trailers) except -1:
        """What rules ask for in a head is not brought in behind the body."""
        cdef LivePolicy policy
        for policy in self.policies:
            if policy.access is not None and policy.access.names is not None:
                policy.access.names.drop_fields(trailers)
        return 0


cdef list joined(list sets, HeaderNames names):
    """`sets` with one more; None: there was none."""
    if sets is None:
        return [names]
    sets.append(names)
    return sets
