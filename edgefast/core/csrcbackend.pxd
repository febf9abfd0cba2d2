# What Cython sees of the backend part of csrc/: endpoint choice and health. The headers are the manual; the names here are theirs.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "health.h" nogil:
    enum:
        EF_FAILURE_ANY_GATEWAY
        EF_FAILURE_ANY_SERVER
        EF_FAILURE_GATEWAY
        EF_FAILURE_LOCAL
        EF_FAILURE_SERVER
        EF_HEALTH_FAILURES
        EF_SHARE_ANSWERS
        EF_SHARE_BAD
        EF_SHARE_CONNECTIONS
        EF_SHARE_LEAVING
        EF_SHARE_LOST
        EF_SHARE_PENDING
        EF_SHARE_REQUESTS
        EF_SHARE_RETRIES

    ctypedef struct ef_share:
        uint32_t count[16]

    ctypedef struct ef_health_record:
        uint64_t until_ms
        uint64_t ejected_ms
        uint32_t ejections
        uint32_t wanted
        uint32_t *failures
        ef_share *shares

    ctypedef struct ef_health:
        pass

    ctypedef struct ef_ejection:
        uint64_t now_ms
        uint64_t base_ms
        uint64_t max_ms
        uint64_t sweep_ms
        uint32_t most

    int ef_health_check(const void *mem, size_t size)
    size_t ef_health_extent(const ef_health *s)
    uint32_t ef_health_seats(const ef_health *s)
    ef_health_record *ef_health_hold(ef_health *s, uint64_t key, uint32_t seat)
    int ef_health_claim(ef_health *s, uint32_t seat)
    void ef_health_resign(ef_health *s, uint32_t seat)
    void ef_health_put(ef_health_record *cluster, ef_health_record *endpoint, uint64_t state)
    int ef_health_forget(ef_health *s, uint32_t seat)
    void ef_health_release(ef_health *s, ef_health_record *record, uint32_t seat)
    void ef_health_want(ef_health_record *cluster, uint32_t many)
    int ef_health_leave(ef_health_record *cluster)
    uint64_t ef_share_sum(const ef_health_record *record, uint32_t seats, uint32_t what)
    int ef_share_take(ef_health_record *record, uint32_t seats, uint32_t seat, uint32_t what, uint32_t most)
    bint ef_health_is_out(const ef_health_record *endpoint, uint64_t now_ms)
    uint32_t ef_health_version(const ef_health_record *cluster)
    uint32_t ef_health_fail(ef_health_record *endpoint, uint32_t kind)
    void ef_health_succeed(ef_health_record *endpoint, uint32_t kind)
    int ef_health_eject(ef_health_record *cluster, ef_health_record **endpoints, uint32_t n, uint32_t at, const ef_ejection *how)


cdef extern from "pick.h" nogil:
    ctypedef struct ef_endpoint_load:
        uint32_t active
        uint32_t weight
        uint8_t out

    int ef_pick_wrr(int64_t *current, const uint32_t *weight, uint32_t n)
    int ef_pick_endpoint(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t health_mask, uint64_t rnd)
    uint64_t ef_random(uint64_t *state)


cdef extern from "tls/tls.h" nogil:
    enum:
        EF_TLS_B_COUNT
