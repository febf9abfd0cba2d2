# Prober: one worker of the proxy checks endpoints for all workers (csrc/health.h, ef_health_claim).
#
# In: clusters, and the treatments of the table's rules (ir.Cluster.treatments), policies with checks.
# Out: in every worker the checks of its clusters; in the probing one a Watch for each cluster and check, a Probe for each of its endpoints.
# All workers see the states at their next choice. When this worker is gone another one goes on, with the states that other workers have.
# Without checks it does nothing and costs nothing. One check probes an endpoint once in an interval, however many rules and workers use it.
# The exception is a retry after an attempt without information.
# Must never block the loop in proportion to the endpoints: it begins with a bounded number at a time.

cdef class Prober(CheckHooks):
    def __init__(self, Engine engine):
        self.engine = engine
        self.health = Health(None, 0)
        self.heeding, self.watches, self.wanted = {}, {}, {}
        self.changed, self.queue = deque(), deque()

    cdef void count(self, int probes) noexcept:
        """More endpoints are probed, or fewer."""
        self.probes += <uint32_t>probes

    cdef int wake(self) except -1:
        """There is another table. What is wrong here is no fault of the table's."""
        return self.on_deadline(self.engine.wheel.now)

    cdef int on_deadline(self, int64_t now) except -1:
        cdef int64_t next_look = PROBER_LOOK_MS
        try:
            next_look = self.look()
        except Exception:
            _log.exception("reading the health checks of the table")
        if next_look:
            return self.engine.wheel.arm(self, self.engine.wheel.now + next_look)
        self.engine.wheel.disarm(self)
        return 0

    cdef int64_t look(self) except -1:
        """Tables or time have gone on. In how many ms it is to be looked again; 0: there is nothing to look at."""
        cdef Tables tables = self.engine.tables
        cdef Watch watch
        cdef uint32_t begun = 0
        if not tables.checks and not self.heeding:
            self.asks = False
            self.engine.health.resign()
            return 0
        if not self.asks and self.engine.health.claim():
            self.asks = True
            self.changed.extend([name for name in self.wanted if name not in self.changed])
        if self.epoch != tables.policy_epoch + tables.treated_epoch:
            self.learn()
        if self.busy < PROBES_MOST:
            self.call(PROBES_MOST - self.busy)
        while self.changed and begun < PROBER_SLICE:
            begun += 8
            self.settle(self.changed.popleft())
        for watches in list(self.watches.values()):
            for watch in list(watches.values()):
                if begun >= PROBER_SLICE:
                    return TICK_MS
                begun += watch.look()
        return TICK_MS if self.changed else PROBER_LOOK_MS

    cdef int learn(self) except -1:
        """Which checks clusters have, of the policies as they are now. Most clusters are treated as others are, which is asked once."""
        cdef Tables tables = self.engine.tables
        cdef dict wanted = {}, known = {}
        cdef list found, many = []
        for name, treatments in tables.treated.items():
            found = known.get(treatments)
            if found is None:
                found = known[treatments] = self.checks_of(treatments)
            if found:
                wanted[name] = found[:CHECKS_MOST]
                if len(found) > CHECKS_MOST:
                    many.append(name)
        if many:
            _log.warning(
                "%s has more than %d health checks (%d more); rules with the additional checks work without them", many[0],
                CHECKS_MOST, len(many) - 1,
            )
        names = [name for name in self.wanted if name not in wanted]
        names += [name for name, found in wanted.items() if self.wanted.get(name) != found]
        self.wanted = wanted
        self.changed = deque(dict.fromkeys([*self.changed, *names]))
        self.epoch = tables.policy_epoch + tables.treated_epoch
        return 0

    cdef list checks_of(self, tuple treatments):
        """Those of one cluster: of each way in which it is treated what the first unit with any says."""
        cdef Policy policy
        cdef list found = []
        for _, units in treatments:
            for unit in units:
                policy = self.engine.tables.policies.get(unit)
                if policy is not None and has_check(policy.traffic):
                    check = self.engine.checks.of(policy.traffic.check)
                    if check not in found:
                        found.append(check)
                    break
        return found

    cdef int settle(self, str name) except -1:
        """The checks of one cluster are others."""
        cdef list checks = self.wanted.get(name, [])
        cdef Cluster cluster = self.heeding.pop(name, None)
        cdef dict before = self.watches.pop(name, {}), now = {}
        cdef Watch watch, heir_of = None
        if checks:
            cluster = self.heeding[name] = self.engine.tables.cluster(name)
        if self.asks:
            for check in checks:
                if check in before:
                    now[check] = before.pop(check)
            for watch in before.values():
                watch.stop()
                heir_of = watch
            for check in checks:
                if check not in now:
                    watch = now[check] = Watch(self.engine, cluster, check)
                    watch.heir_of = heir_of
            if now:
                self.watches[name] = now
        return cluster.apply_checks(checks) if cluster is not None else 0

    # --- who is asked ------------------------------------------------------------------------------------------------

    cdef int enter(self, Probe probe) except -1:
        """It is its turn, or it waits for that."""
        if self.busy >= PROBES_MOST:
            probe.queued = True
            self.queue.append(probe)
            return 0
        self.busy += 1
        return probe.start()

    cdef int leave(self) except -1:
        """One has been asked."""
        self.busy -= 1
        return self.call(1)

    cdef int call(self, uint32_t most) except -1:
        """So many of those that wait, soon: not from within one that has ended."""
        cdef Probe probe
        while self.queue and most:
            probe = self.queue.popleft()
            probe.queued = False
            if not probe.over:
                self.engine.wheel.arm(probe, self.engine.wheel.now)
                most -= 1
        return 0

    cdef int report(self, str line) except -1:
        """Of an endpoint whose state is another one."""
        cdef int64_t now = self.engine.wheel.now
        if now >= self.reported_until:
            if self.unreported:
                _log.warning("%d more endpoints changed their state by health checks", self.unreported)
            self.reported_until = now + PROBES_TOLD_MS
            self.reported = self.unreported = 0
        self.reported += 1
        if self.reported > PROBES_TOLD:
            self.unreported += 1
        else:
            _log.warning("%s", line)
        return 0

    cdef int stop(self) except -1:
        """For good: another worker may go on."""
        self.engine.wheel.disarm(self)
        for watches in self.watches.values():
            for watch in watches.values():
                (<Watch>watch).stop()
        self.watches = {}
        self.heeding = {}
        self.queue.clear()
        self.asks = False
        return self.engine.health.resign()


