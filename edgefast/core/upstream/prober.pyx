# Who asks endpoints how they are: one worker of the proxy, for all of them (csrc/health.h, ef_health_claim).
#
# In: clusters, and how the table's rules treat them (ir.Cluster.treatments), policies with checks. Out: a Watch for each cluster and check, a
# Probe for each of its endpoints; their states, which all workers see at their next choice. When this worker is gone another one goes on with the
# states that it has left. Where nobody has a check it does nothing and costs nothing. Must never ask an endpoint twice in an interval, however many rules want to know.

cdef class Prober(Timer):
    def __init__(self, Engine engine):
        self.engine = engine
        self.watches = {}

    cdef int look(self) except -1:
        """Tables or time have gone on."""
        cdef Tables tables = self.engine.tables
        cdef Watch watch
        if not tables.checks and not self.watches:
            self.asks = False
            self.engine.wheel.disarm(self)
            return self.engine.health.resign()
        if not self.asks:
            self.asks = self.engine.health.claim()
            self.epoch = 0
        if self.asks:
            if self.epoch != tables.policy_epoch + tables.treated_epoch:
                self.learn()
            for watch in list(self.watches.values()):
                watch.look()
        return self.engine.wheel.arm(self, self.engine.wheel.now + PROBER_LOOK_MS)

    cdef int on_deadline(self, int64_t now) except -1:
        try:
            return self.look()
        except Exception:
            _log.exception("a look at what is to be checked")
            return self.engine.wheel.arm(self, now + PROBER_LOOK_MS)

    cdef int learn(self) except -1:
        """Which checks clusters have, of the policies as they are now."""
        cdef Tables tables = self.engine.tables
        cdef EndpointCheck check
        cdef dict wanted = {}
        for name, treatments in tables.treated.items():
            for _, units in treatments:
                for unit in units:
                    policy = tables.policies.get(unit)
                    said = (<Policy>policy).traffic.check if policy is not None and (<Policy>policy).traffic is not None else None
                    if said is not None:
                        check = self.engine.checks.of(said)
                        wanted[name, check] = None
                        break
        for key in [key for key in self.watches if key not in wanted]:
            (<Watch>self.watches.pop(key)).stop()
        for name, check in wanted:
            if (name, check) not in self.watches:
                self.watches[name, check] = Watch(self.engine, tables.cluster(name), check)
        self.epoch = tables.policy_epoch + tables.treated_epoch
        return 0

    cdef int stop(self) except -1:
        """For good: another worker may go on."""
        self.engine.wheel.disarm(self)
        for watch in self.watches.values():
            (<Watch>watch).stop()
        self.watches = {}
        self.asks = False
        return self.engine.health.resign()


cdef class Watch:
    def __init__(self, Engine engine, Cluster cluster, EndpointCheck check):
        self.engine = engine
        self.cluster = self.asked = cluster
        self.check = check
        self.probes = {}
        self.settings = HttpSettings(ir.HttpSettings(connect_timeout=check.spec.timeout))
        if check.spec.port:
            self.asked = Cluster(engine, f"{cluster.name}#{check.spec.port}")

    cdef int look(self) except -1:
        """A probe for each endpoint that there is."""
        cdef Endpoint endpoint, target
        cdef Probe probe
        cdef dict probes = {}, targets = {}
        if self.version == self.cluster.version + 1 and self.seen is self.cluster.spec:
            return 0
        if self.asked is not self.cluster:
            self.asked.update(at_port(self.cluster, self.check.spec.port))
            for target in self.asked.endpoints:
                targets[target.host] = target
        for endpoint in self.cluster.endpoints:
            if endpoint.port == 0 and self.check.spec.port:
                continue  # a unix socket has no other port: nobody knows how it is
            target = endpoint if self.asked is self.cluster else targets.get(endpoint.host)
            probe = self.probes.pop(endpoint.key, None)
            if probe is None or probe.about is not endpoint or probe.target is not target:
                if probe is not None:
                    probe.stop()
                probe = Probe.__new__(Probe)
                probe.open(self, endpoint, target)
            probes[endpoint.key] = probe
        for probe in self.probes.values():
            probe.stop()
        self.probes = probes
        self.version, self.seen = self.cluster.version + 1, self.cluster.spec
        return 0

    cdef int stop(self) except -1:
        cdef Probe probe
        for probe in self.probes.values():
            probe.stop()
        self.probes = {}
        if self.asked is not self.cluster:
            self.asked.update(None)
        return 0


cdef object at_port(Cluster cluster, int port):
    """Its spec with all endpoints as they are now, at another port; None: it is gone."""
    cdef Endpoint endpoint
    if cluster.spec is None:
        return None
    return msgspec.structs.replace(
        cluster.spec,
        endpoints=tuple([ir.Endpoint(address=endpoint.host, port=port) for endpoint in cluster.endpoints if endpoint.port]),
        fallback=(),
    )
