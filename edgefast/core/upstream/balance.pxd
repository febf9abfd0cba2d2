# Balance: the load balancing of a policy (ir.LoadBalancer; policy/traffic.pyx).

cdef extern from "pick.h" nogil:
    int ef_pick_hashed(const ef_endpoint_load *load, const uint64_t *ids, uint32_t n, uint64_t tried, uint8_t health_mask, uint64_t key)
    uint64_t ef_pick_key(const uint8_t *data, size_t len)
    int ef_pick_turn(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t tried, uint8_t health_mask)
    void ef_pick_begin_turns(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t *random)
    int ef_pick_random(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t health_mask, uint64_t rnd)


cdef enum Balance:
    BY_LOAD = 0     # the less busy one of two, as without any policy
    BY_KEY = 1      # its key says which (policy/hashpolicy.pyx)
    BY_TURN = 2     # each has its turn
    BY_CHANCE = 3
