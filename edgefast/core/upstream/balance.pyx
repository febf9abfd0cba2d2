# What endpoints get of many choices: for benches and for tests of shares.

cdef dict BALANCES = {"least_request": BY_LOAD, "hash": BY_KEY, "round_robin": BY_TURN, "random": BY_CHANCE}


def count_choices(Engine engine, spec, str balance, uint64_t tried, int times):
    """How often each endpoint of an ir.Cluster is chosen, by an ir.LoadBalancer's type; of "hash" each time by another key. With zones, in their order."""
    cdef Cluster cluster = Cluster(engine, spec.name)
    cdef Endpoint endpoint
    cdef Balance how = BALANCES[balance]
    cdef list counts
    cdef uint64_t *found
    cdef int i
    cluster.update(spec)
    found = <uint64_t *>calloc(cluster.size + 1, sizeof(uint64_t))
    if found == NULL:
        raise MemoryError
    try:
        for i in range(times):
            if cluster.runs is not None:
                endpoint = choose(cluster, None, tried, HEED_EJECTED, how, <uint64_t>i)
            else:
                endpoint = cluster.pick(tried, HEED_EJECTED, how, <uint64_t>i)
            found[endpoint.index] += 1
        return [found[i] for i in range(<int>cluster.size)]
    finally:
        free(found)


cdef Endpoint spared(Cluster cluster, UpstreamUser user, uint8_t heed, Endpoint chosen):
    """Slow start: of the requests that a new endpoint would get others get some, at first nine of ten, until its time is over."""
    cdef int64_t age = cluster.engine.wheel.now - chosen.since
    cdef uint64_t tried
    cdef Endpoint other
    if age >= user.slow_start or ef_random(cluster.engine.random) % <uint64_t>user.slow_start < <uint64_t>max(age, user.slow_start // 10):
        return chosen
    tried = user.tried_of(cluster)
    if chosen.index < 64:
        tried |= <uint64_t>1 << chosen.index
    if cluster.runs is not None:
        other = choose(cluster, user.zones, tried, heed, user.balance, user.hash_key)
    else:
        other = cluster.pick(tried, heed, user.balance, user.hash_key)
    if other is None or cluster.load[other.index].out & heed or (other.index < 64 and tried >> other.index & 1):
        return chosen  # there is no better one
    return other
