/* table_layout.h - what the bytes of a blob are: shared by the builder, the check, the matcher and the Python reader, and by
 * nobody else.
 *
 *   0        64       128        tails_off    cands_off       preds_off   rules_off   strings_off      size
 *   +--------+--------+----------+------------+---------------+-----------+-----------+----------------+
 *   | hot    | cold   | slots[]  | tails      | regex cands[] | preds[]   | rules[]   | strings,       |
 *   |        |        | 64 bytes |            | and patterns[]|           |           | then payloads  |
 *   +--------+--------+----------+------------+---------------+-----------+-----------+----------------+
 *     slot: | hash | path_len n_exact n_prefix | tail | candidate | first 28 bytes of path |
 *     tail: | the path, if it is longer, padded to 8 | the candidates, if there are several |
 *
 * All integers little-endian; all offsets from the first byte of the blob; padding is zero. What decides the cost of a
 * match in a large table is memory that is not in a cache: so a slot is one cache line that holds all of an ordinary
 * path, its bytes and its only candidate, and a match reads one such line. A slot is all entries of one *path*: its
 * Exact candidates first, then the Prefix ones, so that one probe answers for both kinds.
 *
 * Depth of a path: the number of its segments ("/a/b" is 2, "/" and "/a" are 1, the prefix "" is 0, "/a/" is 2). The
 * bit sets say which depths hold any path of a kind, so a request probes only where something can be. Exact depths above
 * 63 share bit 63. In the root of a fragmented virtual host they speak for all of its fragments.
 */
#ifndef EF_TABLE_LAYOUT_H
#define EF_TABLE_LAYOUT_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "table.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blobs are little-endian and read in place");

struct ef_blob {
    /* hot: one cache line */
    uint32_t magic, version;
    uint64_t prefix_depths; /* bit d: some Prefix path has depth d */
    uint64_t exact_depths;  /* bit min(d, 63): some Exact path has depth d */
    uint64_t multiplier;    /* odd; home slot of a path = (hash * multiplier) >> shift */
    uint32_t shift;         /* 64 - log2(n_slots) */
    uint32_t n_slots;       /* a power of two >= 2, or 0 */
    uint32_t max_probe;     /* slots to look at before a path is absent; 0 without slots */
    uint32_t slots_off;
    uint32_t max_exact_len; /* longest Exact path in bytes */
    uint32_t n_regex;       /* candidates of regex paths */
    uint32_t cands_off;     /* ... which are here */
    uint32_t preds_off;
    /* cold: one cache line */
    uint64_t checksum; /* ef_table_checksum */
    uint32_t size;     /* of the blob, a multiple of 8 */
    uint32_t n_cands;  /* of all kinds */
    uint32_t n_preds, n_rules, n_paths;
    uint32_t tails_off, rules_off, strings_off;
    uint32_t key_off, key_len;
    uint32_t n_fragments, fragment_index, is_root;
    uint32_t reserved_;
};

/* 16 bytes. Its predicates are preds[pred ..]: headers, then query parameters. */
typedef struct ef_cand {
    uint32_t rule;
    uint32_t entry; /* its number in this blob: regex entries first, then the others as they were given */
    uint32_t pred;
    uint8_t method; /* enum ef_method, 0 any */
    uint8_t n_headers, n_query;
    uint8_t n_regex; /* how many of the predicates are regular expressions */
} ef_cand;

#define EF_SLOT_PATH 28u /* bytes of path in a slot */

/* 64 bytes. Empty when n_exact and n_prefix are 0. */
typedef struct ef_slot {
    uint64_t hash; /* ef_path_hash of the path */
    uint16_t path_len, n_exact, n_prefix, reserved_;
    uint32_t tail; /* offset / 8; 0: no need of one */
    ef_cand only;  /* the candidate, if there is just one */
    uint8_t path[EF_SLOT_PATH];
} ef_slot;

/* 24 bytes. Equal names share one offset inside a blob: the matcher looks a header up once for a run of candidates. */
typedef struct ef_pred {
    uint32_t name_hash; /* ef_name_hash; 0 for query parameters */
    uint32_t name_off, value_off, value_len;
    uint16_t name_len;
    uint8_t is_regex;
    uint8_t is_cookie; /* the name is EF_COOKIE and a cookie's name; of headers alone */
    uint8_t reserved_[4];
} ef_pred;

/* What the name of a header predicate begins with that looks at cookies. No header is called so: ':' is no tchar. */
#define EF_COOKIE     "cookie:"
#define EF_COOKIE_LEN (sizeof EF_COOKIE - 1)

static inline int ef_names_cookie(const uint8_t *name, size_t len) {
    return len > EF_COOKIE_LEN && !memcmp(name, EF_COOKIE, EF_COOKIE_LEN);
}

/* Of a rule's payload; behind the regex candidates: of their patterns, which are strings. */
typedef struct ef_text {
    uint32_t off, len;
} ef_text;

uint64_t ef_table_checksum(const ef_blob *blob); /* of all blob->size bytes but the field itself */

_Static_assert(sizeof(struct ef_blob) == 128, "ef_blob layout");
_Static_assert(offsetof(struct ef_blob, checksum) == 64, "the hot half is one cache line");
_Static_assert(sizeof(ef_slot) == 64, "ef_slot layout");
_Static_assert(sizeof(ef_cand) == 16, "ef_cand layout");
_Static_assert(sizeof(ef_pred) == 24, "ef_pred layout");
_Static_assert(sizeof(ef_text) == 8, "ef_text layout");
/* Slots looked at per probe. A builder refuses tables that need more: a hostile author of routes can make paths that hash
 * alike, and every request to that host would pay for it. */
#define EF_MAX_PROBE 128u

static inline const uint8_t *ef_at(const ef_blob *blob, uint64_t off) { return (const uint8_t *)blob + off; }

static inline const ef_slot *ef_slots(const ef_blob *blob) {
    return (const ef_slot *)(const void *)ef_at(blob, blob->slots_off);
}

static inline const uint8_t *ef_slot_path(const ef_blob *blob, const ef_slot *slot) {
    return slot->path_len <= EF_SLOT_PATH ? slot->path : ef_at(blob, (uint64_t)slot->tail * 8);
}

static inline const ef_cand *ef_slot_cands(const ef_blob *blob, const ef_slot *slot) {
    if (slot->n_exact + slot->n_prefix == 1) return &slot->only;
    const size_t path = slot->path_len <= EF_SLOT_PATH ? 0 : ((size_t)slot->path_len + 7) & ~(size_t)7;
    return (const ef_cand *)(const void *)ef_at(blob, (uint64_t)slot->tail * 8 + path);
}

/* Bytes of the tail of a path with n candidates. */
static inline uint64_t ef_tail_size(uint64_t path_len, uint64_t n) {
    return (path_len <= EF_SLOT_PATH ? 0 : (path_len + 7) & ~(uint64_t)7) + (n <= 1 ? 0 : n * sizeof(ef_cand));
}

static inline const ef_cand *ef_regex_cands(const ef_blob *blob) {
    return (const ef_cand *)(const void *)ef_at(blob, blob->cands_off);
}

static inline const ef_text *ef_regex_texts(const ef_blob *blob) {
    return (const ef_text *)(const void *)(ef_regex_cands(blob) + blob->n_regex);
}

static inline const ef_pred *ef_preds(const ef_blob *blob) {
    return (const ef_pred *)(const void *)ef_at(blob, blob->preds_off);
}
#endif
