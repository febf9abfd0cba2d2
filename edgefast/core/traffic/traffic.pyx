# Traffic: the effective traffic settings of one rule (ir.Traffic): the largest body, timeouts, faults, overrides, encodings, endpoint
# choice.
#
# In: the units of the rule, overrides first. Out: one number for each setting. A request after a change of any unit recomputes them, so a
# policy change does not rebuild a rule. For each setting the first default that sets it applies, and no override is exceeded. Without a
# default the override itself applies. A route's own timeout comes before all defaults. The listener's body limit is one more upper bound.
# Until a request is admitted, the listener's timeout applies to it. A broken or missing unit closes the rule.

cdef inline int64_t stricter(int64_t one, int64_t other) noexcept:
    """The shorter of two; 0 is without end."""
    if one == 0 or other == 0:
        return one or other
    return one if one < other else other


cdef class Traffic:
    def __init__(self, Engine engine, spec, int64_t own_timeout, int64_t default_timeout):
        """spec: ir.Rule or ir.BackendPolicy. A GRPCRoute has no field for it: its calls may last by default only."""
        self.engine = engine
        self.policies = [engine.tables.policy(name) for name in spec.traffic]
        self.ceilings = spec.ceilings
        if isinstance(spec, ir.Rule):  # sessions are kept for it, whichever backend weights choose
            self.own_session = spec.session
            self.named = (spec.route, spec.name or spec.index)
        self.calls = own_timeout == 0 and spec.route.startswith("grpcroute/")
        self.own_timeout = -1 if self.calls else own_timeout
        self.default_timeout = 0 if self.calls else default_timeout

    cdef int64_t settle(self, str leaf, int64_t own) except? -2:
        """One setting; `own`: what the route itself says, before all defaults; -1: nothing, as in the result."""
        cdef Policy policy
        cdef int64_t value = own
        for policy in self.policies[self.ceilings:]:
            said = getattr(policy.traffic, leaf)
            if said is not None and value < 0:
                value = said
        for policy in self.policies[:self.ceilings]:
            said = getattr(policy.traffic, leaf)
            if said is not None:
                value = said if value < 0 else stricter(value, said)
        return value

    cdef object first(self, str leaf):
        """One setting that is no bound: of the highest override that says it, else of the first default; None: nobody does."""
        cdef Policy policy
        for policy in self.policies:
            said = getattr(policy.traffic, leaf)
            if said is not None:
                return said
        return None

    cdef int64_t least(self, str leaf) except? -2:
        """A bound of which 0 leaves nothing: that of the first default that says it, or of any override, if it is less; -1: nobody says it."""
        cdef Policy policy
        cdef int64_t value = -1
        for policy in reversed(self.policies[self.ceilings:]):
            said = getattr(policy.traffic, leaf)
            value = value if said is None else said
        for policy in self.policies[:self.ceilings]:
            said = getattr(policy.traffic, leaf)
            if said is not None and (value < 0 or said < value):
                value = said
        return value

    cdef Breaker learn_breaker(self):
        cdef Breaker breaker = Breaker(
            self.least("max_connections"), self.least("max_endpoint_connections"), self.least("max_pending"), self.least("max_requests"),
            self.least("max_retries"), self.first("retry_budget"), self.settle("max_connection_requests", -1),
        )
        return breaker if breaker.bounds() else None

    cdef SessionPolicy learn_session(self):
        """The rule's own comes before all defaults; a backend's own before that, and after what an Override says."""
        cdef Policy policy
        for policy in self.policies[:self.ceilings]:
            self.session_bound = self.session_bound or policy.traffic.session is not None
        for policy in self.policies if self.own_session is None else self.policies[:self.ceilings]:
            if policy.traffic.session is not None:
                return SessionPolicy(policy.traffic.session, *self.named)
        return SessionPolicy(self.own_session, *self.named) if self.own_session is not None else None

    cdef int learn(self) except -1:
        cdef Policy policy
        self.closed = None
        self.session_bound = False
        self.balance = BY_LOAD
        self.fault = self.overrides = self.compression = self.bandwidth = self.hash = self.session = self.outlier = self.breaker = self.check = None
        for policy in self.policies:
            if policy.status or policy.traffic is None:
                self.closed = policy
                break
        else:
            self.body_size = self.settle("body_size", -1)
            self.request_timeout = self.settle("request_timeout", self.own_timeout)
            if self.request_timeout < 0 and self.calls:
                self.request_timeout = 0
            self.idle_timeout = self.settle("idle_timeout", -1)
            self.send_timeout = max(self.settle("send_timeout", -1), 0)
            self.connect_timeout = self.settle("connect_timeout", -1)
            self.connect_timeout = NEVER_MS if self.connect_timeout == 0 else max(self.connect_timeout, 0)
            self.retry_timeout = max(self.settle("retry_timeout", -1), 0)
            fault = self.first("fault")
            self.fault = self.engine.policies.make_fault(fault) if fault is not None else None
            overrides = self.first("override")
            self.overrides = Overrides(self.engine, overrides) if overrides else None
            compression = self.first("compression")
            self.compression = Compression(compression) if compression is not None and compression.encodings else None
            bandwidth = self.first("bandwidth")
            self.bandwidth = Bandwidth(bandwidth) if bandwidth is not None else None
            balancer = self.first("load_balancer")
            self.balance = <Balance>BALANCES[balancer.type] if balancer is not None else BY_LOAD
            self.zones = self.engine.zones.rule_of(balancer.zones) if balancer is not None else None
            self.slow = balancer.slow_start if balancer is not None else 0
            self.hash = HashPolicy(balancer.hash) if self.balance == BY_KEY else None
            outlier = self.first("outlier")
            self.outlier = outlier_of(self.engine, outlier) if outlier is not None else None
            self.breaker = self.learn_breaker()
            check = self.first("check")
            self.check = self.engine.checks.of(check) if check is not None else None
            self.session = self.learn_session() if self.named is not None else None
            self.panic = self.first("panic") or 0
            constraint = self.first("retry_constraint")
            self.window = RetryWindow(constraint) if constraint is not None else None
            self.timeout_line = self.engine.tables.timeout_line(
                self.request_timeout if self.request_timeout >= 0 else self.default_timeout
            )
        self.epoch = self.engine.tables.policy_epoch
        return 0

    cdef bint refresh(self) except -1:
        """Take units that have changed, for a connection; False: one is broken or missing."""
        if self.epoch != self.engine.tables.policy_epoch:
            self.learn()
        return self.closed is None

    cdef Endpoint choose_endpoint(self, Cluster cluster, uint64_t tried, const uint8_t *host):
        """The endpoint of a connection or UDP session. host: 16 bytes of the client. Hashes of requests count as least load. None: there is
        no endpoint."""
        cdef Balance balance = self.balance
        cdef Endpoint endpoint
        cdef uint64_t key = 0
        cdef uint8_t health_mask
        if cluster.size == 0:
            return None
        if balance == BY_KEY:
            if self.hash.source:
                key = ef_pick_key(host, INET_SIZE)
            else:
                balance = BY_LOAD
        health_mask = effective_mask(cluster, self.check, self.panic)
        if cluster.runs is None:
            return cluster.pick(tried, health_mask, balance, key)
        endpoint = choose_in_zones(cluster, self.zones, tried, health_mask, balance, key)
        note_zone(cluster, self.zones, balance, endpoint)
        return endpoint

    cdef bint apply(self, Exchange ex) except -1:
        """To a request; True: it was answered, because a unit is closed."""
        if self.apply_backend_policy(ex):
            return True
        if self.body_size >= 0:
            ex.body.limit = <uint64_t>stricter(<int64_t>ex.body.limit, self.body_size)
        ex.request_timeout = self.request_timeout
        return False

    cdef bint apply_backend_policy(self, Exchange ex) except -1:
        """What is said of backends; the same, since what is closed at a backend closes its share."""
        if self.epoch != self.engine.tables.policy_epoch:
            self.learn()
        if self.closed is not None:
            self.closed.refuse(ex, self.closed.status or 500, None, F_INVALID)
            return True
        ex.send_timeout = self.send_timeout
        ex.connect_timeout = self.connect_timeout
        ex.retry_timeout = self.retry_timeout
        ex.outlier = self.outlier
        ex.breaker = self.breaker
        ex.check = self.check
        ex.panic = self.panic
        ex.window = self.window
        ex.slow_start = self.slow
        ex.zones = self.zones
        return False

    cdef bint inject_fault(self, Exchange ex, Routed *at, const ef_request *request) except -1:
        """A fault on purpose has the request, whose only chance this is."""
        return self.fault is not None and not ex.faulted and self.fault.inject(ex, at, request)

    cdef int read(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1:
        """Note of a request on its way to a backend what its answer, or the choice of an endpoint, depends on."""
        if self.compression is not None:
            learn_encodings(ex, base, head)
        return 0 if ex.backend.traffic is not None else self.choose(ex, base, head, query, query_len)

    cdef int choose(self, Exchange ex, const uint8_t *base, const ef_head *head, const uint8_t *query, size_t query_len) except -1:
        """By what its endpoint is chosen."""
        if self.hash is not None:
            return self.hash.read(ex, base, head, query, query_len)
        ex.balance = self.balance
        return 0

    cdef int let_wait(self, Exchange ex) noexcept:
        """Nothing speaks against the request any more: it may be silent for as long as is said."""
        if self.idle_timeout >= 0:
            ex.idle_timeout = self.idle_timeout or NEVER_MS
            ex.idle_deadline = ex.engine.wheel.now + ex.idle_timeout
        return 0
