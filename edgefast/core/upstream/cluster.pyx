# Cluster: its endpoints as applied and as their names resolve, and the choice among them.
#
# In: ir.Cluster (updated in place, so that health and pools survive a rollout), answers of the resolver.
# Out: an endpoint, by least request of two, or by the balancing of a policy (csrc/pick.h). Its connections are the pool's.

cdef dict UPSTREAM_PROTOCOLS = {"http1": SPEAKS_H1, "h2": SPEAKS_H2, "alpn": SPEAKS_ALPN}


cdef class Cluster(Pool):
    def __cinit__(self, Engine engine, str name, Health health=None):
        """health: where its records are; None: where those of the worker are."""
        self.engine = engine
        self.health = health if health is not None else engine.health
        self.name = name
        self.log = json_encode(name)
        self.resolved = {}
        self.refused = {}
        self.endpoints = []
        self.draining = []
        self.record = self.health.hold(b"cluster/" + name.encode())
        self.own = self.record.own
        self.release_to = -1
        self.checks = []
        self.pending = PoolQueue.__new__(PoolQueue, engine)
        self.pending.own = self.own

    def __dealloc__(self):
        free(self.load)
        free(self.ids)
        free(self.records)
        free(self.turns)

    cdef int update(self, object spec) except -1:
        """Take a new ir.Cluster (or None: removed). Raises what is wrong with its TLS settings, then nothing has changed."""
        cdef Endpoint endpoint
        tls = spec.tls if spec is not None else None
        protocol = UPSTREAM_PROTOCOLS[spec.protocol] if spec is not None else self.protocol
        context = alone = self.engine.upstream_tls(tls) if tls is not None else None
        if tls is not None and protocol != SPEAKS_H1:
            context = self.engine.upstream_tls(tls, ("h2",) if protocol == SPEAKS_H2 else ("h2", "http/1.1"))
        changes = context is not self.tls or (tls.sni if tls is not None else None) != self.sni or protocol != self.protocol
        self.tls_h1 = alone
        self.protocol = protocol
        if changes:
            for endpoint in self.endpoints + self.draining:  # what was made with the old settings is not used again
                endpoint.stop_idle()
                endpoint.speaks = SPEAKS_ALPN
        self.tls = context
        self.tls_stream = None
        self.sni = tls.sni if tls is not None else None
        self.spec = spec
        self.zone_rule = self.engine.zones.rule_of(spec.zones) if spec is not None else None
        if spec is not None:
            self.max_connections, self.max_pending = spec.max_connections, spec.max_pending
        self.tightest = self.tightest_each = 0  # of rules that may be others now
        self.rebuild()
        if spec is None:  # nobody waits here any more
            self.request_at = 0
            self.rearm()
        return 0

    cdef object stream_tls(self):
        """TLS of connections that are passed on, which are of no protocol that we know; None: plain."""
        if self.tls_stream is None and self.tls is not None:
            self.tls_stream = self.engine.upstream_tls(self.spec.tls, ())
        return self.tls_stream

    cdef int rebuild(self) except -1:
        cdef Endpoint endpoint
        cdef ef_endpoint_load *load
        cdef uint64_t *ids
        cdef ef_health_record **records
        cdef dict before = {}
        cdef list now = [], found = [], every = self.endpoints + self.draining
        cdef set seen = set()
        cdef uint32_t size = 0
        for endpoint in every:
            before[endpoint.key] = endpoint
        wanted = ()
        if self.spec is not None:
            wanted = self.spec.endpoints or self.spec.fallback
        for item in wanted:
            if item.hostname:
                if item.hostname not in self.resolved:
                    self.resolved[item.hostname] = None
                    self.engine.resolver.watch(item.hostname, self._on_resolved)
                addresses = self.usable(item.hostname)
            else:
                addresses = (item.address,)
            for address in addresses:
                if (address, item.port) not in seen:
                    seen.add((address, item.port))
                    found.append((address, item.port, item.weight, item.zone))
        runs = order_by_zone(self.engine, found)
        size = <uint32_t>len(found)
        if self.spec is not None and self.spec.endpoints:
            for item in self.spec.fallback:
                if item.address and (item.address, item.port) not in seen:
                    seen.add((item.address, item.port))
                    found.append((item.address, item.port, 0, item.zone))
        hostnames = {item.hostname for item in wanted if item.hostname}
        for hostname in [name for name in self.resolved if name not in hostnames]:
            del self.resolved[hostname]
            self.refused.pop(hostname, None)
            self.engine.resolver.forget(hostname, self._on_resolved)
        load = <ef_endpoint_load *>calloc(len(found) + 1, sizeof(ef_endpoint_load))
        ids = <uint64_t *>calloc(len(found) + 1, sizeof(uint64_t))
        records = <ef_health_record **>calloc(len(found) + 1, sizeof(ef_health_record *))
        if load == NULL or ids == NULL or records == NULL:
            free(load)
            free(ids)
            free(records)
            raise MemoryError
        for at, (address, port, weight, zone) in enumerate(found):
            endpoint = before.pop((address, port), None)
            if endpoint is None:
                endpoint = Endpoint(self, address, port)
                endpoint.index = -1
                endpoint.since = self.engine.wheel.now if self.size else 0
            if endpoint.index >= 0:
                load[len(now)] = self.load[endpoint.index]
            load[len(now)].weight = weight
            ids[len(now)] = endpoint.id
            records[len(now)] = endpoint.record.at
            endpoint.zone = zone
            now.append(endpoint)
            if <uint32_t>at >= size and endpoint.is_regular():
                endpoint.stop_idle()
                endpoint.checked.clear()  # nobody asks it any more: it stays what it was found to be
        for endpoint in before.values():
            endpoint.index = -1
            endpoint.stop_idle()
        for i, item in enumerate(now):
            (<Endpoint>item).index = i
        if now != every or size != self.size:
            self.version += 1
        free(self.load)
        free(self.ids)
        free(self.records)
        free(self.turns)
        self.load, self.ids, self.records, self.turns = load, ids, records, NULL
        self.endpoints, self.draining, self.runs = now[:size], now[size:], runs
        self.size = size
        self.identities = None
        self.look()
        return self.serve_pending()

    cdef int look(self) except -1:
        cdef uint64_t now = self.engine.wheel.now, first = 0
        cdef uint32_t i
        cdef uint8_t out
        self.seen = ef_health_version(self.record.at)
        for i in range(self.size + <uint32_t>PyList_GET_SIZE(self.draining)):
            out = ef_health_is_out(self.records[i], now)  # HEED_EJECTED
            if out and (first == 0 or self.records[i].until_ms < first):
                first = self.records[i].until_ms
            if i >= self.size:
                out |= self.load[i].out & ~(MASK_EJECTED | MASK_PASSED)
            elif self.checks:
                out |= self.out_by_checks(<Endpoint>PyList_GET_ITEM(self.endpoints, i))
            self.load[i].out = out
        self.back_at = first
        if self.runs is not None:
            self.runs.forget()
        return self.rearm()

    cdef int apply_checks(self, list checks) except -1:
        """These are the checks of the table's rules, CHECKS_MOST at most."""
        cdef Endpoint endpoint
        cdef uint32_t i
        if checks == self.checks:
            return 0
        for endpoint in self.endpoints:
            known = dict(zip(self.checks, endpoint.checked))
            endpoint.checked = [known[one] for one in self.checks if one in known and one in checks]
        self.checks = [one for one in self.checks if one in checks]
        self.checks += [one for one in checks if one not in self.checks]
        for i in range(self.size + <uint32_t>PyList_GET_SIZE(self.draining)):
            self.load[i].out &= MASK_EJECTED  # the bits are others' now
        return self.look()

    cdef uint8_t out_by_checks(self, Endpoint endpoint) except? 255:
        """The bits of those by which it is out. Who is well again, begins anew (slow start)."""
        cdef HealthRecord record
        cdef uint8_t out = 0, bit = MASK_CHECK
        cdef uint64_t state
        cdef Py_ssize_t n
        while PyList_GET_SIZE(endpoint.checked) < PyList_GET_SIZE(self.checks):
            endpoint.checked.append(
                checked_record(self.health, self, endpoint, <EndpointCheck>self.checks[PyList_GET_SIZE(endpoint.checked)])
            )
        for n in range(PyList_GET_SIZE(self.checks)):
            record = <HealthRecord>PyList_GET_ITEM(endpoint.checked, n)
            state = record.at.until_ms
            if state == WELL:
                endpoint.since = max(endpoint.since, <int64_t>record.at.ejected_ms)
            elif state != TRUSTED and (record.segment != NULL or self.health.segment == NULL or self.engine.prober.asks):
                out |= bit
            bit <<= 1
        return out

    cdef uint8_t bit_of(self, EndpointCheck check) noexcept:
        """Of endpoints that are out by it; 0: it is not made here."""
        cdef Py_ssize_t n
        for n in range(PyList_GET_SIZE(self.checks)):
            if PyList_GET_ITEM(self.checks, n) == <PyObject *>check:
                return <uint8_t>(MASK_CHECK << n)
        return 0

    def _on_resolved(self, hostname, addresses):
        """The resolver's answer: a tuple of addresses, () when the name has none. The last good answer is the resolver's care."""
        if hostname in self.resolved and self.resolved[hostname] != addresses:
            self.resolved[hostname] = addresses
            self.rebuild()

    cdef object usable(self, hostname):
        """The addresses of a name that are allowed as backends."""
        addresses = self.resolved[hostname]
        if not addresses:
            return ()
        refused = {one: why_reserved(one, self.spec.allowed) for one in addresses}
        refused = {one: why for one, why in refused.items() if why}
        if not refused:
            return addresses
        if self.refused.get(hostname) != refused:  # logged once, not at each change of the table
            self.refused[hostname] = refused
            said = ", ".join(f"{address} ({why})" for address, why in refused.items())
            _log.warning("cluster %s: %s resolves to addresses that are not allowed as backends: %s", self.name, hostname, said)
        return tuple([one for one in addresses if one not in refused])

    cdef bint resolving(self):
        for addresses in self.resolved.values():
            if addresses is None:
                return True
        return False

    cdef Endpoint pick(self, uint64_t tried, uint8_t health_mask, Balance balance, uint64_t key):
        cdef int i
        if self.size == 1:
            return <Endpoint>PyList_GET_ITEM(self.endpoints, 0)
        if self.seen != ef_health_version(self.record.at):
            self.look()
        if balance == BY_LOAD:
            i = ef_pick_endpoint(self.load, self.size, tried, health_mask, ef_random(self.engine.random))
        elif balance == BY_KEY:
            i = ef_pick_hashed(self.load, self.ids, self.size, tried, health_mask, key)
        elif balance == BY_TURN:
            i = ef_pick_turn(self.load, self.places(), self.size, tried, health_mask)
        else:
            i = ef_pick_random(self.load, self.size, tried, health_mask, ef_random(self.engine.random))
        if i < 0:
            return None
        return <Endpoint>PyList_GET_ITEM(self.endpoints, i)

    cdef int64_t *places(self) except NULL:
        """Of each endpoint in turns."""
        if self.turns == NULL:
            self.turns = <int64_t *>calloc(self.size + 1, sizeof(int64_t))
            if self.turns == NULL:
                raise MemoryError
            ef_pick_begin_turns(self.load, self.turns, self.size, self.engine.random)
        return self.turns

    def dump(self):
        self.look()
        return {
            "name": self.name,
            "connections": self.own[EF_SHARE_CONNECTIONS],
            "requests": self.own[EF_SHARE_REQUESTS],
            "repeats": self.own[EF_SHARE_RETRIES],
            "pending": self.own[EF_SHARE_PENDING],
            "bodies": self.bodies.places.count if self.bodies is not None else 0,
            "bodies_waiting": self.bodies.waiting() if self.bodies is not None else 0,
            "slow_answers": len(self.answers.holders) if self.answers is not None else 0,
            "long_streams": self.streams.count if self.streams is not None else 0,
            "endpoints": [
                {
                    "address": (<Endpoint>e).text.decode(),
                    "zone": (<Endpoint>e).zone,
                    "active": self.load[(<Endpoint>e).index].active,
                    "idle": len((<Endpoint>e).idle) + sum([(<MultiplexedSession>one).is_idle() for one in (<Endpoint>e).shared]),
                    "shared": len((<Endpoint>e).shared),
                    "streams": sum([(<MultiplexedSession>one).load() for one in (<Endpoint>e).shared]),
                    "draining": not (<Endpoint>e).is_regular(),
                    "healthy": not self.load[(<Endpoint>e).index].out,
                    "ejected": bool(self.load[(<Endpoint>e).index].out & MASK_EJECTED),
                    "failures": (<Endpoint>e).record.at.failures[EF_FAILURE_LOCAL],
                    "ejections": (<Endpoint>e).record.at.ejections,
                    "connections": (<Endpoint>e).record.own[EF_SHARE_CONNECTIONS],
                }
                for e in self.endpoints + self.draining
            ],
        }
