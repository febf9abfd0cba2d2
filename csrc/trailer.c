/* trailer.c - trailer lines into spans; the names that are refused are a closed list, beside all that ef_header_lookup knows.
 *
 * In: lines. Out: a span. Must never read past `len`, nor let a framing, routing or authentication field pass.
 */
#include "trailer.h"

#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"

/* By length, ascending; compared without case. What RFC 9110 6.5.1 speaks of and ef_header_lookup does not know: request
 * modifiers (RFC 9110 10, 13, 14), authentication and cookies, content (8), response controls (10.2, RFC 9111 5). */
static const char *const refused[] = {
    "age",
    "vary",
    "realm",
    "range",
    "accept",
    "cookie",
    "pragma",
    "expires",
    "if-match",
    "if-range",
    "location",
    "set-cookie",
    "max-forwards",
    "retry-after",
    "authorization",
    "accept-ranges",
    "cache-control",
    "content-range",
    "if-none-match",
    "last-modified",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "www-authenticate",
    "content-encoding",
    "content-language",
    "content-location",
    "if-modified-since",
    "if-unmodified-since",
    "proxy-authorization",
    "access-control-allow-origin",
    "strict-transport-security",
    "access-control-allow-credentials",
};

#define LONGEST_REFUSED \
    64u /* longer names are none of these, but for prefixes of ef_header_lookup, which fit well within */

/* With '_' taken for '-': CGI and WSGI servers cannot tell them apart. */
static int is_refused(const uint8_t *raw, size_t raw_len) {
    uint8_t name[LONGEST_REFUSED];
    const size_t len = raw_len < LONGEST_REFUSED ? raw_len : LONGEST_REFUSED;
    for (size_t i = 0; i < len; i++)
        name[i] = raw[i] == '_' ? '-' : raw[i];
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strlen(refused[i]) == len && ef_equals_lower(name, refused[i], len)) return 1;
    return ef_header_lookup(name, len) != EF_H_OTHER;
}

size_t ef_trailer_next(const uint8_t *lines, size_t len, size_t at, ef_span *span) {
    size_t colon = at;
    uint8_t underscore = 0;
    for (; colon < len && ef_token_lower[lines[colon]] != 0; colon++)
        underscore |= (uint8_t)(lines[colon] == '_');
    if (colon == at || colon >= len || lines[colon] != ':' || colon - at > EF_MAX_NAME) return 0;
    size_t end = colon + 1;
    while (end < len && lines[end] != '\r')
        end++;
    if (end + 1 >= len || lines[end + 1] != '\n') return 0;
    size_t value = colon + 1;
    size_t value_end = end;
    while (value < value_end && ef_is_ows(lines[value]))
        value++;
    while (value_end > value && ef_is_ows(lines[value_end - 1]))
        value_end--;
    span->name_off = (uint32_t)at;
    span->val_off = (uint32_t)value;
    span->val_len = (uint32_t)(value_end - value);
    span->line_end = (uint32_t)end + 2;
    span->name_hash = ef_name_hash(lines + at, colon - at);
    span->name_len = (uint16_t)(colon - at);
    span->id = EF_H_OTHER;
    span->flags =
        (uint8_t)((underscore ? EF_SPAN_UNDERSCORE : 0) | (is_refused(lines + at, colon - at) ? EF_SPAN_HOP : 0));
    return end + 2;
}
