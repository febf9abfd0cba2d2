# Check: health checks of endpoints and their results, for rules with a check in their policies (traffic/traffic.pyx).
#
# In: ir.HealthChecks; records in which one worker writes the health of each endpoint (prober.pyx).
# Out: bits of endpoints that a check has marked unhealthy; only rules with that check use them. Equal checks are one. Without space for a
# record, other workers see none: there its endpoint counts as healthy. Must never probe an endpoint itself.

cdef class EndpointCheck:
    def __init__(self, spec):
        self.spec = spec
        self.digest = blake2b(msgspec.msgpack.encode(spec), digest_size=16).hexdigest().encode()


cdef class EndpointChecks:
    def __init__(self):
        self.known = WeakValueDictionary()

    cdef EndpointCheck of(self, object spec):
        check = self.known.get(spec)
        if check is None:
            check = self.known[spec] = EndpointCheck(spec)
        return <EndpointCheck>check


cdef HealthRecord checked_record(Health health, Cluster cluster, Endpoint endpoint, EndpointCheck check):
    """Where it is written how the endpoint is by this check."""
    return health.hold(b"check/%b/%b/%b" % (check.digest, cluster.name.encode(), endpoint.text))


cdef uint8_t effective_mask(Cluster cluster, EndpointCheck check, uint32_t panic) except 0:
    """Bits that a user with this check heeds; none but the one of nothing where so many are out that all are used (panicThreshold)."""
    cdef uint8_t health_mask = MASK_EJECTED
    cdef uint32_t i, well = 0
    if cluster.seen != ef_health_version(cluster.record.at):
        cluster.look()
    if check is not None:
        health_mask |= cluster.bit_of(check)
    if panic:
        for i in range(cluster.size):
            well += (cluster.load[i].out & health_mask) == 0
        if <uint64_t>well * 100 < <uint64_t>panic * cluster.size:
            return MASK_PASSED
    return health_mask
