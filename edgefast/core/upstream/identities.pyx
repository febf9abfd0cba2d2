# Identities: the identity of endpoints in sessions, and their present position (traffic/sessionpolicy.pyx).
#
# In: the endpoints of a cluster. Out: the position of the one that a session names, -1 if it is gone. An identity is a hash of the
# cluster's name, the address and the port. It is the same in every worker, on every machine, after every restart, and differs between
# clusters. It has no key, because no key exists that all of these share and that outlives them. A client that knows a backend's name can
# guess the address behind an identity, and can name any of them. A request still reaches only endpoints of its backend.

cdef uint64_t identity_of(Endpoint endpoint) except? 0:
    if endpoint.identity == 0:
        endpoint.identity = hash_same(b"session/1\0%b\0%b" % (endpoint.cluster.name.encode(), endpoint.text)) or 1
    return endpoint.identity


cdef class Identities:
    def __cinit__(self, Cluster cluster):
        cdef list every = cluster.endpoints + cluster.draining
        cdef Endpoint endpoint
        cdef uint64_t old
        if ef_map_init(&self.places, len(every)) < 0:
            raise MemoryError
        self.made = True
        for endpoint in reversed(every):  # of two of one identity, which chance alone could bring, the first
            if ef_map_put(&self.places, identity_of(endpoint), <uint64_t>endpoint.index, &old) < 0:
                raise MemoryError

    def __dealloc__(self):
        if self.made:
            ef_map_free(&self.places)

    cdef int find(self, uint64_t identity) noexcept:
        cdef uint64_t place
        return <int>place if ef_map_get(&self.places, identity, &place) > 0 else -1


cdef Endpoint named_endpoint(Cluster cluster, uint64_t identity):
    """None: it has none of that identity."""
    cdef int place
    if cluster.identities is None:
        cluster.identities = Identities(cluster)
    place = cluster.identities.find(identity)
    if place < 0:
        return None
    if <uint32_t>place < cluster.size:
        return <Endpoint>PyList_GET_ITEM(cluster.endpoints, place)
    return <Endpoint>PyList_GET_ITEM(cluster.draining, place - <int>cluster.size)


# --- requests that are bound to the endpoint that their session names ------------------------------------------------------------------------

cdef bint takes_bound(Cluster cluster, Endpoint endpoint, uint8_t health_mask) except -1:
    """It is still known, and nobody has found it to be out."""
    if cluster.seen != ef_health_version(cluster.record.at):
        cluster.look()
    if endpoint.index < 0:
        return False
    return not cluster.load[endpoint.index].out & health_mask or not cluster.load[endpoint.index].out & all_if_none(cluster, health_mask)


cdef Endpoint choose_endpoint(Cluster cluster, UpstreamUser user, uint8_t health_mask):
    """The one that a user is bound to, else by balance; None: there is none."""
    cdef Endpoint endpoint = user.bound
    if endpoint is not None:
        if endpoint.cluster is cluster and takes_bound(cluster, endpoint, health_mask):
            return endpoint
        user.bound = None
    endpoint = choose(cluster, user, health_mask)
    if endpoint is not None and user.slow_start and endpoint.since:
        endpoint = spared(cluster, user, health_mask, endpoint)
    note_zone(cluster, user.zones, user.balance, endpoint)
    return endpoint


cdef inline bint is_full(Pool pool, UpstreamUser user) noexcept:
    """The endpoint that it is bound to has all the connections that it may have (circuitBreaker.perEndpoint)."""
    return user.breaker is not None and user.breaker.each >= 0 and not endpoint_has_room(pool, user.bound, user.breaker)


cdef bint make_place(Pool pool, UpstreamUser user) except -1:
    """All connections that there may be are there: one of another endpoint that nobody uses ends for the one that the user needs, which is
    counted then."""
    cdef Endpoint endpoint
    if user.bound is None or is_full(pool, user):
        return False
    for endpoint in pool.endpoints + (<Cluster>pool).draining:
        if endpoint is user.bound:
            continue
        if PyList_GET_SIZE(endpoint.idle):
            (<Outbound>endpoint.idle[0]).stop(True)
            return may_connect(pool, user, user.bound)
        for session in endpoint.shared:
            if (<MultiplexedSession>session).is_idle():
                (<MultiplexedSession>session).stop(True)
                return may_connect(pool, user, user.bound)
    return False


cdef bint is_bound_elsewhere(Pool pool, Endpoint endpoint):
    """Whose turn it is needs a connection of another endpoint."""
    cdef UpstreamUser user
    if pool.pending.waiting() == 0:
        return False
    user = pool.pending.first()
    return user.bound is not None and user.bound is not endpoint and not is_full(pool, user)
