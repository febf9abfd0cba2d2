/* limit_segment.h - counter segments between guard pages, and short ways to ask them. */
#ifndef EF_TESTS_LIMIT_SEGMENT_H
#define EF_TESTS_LIMIT_SEGMENT_H
#include <string.h>

#include "../limit.h"
#include "check.h"
#include "guard.h"

static const uint8_t limit_seed[EF_LIMIT_SEED] = "not so random...";

/* A fresh one that ends at a guard page. */
static inline ef_limit *limit_segment(uint32_t buckets) {
    const size_t size = ef_limit_size(buckets);
    uint8_t *at = guard_room() + GUARD_ROOM - size;
    memset(at, 0, size);
    CHECK(size % 64 == 0);
    CHECK_EQUAL(ef_limit_init(at, size, buckets, limit_seed), 0);
    CHECK_EQUAL(ef_limit_check(at, size), 0);
    return (ef_limit *)(void *)at;
}

/* One request of a counter with a short name: what was admitted, or -1. */
static inline int take_one(ef_limit *s, const char *key, uint32_t limit, uint32_t unit, int sliding, uint64_t now_ms) {
    ef_limit_result got;
    const int rc = ef_limit_take(s, (const uint8_t *)key, strlen(key), 1, limit, unit, sliding, now_ms, &got);
    return rc != 0 ? rc : (int)got.admitted;
}
#endif
