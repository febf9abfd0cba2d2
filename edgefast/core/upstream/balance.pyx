# What endpoints get of many choices: for benches and for tests of shares.

cdef dict BALANCES = {"least_request": BY_LOAD, "hash": BY_KEY, "round_robin": BY_TURN, "random": BY_CHANCE}


def count_choices(Engine engine, spec, str balance, uint64_t tried, int times):
    """How often each endpoint of an ir.Cluster is chosen, by an ir.LoadBalancer's type; of "hash" each time by another key."""
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
            endpoint = cluster.pick(tried, HEED_EJECTED, how, <uint64_t>i)
            found[endpoint.index] += 1
        return [found[i] for i in range(<int>cluster.size)]
    finally:
        free(found)
