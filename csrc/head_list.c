/* head_list.c - comma lists of tokens in header values (RFC 9110 5.6.1): Connection, Upgrade, TE, Transfer-Encoding.
 *
 * In: a value, OWS trimmed. Out: its elements one by one, OWS trimmed, empty ones included: whether an empty element is
 * harmless is the caller's decision. Quoted strings are not known here, none of these headers has them.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"

int ef_list_next(const uint8_t *value, size_t len, size_t *at, size_t *start, size_t *end) {
    if (*at > len) return 0;
    const uint8_t *comma = *at < len ? memchr(value + *at, ',', len - *at) : NULL;
    size_t first = *at;
    size_t last = comma != NULL ? (size_t)(comma - value) : len;
    *at = last + 1; /* behind the comma, or behind the end when this was the last */
    while (first < last && ef_is_ows(value[first]))
        first++;
    while (last > first && ef_is_ows(value[last - 1]))
        last--;
    *start = first;
    *end = last;
    return 1;
}

int ef_list_has(const uint8_t *value, size_t len, const char *token) {
    const size_t token_len = strlen(token);
    size_t at = 0;
    size_t start;
    size_t end;
    while (ef_list_next(value, len, &at, &start, &end))
        if (end - start == token_len && ef_equals_lower(value + start, token, token_len)) return 1;
    return 0;
}
