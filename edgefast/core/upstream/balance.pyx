# Balance: the distribution of many choices over endpoints, for benches and for tests of shares.

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
                endpoint = choose_in_zones(cluster, None, tried, MASK_EJECTED, how, <uint64_t>i)
            else:
                endpoint = cluster.pick(tried, MASK_EJECTED, how, <uint64_t>i)
            found[endpoint.index] += 1
        return [found[i] for i in range(<int>cluster.size)]
    finally:
        free(found)


cdef Endpoint spared(Cluster cluster, UpstreamUser user, uint8_t health_mask, Endpoint chosen):
    """Slow start: of the requests that a new endpoint would get others get some, at first nine of ten, until its time is over. It is drawn
    again until one may have it: so each has the share that its age and its weight are."""
    cdef int64_t now = cluster.engine.wheel.now, age, window = user.slow_start
    cdef int draws
    for draws in range(SLOW_DRAWS):
        age = now - chosen.since
        if chosen.since == 0 or age >= window:
            return chosen
        if ef_random(cluster.engine.random) % <uint64_t>window < <uint64_t>max(age, window // 10):
            return chosen
        chosen = choose(cluster, user, health_mask)
    return chosen
