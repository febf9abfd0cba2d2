# Outlier: ejects failing endpoints for a while, by policies (ir.OutlierDetection) or by the default.
#
# In: the results of attempts of a rule, as all rules and workers count them. Out: ejected endpoints, for all users. All rules count the
# same failures; each rule has its own threshold. A rule may therefore eject for failures that others found.
# Must never eject more of a cluster than the policy allows; when all are ejected, any is used (csrc/pick.h).

cdef class Outlier:
    def __init__(self, spec=None):
        """spec: ir.OutlierDetection; None: no policy says anything."""
        self.max_ms = EJECT_MAX_MS
        if spec is None:
            self.after[EF_FAILURE_LOCAL] = EJECT_AFTER
            self.base_ms = EJECT_MS
            self.percent = EJECT_PERCENT
            return
        if spec.local is None:
            self.after[EF_FAILURE_ANY_GATEWAY], self.after[EF_FAILURE_ANY_SERVER] = spec.gateway, spec.server
        else:
            self.after[EF_FAILURE_LOCAL] = spec.local
            self.after[EF_FAILURE_GATEWAY], self.after[EF_FAILURE_SERVER] = spec.gateway, spec.server
        self.base_ms = spec.base
        self.max_ms = max(<uint64_t>EJECT_MAX_MS, self.base_ms)
        self.sweep_ms = spec.interval
        self.percent = spec.percent
        self.always_one = spec.always_one
        self.threshold, self.interval = spec.failures, spec.interval or FAILURE_INTERVAL_MS
        self.apart = spec.local is not None

    cdef int failed(self, Endpoint endpoint, bint reported_outlier) except -1:
        """A connect, or a connection without a whole answer; `reported_outlier`: its answer counts already."""
        self.evaluate(endpoint, EF_FAILURE_LOCAL)
        if reported_outlier:
            return 0
        if self.threshold:
            note_answer(self, endpoint, EF_SHARE_LOST, False)
        self.evaluate(endpoint, EF_FAILURE_ANY_GATEWAY)
        return self.evaluate(endpoint, EF_FAILURE_ANY_SERVER)

    cdef int answered(self, Endpoint endpoint, int status) except -1:
        """It has answered with this status, of gRPC the one that says as much."""
        if self.threshold:
            note_answer(self, endpoint, EF_SHARE_ANSWERS, status >= 500)
        if status < 500:
            ef_health_succeed(endpoint.record.at, EF_FAILURE_SERVER)
            ef_health_succeed(endpoint.record.at, EF_FAILURE_ANY_SERVER)
        else:
            self.evaluate(endpoint, EF_FAILURE_SERVER)
            self.evaluate(endpoint, EF_FAILURE_ANY_SERVER)
        if 502 <= status <= 504:
            self.evaluate(endpoint, EF_FAILURE_GATEWAY)
            return self.evaluate(endpoint, EF_FAILURE_ANY_GATEWAY)
        ef_health_succeed(endpoint.record.at, EF_FAILURE_GATEWAY)
        ef_health_succeed(endpoint.record.at, EF_FAILURE_ANY_GATEWAY)
        return 0

    cdef int evaluate(self, Endpoint endpoint, uint32_t kind) except -1:
        """One more failure in a row."""
        cdef uint32_t many = ef_health_fail(endpoint.record.at, kind)
        return self.eject(endpoint) if self.after[kind] and many >= self.after[kind] else 0

    cdef int eject(self, Endpoint endpoint) except -1:
        """If there may be one more that is out."""
        cdef Cluster cluster = endpoint.cluster
        cdef ef_ejection how
        if not endpoint.is_regular():
            return 0
        how.now_ms = cluster.engine.wheel.now
        how.base_ms, how.max_ms, how.sweep_ms = self.base_ms, self.max_ms, self.sweep_ms
        how.most = self.most(cluster.size)
        if ef_health_eject(cluster.record.at, cluster.records, cluster.size, endpoint.index, &how):
            cluster.engine.count(G_ENDPOINT_EJECTIONS)
        return 0

    cdef uint32_t most(self, uint32_t size) noexcept:
        """How many of so many may be out."""
        cdef uint32_t many = <uint32_t>(<uint64_t>size * self.percent // 100)
        return 1 if many == 0 and self.always_one else many


cdef Outlier outlier_of(Engine engine, object spec):
    """Of equal words there is one: what it has counted so far goes on."""
    found = engine.outliers.get(spec)
    if found is None:
        found = engine.outliers[spec] = Outlier(spec)
    return <Outlier>found
