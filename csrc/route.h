/* route.h - the matcher: request -> candidates of a virtual host in the order of precedence. No allocation, no linear scan
 * over rules.
 *
 * Iterator, because regular expressions are evaluated by the caller (RE2 lives in the worker):
 *
 *   ef_route it; ef_route_begin(&it, &vhost, &request);
 *   while (ef_route_next(&it, &hit)) {
 *       if (hit.regex_path  && !full_match(path pattern of hit))    continue;   // the caller
 *       if (hit.regex_preds && !all regex predicates hold)          continue;   // ef_route_pred() gives them
 *       -> hit.blob, hit.rule is the answer
 *   }
 *
 * Order: Exact path, then regex paths, then prefixes from the longest '/' boundary of the request path down to "/".
 * Every hit has already passed method, exact header and exact query predicates (repeated headers are joined with "," first;
 * of a repeated query parameter the first counts, percent-decoded; of cookies any one of the name). A header predicate called
 * "cookie:NAME" looks at cookies: see ef_request_cookie.
 * Cost: one pass over the path, 8 bytes a step, which hashes every '/' boundary; then one probe (one slot, usually) for the
 * whole path and one per boundary whose depth occurs in the table: at most EF_MAX_SEGMENTS, whatever a client sends.
 * A path that does not start with '/' ("*" of OPTIONS) meets regex paths only.
 */
#ifndef EF_ROUTE_H
#define EF_ROUTE_H
#include <stddef.h>
#include <stdint.h>
#include "head.h"
#include "table.h"

/* A virtual host as the worker holds it: pointers into the arena. 24 bytes. */
typedef struct ef_vhost {
    const ef_blob *root;
    const ef_blob *const
        *fragments; /* n_fragments pointers, NULL when the root is whole; an entry may be NULL (none there) */
    uint32_t n_fragments;
    uint32_t reserved_;
} ef_vhost;

typedef struct ef_request {
    const uint8_t *path;
    size_t path_len; /* normalised */
    const uint8_t *query;
    size_t query_len; /* without '?' */
    uint32_t method;  /* enum ef_method */
    uint32_t n_spans;
    const uint8_t *base; /* what the spans' offsets refer to */
    const ef_span *spans;
} ef_request;

typedef struct ef_hit {
    const ef_blob *blob;
    uint32_t rule; /* in blob */
    uint32_t
        candidate; /* in blob, below ef_blob_entries(): names the match, for regexes and explain; regex paths come first */
    uint32_t where; /* opaque: for ef_route_pred */
    uint32_t
        prefix_len; /* bytes of the request path that a prefix match covers (0 for "/"); path_len for exact and regex */
    uint8_t kind;   /* enum ef_path_kind */
    uint8_t regex_path;
    uint8_t regex_preds; /* number of regex predicates that the caller must check */
    uint8_t reserved_[5];
} ef_hit;

/* Iterator state: caller's memory, no need to clear it. Opaque; about 900 bytes, of which a match touches a few lines. */
typedef struct ef_route {
    const ef_vhost *vhost;
    const ef_request *request;
    const ef_blob *run_blob; /* the run of candidates in hand: run_at .. run_end */
    const struct ef_cand *run_at, *run_end;
    const ef_blob *full_blob;   /* where the whole path was found, if it was */
    const struct ef_slot *full; /* its slot: Exact and Prefix candidates */
    uint32_t run_prefix;
    uint16_t n_boundaries; /* left to probe in hashes/ends */
    uint8_t run_kind, stage;
    const uint8_t *header_name; /* last header looked up (address of the name in a blob) and where it is */
    uint32_t header_first, header_count;
    uint16_t header_name_len, query_name_len;
    const uint8_t *query_name; /* the same for a query parameter; query_value is NULL when absent */
    const uint8_t *query_value;
    size_t query_value_len; /* still percent-encoded */
    uint64_t hashes[EF_MAX_SEGMENTS];
    uint32_t ends[EF_MAX_SEGMENTS];
} ef_route;

void ef_route_begin(ef_route *it, const ef_vhost *vhost, const ef_request *request);
int ef_route_next(ef_route *it, ef_hit *hit); /* 1: hit is set, 0: no more */

/* The i-th regex predicate of a hit (i < regex_preds). is_query tells which list the name is in. */
typedef struct ef_regex_pred {
    const uint8_t *name;
    size_t name_len;
    const uint8_t *pattern;
    size_t pattern_len;
    int is_query;
    int is_cookie; /* the name is the cookie's; any value of it may match */
} ef_regex_pred;
int ef_route_pred(const ef_hit *hit, uint32_t i, ef_regex_pred *out);
/* The request's value for it: joined header lines or the decoded query value. 1 found (*value may point into scratch or the
 * request), 0 absent, -1 scratch too small. */
int ef_request_header(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                      const uint8_t **value, size_t *len);
/* The cookies of a name, one after another, of all Cookie lines in their order (RFC 6265 4.2.1): *at is 0 at first; 1: *value lies in
 * the request and *at has moved on, 0: no more. Pieces are what stands between ';', without spaces and tabs around it; a piece
 * without '=' is no cookie; spaces around the first '=' belong neither to the name nor to the value; names are compared with
 * regard to case; quotes are a part of the value. */
int ef_request_cookie(const ef_request *request, const uint8_t *name, size_t name_len, uint64_t *at,
                      const uint8_t **value, size_t *len);
int ef_request_query(const ef_request *request, const uint8_t *name, size_t name_len, uint8_t *scratch, size_t cap,
                     const uint8_t **value, size_t *len);
#endif
