# Choice: which endpoint a user gets, except those it has tried and those at their limit (circuitBreaker.perEndpoint).

cdef Endpoint choose(Cluster cluster, UpstreamUser user, uint8_t health_mask)
