/* text.h: words and numbers into a buffer, for heads that differ from request to request.
 *
 * In: where to write. Out: the position behind it. The caller knows that there is room. */
#ifndef BENCH_TEXT_H
#define BENCH_TEXT_H

#include <stdint.h>
#include <string.h>

static inline char *append_text(char *to, const char *text) {
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

static inline char *append_number(char *to, uint64_t n) {
    char digits[20];
    unsigned len = 0;
    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len)
        *to++ = digits[--len];
    return to;
}

#endif