cdef class Watch:
    def __init__(self, Engine engine, Cluster cluster, EndpointCheck check):
        self.engine = engine
        self.cluster = cluster
        self.check = check
        self.probes = {}
        self.settings = HttpSettings(ir.HttpSettings(connect_timeout=check.spec.timeout))
        self.brief = HttpSettings(ir.HttpSettings(connect_timeout=check.spec.timeout, upstream_idle=1))
        self.asked = Cluster(engine, f"{cluster.name} {check.digest.decode()}", prober_of(engine).health)

    cdef uint32_t look(self) except? 4294967295:
        """A probe for each endpoint that there is. How many are new."""
        cdef Endpoint endpoint, target
        cdef Probe probe
        cdef dict targets = {}, wanted = {}
        cdef uint32_t begun = 0
        cdef bint first = self.version == 0
        if self.version == self.cluster.version + 1 and self.seen is self.cluster.spec:
            return 0
        self.asked.update(spec_to_ask(self.cluster, self.check.spec.port))
        for target in self.asked.endpoints:
            targets[target.host if self.check.spec.port else target.key] = target
        for endpoint in self.cluster.endpoints:
            if endpoint.port or not self.check.spec.port:  # a unix socket has no other port: nobody knows how it is
                wanted[endpoint.key] = endpoint
        for key in list(self.probes):
            probe = self.probes[key]
            endpoint = wanted.get(key)
            if probe.about is not endpoint or probe.target is not targets.get(probe.about.host if self.check.spec.port else key):
                del self.probes[key]
                probe.stop()
        for key, endpoint in wanted.items():
            if key in self.probes:
                continue
            probe = Probe.__new__(Probe)
            self.probes[key] = probe
            probe.open(self, endpoint, targets.get(endpoint.host if self.check.spec.port else key))
            if first:
                self.take_over(probe)
            begun += 1
        self.heir_of = None
        self.version, self.seen = self.cluster.version + 1, self.cluster.spec
        return begun

    cdef int take_over(self, Probe probe) except -1:
        """Of the endpoints that a check begins with: what the one before it has found out, else nothing speaks against them."""
        cdef Probe before = self.heir_of.probes.get(probe.about.key) if self.heir_of is not None else None
        cdef uint64_t state = before.record.at.until_ms if before is not None else TRUSTED
        if probe.record.at.until_ms == UNKNOWN and state != UNKNOWN:
            ef_health_put(self.cluster.record.at, probe.record.at, state)
        return 0

    cdef int stop(self) except -1:
        cdef Probe probe
        for probe in self.probes.values():
            probe.stop()
        return self.asked.update(None)


cdef object spec_to_ask(Cluster cluster, int port):
    """A cluster's spec with all endpoints as they are now, at that port, 0: at theirs; None: it is gone."""
    cdef Endpoint endpoint
    if cluster.spec is None:
        return None
    return msgspec.structs.replace(
        cluster.spec,
        endpoints=tuple([ir.Endpoint(address=endpoint.host, port=port or endpoint.port) for endpoint in cluster.endpoints if endpoint.port or not port]),
        fallback=(),
        max_connections=1 << 30,  # how many are asked at one time is the prober's affair
        max_pending=cluster.size,
    )
