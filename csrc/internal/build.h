/* build.h - the builder's own state: table_build.c takes the calls, table_plan.c lays the blob out, table_write.c writes it.
 *
 * `work` holds, in this order:
 *   key      a copy
 *   log      the calls as records, in order: rules, and entries each followed by its predicates
 *   groups   one per distinct path, in order of first appearance          (made by the plan)
 *   scratch  hash tables over groups and names, a trial slot table        (used by the plan)
 */
#ifndef EF_INTERNAL_BUILD_H
#define EF_INTERNAL_BUILD_H
#include <string.h>

#include "../table_layout.h"

enum ef_build_kind { EF_RECORD_RULE = 1, EF_RECORD_ENTRY = 2, EF_RECORD_PRED = 3 };

/* Every record starts with its size in bytes, a multiple of 8; strings follow the fixed part. */
typedef struct ef_build_record {
    uint32_t size;
    uint8_t kind; /* enum ef_build_kind */
    uint8_t path_kind, n_headers, n_query;
    union {
        struct {
            uint32_t len, reserved_;
        } rule;
        struct {
            uint32_t rule, len, method, group;
        } entry;
        struct {
            uint32_t name_len, value_len, is_regex, is_header;
            uint64_t name_off; /* in the blob, once planned; for a name met before, that of its first ef_build_record */
        } pred;
    } of;
    uint8_t bytes[];
} ef_build_record;

typedef struct ef_build_group {
    uint64_t hash;
    const uint8_t *path;
    uint32_t len, depth;
    uint32_t n_exact, n_prefix;
    uint32_t tail; /* where its tail is / 8; 0: none */
    uint32_t slot;
    uint32_t exact_written, prefix_written;
} ef_build_group;

struct ef_build {
    uint8_t *work;
    size_t cap, used, log_end;
    const uint8_t *key; /* the copy in work */
    uint32_t key_len, n_fragments, fragment_index, is_root;
    uint32_t n_rules, n_entries, n_preds, n_regex;
    uint32_t preds_due, headers_due; /* predicates that the last entry still waits for */
    int failed;                      /* the first verdict that ends the build: every later call gives it again */
    size_t payload_bytes;
    uint64_t prefix_depths, exact_depths;
    uint32_t max_exact_len;
    /* plan */
    int planned;
    ef_build_group *groups;
    uint32_t n_groups, n_slots, max_probe;
    uint64_t multiplier;
    uint64_t size, tails_off, cands_off, preds_off, rules_off, strings_off, payload_off;
};

static inline uint64_t ef_align8(uint64_t n) { return (n + 7) & ~(uint64_t)7; }

static inline ef_build_record *ef_build_first(const ef_build *b) {
    return (ef_build_record *)(void *)(b->work + ef_align8(b->key_len));
}

static inline ef_build_record *ef_build_next(ef_build_record *r) {
    return (ef_build_record *)(void *)((uint8_t *)r + r->size);
}

static inline const ef_build_record *ef_build_last(const ef_build *b) { /* one past the log */
    return (const ef_build_record *)(const void *)(b->work + b->log_end);
}

static inline void ef_build_copy(uint8_t *to, const uint8_t *from, size_t len) {
    if (len != 0) memcpy(to, from, len); /* a NULL pointer with length 0 is an empty string */
}

/* Bytes (a multiple of 8) of `work`, or NULL and the build has failed. */
void *ef_build_reserve(ef_build *b, size_t bytes);
/* Everything about the blob but its bytes; the verdict is remembered. */
int ef_build_plan(ef_build *b);
#endif
