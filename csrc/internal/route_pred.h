/* route_pred.h - the predicates of a candidate, for route.c alone: exact ones are decided here, regex ones by the caller. */
#ifndef EF_ROUTE_PRED_H
#define EF_ROUTE_PRED_H
#include <string.h>

#include "../route.h"
#include "../table_layout.h"

/* Paths, names and values are short: inline loads instead of a call. Reads only [a, a + len) and [b, b + len). */
static inline int ef_bytes_equal(const uint8_t *a, const uint8_t *b, size_t len) {
    uint64_t x, y;
    if (len >= 8) {
        if (len > 64) return memcmp(a, b, len) == 0;
        for (size_t at = 0; at + 8 < len; at += 8) {
            memcpy(&x, a + at, 8);
            memcpy(&y, b + at, 8);
            if (x != y) return 0;
        }
        memcpy(&x, a + len - 8, 8);
        memcpy(&y, b + len - 8, 8);
        return x == y;
    }
    if (len >= 4) {
        uint32_t u, v, w, z;
        memcpy(&u, a, 4);
        memcpy(&v, b, 4);
        memcpy(&w, a + len - 4, 4);
        memcpy(&z, b + len - 4, 4);
        return u == v && w == z;
    }
    for (size_t at = 0; at < len; at++) {
        if (a[at] != b[at]) return 0;
    }
    return 1;
}

/* 1 when every exact header and query predicate of the candidate holds. */
int ef_preds_hold(ef_route *it, const ef_blob *blob, const ef_cand *cand);
#endif
