/* chunked.h: where a body in chunks ends (RFC 9112 7.1), of answers without trailers.
 *
 * In: its bytes as they come. Out: whether these were the last. It looks at the last five bytes alone: no proxy sends ahead of a request,
 * so nothing stands behind them. Must never be believed of what a stranger sends. */
#ifndef BENCH_CHUNKED_H
#define BENCH_CHUNKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHUNKED UINT64_MAX /* in place of the bytes that are left */

struct chunked {
    char last[5];
    size_t have;
};

static inline bool chunked_ends(struct chunked *c, const char *data, size_t n) {
    if (n >= sizeof c->last) {
        memcpy(c->last, data + n - sizeof c->last, sizeof c->last);
        c->have = sizeof c->last;
    } else {
        size_t kept = c->have + n > sizeof c->last ? sizeof c->last - n : c->have;
        memmove(c->last, c->last + (c->have - kept), kept);
        memcpy(c->last + kept, data, n);
        c->have = kept + n;
    }
    return c->have == sizeof c->last && memcmp(c->last, "0\r\n\r\n", sizeof c->last) == 0;
}

#endif
