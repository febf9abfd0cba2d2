/* table.h - the blob of one virtual host (or of one fragment of it): built here, checked once here, read by route.h.
 *
 * Idea: a hash table over the *paths* of the rules. A path names a run of candidates that are already in the order of
 * precedence; a candidate has its cheap predicates inline (method, header and query checks) and the number of the rule.
 * A rule is an opaque payload (MessagePack of ir.Rule) that the worker decodes when the rule is first hit.
 * Position-independent (offsets only, little-endian, 8-byte aligned sections), versioned, checksummed; lives in the shared arena.
 *
 *   +--------+---------+------------+---------+---------+---------------------+
 *   | header | slots[] | candidates | preds   | rules[] | strings and payloads|      table_layout.h has the fields
 *   +--------+---------+------------+---------+---------+---------------------+
 *     slot:      {path hash, path, first candidate, how many Exact, how many Prefix}   open addressing, <= 50 % full
 *     candidate: {rule, method, headers, query, first pred, path, entry ordinal}
 *     pred:      {name hash, name, value, regex?, cookie?}
 *     rule:      {payload offset, length}
 *   Regex paths: a run of candidates of their own, in order (root blob only).
 *
 * Fragments: a virtual host with very many rules is split by path hash into `n_fragments` (a power of two) blobs. The root
 * blob then holds the key, the regex candidates and n_fragments; fragment f holds the paths with (hash >> 32) % n_fragments == f.
 * With n_fragments == 1 the root holds everything. Everything in a blob is numbered inside that blob, so that a change in
 * one fragment leaves the bytes of the others alone.
 *
 * Building (pure, caller's memory, deterministic: same calls, same bytes; zero padding):
 *   ef_build_begin() -> ef_build_rule()* -> ( ef_build_entry() ef_build_pred()* )* -> ef_build_end()
 * All functions return >= 0 or a negative EF_T_* error. ef_table_check() is the only gate: a blob that passes can be read
 * without any further bounds check. It must start at an 8-byte boundary (64 keeps a slot inside one cache line) and may be
 * shared by any number of readers; nothing here is ever written after ef_build_end.
 *
 * Cost: a build is linear in its input; a check is linear in the blob; both once per change, never per request.
 */
#ifndef EF_TABLE_H
#define EF_TABLE_H
#include <stddef.h>
#include <stdint.h>
#include "limits.h"

#define EF_TABLE_MAGIC   0x31424645u /* "EFB1" */
#define EF_TABLE_VERSION 3u

enum ef_path_kind { EF_PATH_EXACT = 0, EF_PATH_PREFIX = 1, EF_PATH_REGEX = 2 };
enum ef_table_error {
    EF_T_OK = 0,
    EF_T_SHORT = -1,
    EF_T_MAGIC = -2,
    EF_T_VERSION = -3,
    EF_T_CHECKSUM = -4,
    EF_T_BOUNDS = -5,
    EF_T_NO_MEMORY = -6, /* work or out is too small: start again with more */
    EF_T_LIMIT = -7,     /* a limit of limits.h, or no table with probes <= EF_MAX_PROBE was found */
    EF_T_ORDER = -8,     /* calls out of order, a rule that is not there, a path of another fragment */
    EF_T_PATH = -9
}; /* no request could meet this path: not absolute, a prefix that ends in '/' or
                                              has more than EF_MAX_SEGMENTS - 1 segments; the entry was left out */

/* Opaque outside table.c/route.c except for these accessors. */
typedef struct ef_blob ef_blob;

/* Validate everything reachable; 0 or EF_T_*. */
int ef_table_check(const uint8_t *data, size_t len);
uint32_t ef_blob_rules(const ef_blob *blob);                                  /* number of rules */
uint32_t ef_blob_entries(const ef_blob *blob);                                /* number of candidates */
uint32_t ef_blob_fragments(const ef_blob *blob);                              /* 1 when whole */
uint32_t ef_blob_fragment_index(const ef_blob *blob);                         /* which fragment; 0 for a root */
const uint8_t *ef_blob_key(const ef_blob *blob, size_t *len);                 /* the resource's name, UTF-8 */
const uint8_t *ef_blob_rule(const ef_blob *blob, uint32_t rule, size_t *len); /* payload */
const uint8_t *ef_blob_regex(const ef_blob *blob, uint32_t candidate,
                             size_t *len); /* a regex path candidate's pattern */
void ef_blob_depths(const ef_blob *blob, uint64_t *prefix_depths, uint64_t *exact_depths, uint32_t *max_exact_len);
uint64_t ef_path_hash(const uint8_t *path, size_t len); /* one-shot form of the rolling hash the matcher uses */

/* --- builder: used through cffi by edgefast/table/compile.py ------------------------------------------------------ */
typedef struct ef_build ef_build;
size_t ef_build_sizeof(void); /* bytes of an ef_build, 8-aligned: caller's memory */
/* `work` is scratch of work_cap bytes (8-aligned) for copies of strings and records until ef_build_end. */
int ef_build_begin(ef_build *b, uint8_t *work, size_t work_cap, const uint8_t *key, size_t key_len,
                   uint32_t n_fragments, uint32_t fragment_index, int is_root);
int ef_build_rule(ef_build *b, const uint8_t *payload, size_t len); /* returns the rule's number */
/* Entries come in order of precedence. method: enum ef_method, 0 any. Path of a prefix has no trailing slash ("" is "/"). */
int ef_build_entry(ef_build *b, uint32_t rule, int path_kind, const uint8_t *path, size_t path_len, uint32_t method,
                   uint32_t n_headers, uint32_t n_query);
/* Exactly n_headers then n_query of these follow each entry. Header names lower case; "cookie:NAME" looks at the cookies of that
 * name (route.h). */
int ef_build_pred(ef_build *b, const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
                  int is_regex);
/* For the root of a fragmented virtual host: what its fragments hold (ef_blob_depths of each, OR-ed; longest Exact path). */
int ef_build_depths(ef_build *b, uint64_t prefix_depths, uint64_t exact_depths, uint32_t max_exact_len);
/* Bytes written; out == NULL: size needed. `out` may not overlap `work`. May be called again. */
long ef_build_end(ef_build *b, uint8_t *out, size_t out_cap);
#endif
