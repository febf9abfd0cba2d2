/* head_fields.c - one header line: token ":" OWS value OWS (RFC 9112 5), into a span; the headers that frame the message are
 * interpreted at once, so that a fault is answered with the line that proves it.
 *
 * In: a line without its CRLF, free of control bytes but HTAB. Out: head->spans[n_spans++]. Must never accept a name that a
 * laxer parser could read differently: space before the colon, an empty name, a folded line.
 */
#include "grpc.h"
#include "internal/charset.h"
#include "internal/head_scan.h"
#include "internal/name.h"

#define LONGEST_KNOWN \
    64u /* names above are no known header, but for prefixes (x-edge-, x-forwarded-), which fit well within */

/* A name with '_' that CGI and WSGI servers cannot tell from a header that the proxy or the framing stands for: of Content-Type it only
 * learns. */
static int is_lookalike(const uint8_t *name, size_t len) {
    uint8_t dashed[LONGEST_KNOWN];
    const size_t n = len < LONGEST_KNOWN ? len : LONGEST_KNOWN;
    for (size_t i = 0; i < n; i++)
        dashed[i] = name[i] == '_' ? '-' : name[i];
    const unsigned id = ef_header_lookup(dashed, n);
    return id != EF_H_OTHER && id != EF_H_CONTENT_TYPE;
}

static int check_underscore(ef_head *head, const uint8_t *name, size_t len, uint32_t underscore, uint8_t *flags) {
    *flags = EF_SPAN_UNDERSCORE;
    if (head->seen_flags & EF_SEEN_RESPONSE) return 0;
    if (underscore == EF_UNDERSCORE_ALLOW) {
        if (is_lookalike(name, len)) *flags |= EF_SPAN_HOP;
        return 0;
    }
    if (underscore != EF_UNDERSCORE_DROP) return ef_head_refuse(head, EF_E_UNDERSCORE);
    *flags |= EF_SPAN_HOP;
    return 0;
}

/* What a known header means for the message. */
static int interpret_field(ef_head *head, const uint8_t *buf, ef_span *span) {
    const uint8_t *value = buf + span->val_off;
    const size_t len = span->val_len;
    const int is_response = (head->seen_flags & EF_SEEN_RESPONSE) != 0;
    switch (span->id) {
    case EF_H_HOST:
        return is_response ? 0 : ef_head_parse_host(head, buf, span->val_off, span->val_off + len);
    case EF_H_CONTENT_LENGTH:
        return ef_head_parse_content_length(head, value, len);
    case EF_H_TRANSFER_ENCODING:
        span->flags |= EF_SPAN_HOP;
        return ef_head_parse_transfer_encoding(head, value, len);
    case EF_H_CONNECTION:
        span->flags |= EF_SPAN_HOP;
        ef_head_parse_connection(head, value, len, 0);
        break;
    case EF_H_PROXY_CONNECTION:
        span->flags |= EF_SPAN_HOP;
        ef_head_parse_connection(head, value, len, 1);
        break;
    case EF_H_UPGRADE:
        span->flags |= EF_SPAN_HOP;
        ef_head_parse_upgrade(head, value, len);
        break;
    case EF_H_EXPECT:
        ef_head_parse_expect(head, value, len);
        break;
    case EF_H_TE:
        span->flags |= EF_SPAN_HOP;
        if (ef_list_has(value, len, "trailers")) head->te_trailers = 1;
        break;
    case EF_H_HTTP2_SETTINGS:
    case EF_H_KEEP_ALIVE:
    case EF_H_TRAILER:
        span->flags |= EF_SPAN_HOP;
        break;
    case EF_H_CONTENT_TYPE:
        head->grpc = (uint8_t)ef_grpc_content_type(value, len);
        break;
    case EF_H_DATE:
        head->has_date = 1;
        break;
    case EF_H_SERVER:
        head->has_server = 1;
        break;
    default:
        break;
    }
    return 0;
}

int ef_head_parse_field(ef_head *head, const uint8_t *buf, size_t at, size_t end, uint32_t underscore) {
    unsigned has_underscore;
    const size_t colon = ef_find_name_end(buf, at, end, &has_underscore);
    if (colon == at && ef_is_ows(buf[at])) return ef_head_refuse(head, EF_E_FOLD);
    if (colon == at || colon == end || buf[colon] != ':') return ef_head_refuse(head, EF_E_NAME);
    if (colon - at > EF_MAX_NAME) return ef_head_refuse(head, EF_E_HEAD_TOO_LARGE);

    size_t value = colon + 1;
    size_t value_end = end;
    while (value < value_end && ef_is_ows(buf[value]))
        value++;
    while (value_end > value && ef_is_ows(buf[value_end - 1]))
        value_end--;

    ef_span *span = &head->spans[head->n_spans++];
    span->name_off = (uint32_t)at;
    span->val_off = (uint32_t)value;
    span->val_len = (uint32_t)(value_end - value);
    span->line_end = (uint32_t)end + 2;
    span->name_hash = ef_name_hash_of(buf + at, colon - at);
    span->name_len = (uint16_t)(colon - at);
    span->id = (uint8_t)ef_header_lookup(buf + at, colon - at);
    span->flags = 0;
    if (has_underscore) return check_underscore(head, buf + at, colon - at, underscore, &span->flags);
    return span->id == EF_H_OTHER ? 0 : interpret_field(head, buf, span);
}
