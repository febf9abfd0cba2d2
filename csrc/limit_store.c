/* limit_store.c - see limit_store.h. */
#include "limit_store.h"

#include <string.h>

/* A cursor: which segment, and ef_limit_next's. */
#define OF_VALUES ((uint64_t)1 << 63)

struct ef_store {
    uint32_t magic, names, values;
    uint32_t limits; /* with values; written by the store's maker */
    uint8_t reserved_[48];
    uint8_t segments[];
};

_Static_assert(sizeof(struct ef_store) == 64, "segments are aligned as the store is");

static uint32_t token_sets(uint32_t values) { return values / EF_STORE_TOKENS > 0 ? values / EF_STORE_TOKENS : 1; }

size_t ef_store_size(uint32_t names, uint32_t values) {
    return sizeof(ef_store) + ef_limit_size(names) + ef_limit_size(values) + ef_local_size(token_sets(values));
}

static ef_limit *names_of(const ef_store *s) { return (ef_limit *)(uintptr_t)s->segments; }

static ef_limit *values_of(const ef_store *s) { return (ef_limit *)(uintptr_t)(s->segments + ef_limit_size(s->names)); }

ef_limit *ef_store_tokens(ef_store *s) {
    return (ef_limit *)(uintptr_t)(s->segments + ef_limit_size(s->names) + ef_limit_size(s->values));
}

static int is_size(uint32_t names, uint32_t values, size_t len) {
    return names <= EF_LIMIT_MAX_BUCKETS && values <= EF_LIMIT_MAX_BUCKETS && len >= ef_store_size(names, values);
}

int ef_store_init(void *mem, size_t len, uint32_t names, uint32_t values, const uint8_t seed[EF_LIMIT_SEED],
                  uint64_t epoch_ms) {
    if (!is_size(names, values, len)) return -1;
    ef_store *s = mem;
    s->names = names;
    s->values = values;
    if (ef_limit_init(names_of(s), ef_limit_size(names), names, seed) != 0) return -1;
    if (ef_limit_init(values_of(s), ef_limit_size(values), values, seed) != 0) return -1;
    const uint32_t sets = token_sets(values);
    if (ef_local_init(ef_store_tokens(s), ef_local_size(sets), sets, seed) != 0) return -1;
    ef_limit_set_epoch(names_of(s), epoch_ms);
    __atomic_store_n(&s->magic, EF_STORE_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int ef_store_check(const void *mem, size_t len) {
    const ef_store *s = mem;
    if (len < sizeof *s || __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != EF_STORE_MAGIC) return -1;
    if (!is_size(s->names, s->values, len)) return -1;
    if (ef_limit_check(names_of(s), ef_limit_size(s->names)) != 0) return -1;
    if (ef_limit_check(values_of(s), ef_limit_size(s->values)) != 0) return -1;
    return ef_local_check(
        (const ef_limit *)(uintptr_t)(s->segments + ef_limit_size(s->names) + ef_limit_size(s->values)),
        ef_local_size(token_sets(s->values)));
}

int ef_store_holds(const ef_store *s, uint32_t names, uint32_t values) {
    return s->names == names && s->values == values;
}

uint64_t ef_store_now(const ef_store *s, uint64_t boot_ms) { return ef_limit_now(names_of(s), boot_ms); }

void ef_store_set_limits(ef_store *s, uint32_t limits) {
    __atomic_store_n(&s->limits, limits > 0 ? limits : 1, __ATOMIC_RELAXED);
}

uint32_t ef_store_share(const ef_store *s, int sliding) {
    const uint32_t told = __atomic_load_n(&s->limits, __ATOMIC_RELAXED);
    const uint32_t limits = told > 0 ? told : EF_STORE_FEW;
    const uint32_t share = s->values * EF_LIMIT_SLOTS / 2 / (sliding ? 2 : 1) / limits;
    return share > 0 ? share : 1;
}

int ef_store_take(ef_store *s, const uint8_t *key, size_t key_len, size_t name_len, uint32_t n, uint32_t limit,
                  uint32_t unit, int sliding, uint64_t now_ms, ef_limit_result *out) {
    if (key_len <= name_len) return ef_limit_take(names_of(s), key, key_len, n, limit, unit, sliding, now_ms, out);
    const ef_limit_bound bound = {.names = names_of(s), .name_len = name_len, .most = ef_store_share(s, sliding)};
    return ef_limit_take_bounded(values_of(s), &bound, key, key_len, n, limit, unit, sliding, now_ms, out);
}

int ef_store_next(const ef_store *s, uint64_t *cursor, uint64_t now_ms, ef_limit_entry *out, int *is_name) {
    *is_name = (*cursor & OF_VALUES) == 0;
    if (*is_name) {
        if (ef_limit_next(names_of(s), cursor, now_ms, out) == 1) return 1;
        *cursor = OF_VALUES;
        *is_name = 0;
    }
    uint64_t at = *cursor & ~OF_VALUES;
    const int rc = ef_limit_next(values_of(s), &at, now_ms, out);
    *cursor = OF_VALUES | at;
    return rc;
}
