/* head_framing.c - where the message ends and what becomes of the connection (RFC 9112 6, 9; RFC 9110 7.6.1, 7.8, 10.1.1).
 *
 * In: values of Content-Length, Transfer-Encoding, Connection, Upgrade, Expect. Out: body, content_length, keep_alive,
 * upgrade, expect_continue, nominations. Must never guess: whatever two parsers could read differently is refused.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"

static int equals(const uint8_t *value, size_t len, const char *lower) {
    return strlen(lower) == len && ef_equals_lower(value, lower, len);
}

/* 1*DIGIT (RFC 9110 8.6), no sign, no list, no leading zero (octal to some), no overflow. */
int ef_head_parse_content_length(ef_head *head, const uint8_t *value, size_t len) {
    if (head->seen_flags & EF_SEEN_CONTENT_LENGTH) return ef_head_refuse(head, EF_E_MANY_CONTENT_LENGTHS);
    head->seen_flags |= EF_SEEN_CONTENT_LENGTH;
    if (len == 0 || (len > 1 && value[0] == '0')) return ef_head_refuse(head, EF_E_CONTENT_LENGTH);
    uint64_t total = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned digit = (unsigned)value[i] - '0';
        if (digit > 9 || total > (EF_MAX_CONTENT_LENGTH - digit) / 10) return ef_head_refuse(head, EF_E_CONTENT_LENGTH);
        total = total * 10 + digit;
    }
    head->content_length = total;
    return 0;
}

/* "chunked" is understood; several codings of which only the last is chunked are well formed but unknown (501); anything
 * else leaves the end of the message open (400). */
int ef_head_parse_transfer_encoding(ef_head *head, const uint8_t *value, size_t len) {
    if (head->seen_flags & EF_SEEN_TRANSFER) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
    head->seen_flags |= EF_SEEN_TRANSFER;
    if (equals(value, len, "chunked")) return 0;

    size_t at = 0;
    size_t start;
    size_t end;
    int is_chunked = 0;
    while (ef_list_next(value, len, &at, &start, &end)) {
        if (is_chunked || start == end) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
        for (size_t i = start; i < end; i++)
            if (ef_token_lower[value[i]] == 0) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
        is_chunked = equals(value + start, end - start, "chunked");
    }
    if (!is_chunked) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
    head->seen_flags |= EF_SEEN_CODING_UNKNOWN;
    return 0;
}

/* Proxy-Connection is no standard header, but old clients mean it, and llhttp takes its close and keep-alive seriously. It keeps
 * no HTTP/1.0 connection of a client open: a proxy that forwards it blindly does not know when the answer ends. */
void ef_head_parse_connection(ef_head *head, const uint8_t *value, size_t len, int is_proxy_connection) {
    size_t at = 0;
    size_t start;
    size_t end;
    while (ef_list_next(value, len, &at, &start, &end)) {
        const uint8_t *option = value + start;
        const size_t n = end - start;
        if (n == 0) continue;
        if (equals(option, n, "keep-alive")) {
            if (!is_proxy_connection || (head->seen_flags & EF_SEEN_RESPONSE)) head->seen_flags |= EF_SEEN_KEEP_ALIVE;
        } else if (equals(option, n, "close"))
            head->seen_flags |= EF_SEEN_CLOSE;
        else if (is_proxy_connection)
            continue;
        else if (equals(option, n, "upgrade"))
            head->seen_flags |= EF_SEEN_CONNECT_UPGRADE;
        else
            head->seen_flags |= EF_SEEN_NOMINATION;
    }
}

/* Any name for HTTP/2 or HTTP itself: what follows would no longer be a message of this connection that we can frame. */
static int is_http_protocol(const uint8_t *protocol, size_t len) {
    const uint8_t *slash = memchr(protocol, '/', len);
    const size_t name_len = slash != NULL ? (size_t)(slash - protocol) : len;
    return (name_len >= 2 && ef_equals_lower(protocol, "h2", 2)) || equals(protocol, name_len, "http");
}

void ef_head_parse_upgrade(ef_head *head, const uint8_t *value, size_t len) {
    size_t at = 0;
    size_t start;
    size_t end;
    while (ef_list_next(value, len, &at, &start, &end)) {
        if (start == end) continue;
        head->seen_flags |= EF_SEEN_UPGRADE;
        if (is_http_protocol(value + start, end - start)) head->seen_flags |= EF_SEEN_UPGRADE_HTTP2;
    }
}

void ef_head_parse_expect(ef_head *head, const uint8_t *value, size_t len) {
    head->seen_flags |= equals(value, len, "100-continue") ? EF_SEEN_EXPECT_CONTINUE : EF_SEEN_EXPECT_OTHER;
}

/* --- the whole head ------------------------------------------------------------------------------------------------ */

/* Removing these on a client's word would hide where a request comes from or change where the message ends. */
static int is_protected(const ef_span *span, const uint8_t *name) {
    switch (span->id) {
    case EF_H_HOST:
    case EF_H_CONTENT_LENGTH:
    case EF_H_TRANSFER_ENCODING:
    case EF_H_X_EDGE:
    case EF_H_X_REQUEST_ID:
    case EF_H_FORWARDING:
        return 1;
    default:
        return span->name_len >= 12 && ef_equals_lower(name, "x-forwarded-", 12);
    }
}

static void nominate(ef_head *head, const uint8_t *buf, const uint8_t *option, size_t len) {
    const uint32_t hash = ef_name_hash(option, len);
    for (unsigned i = 0; i < head->n_spans; i++) {
        ef_span *span = &head->spans[i];
        if (span->name_hash != hash || span->name_len != len) continue;
        const uint8_t *name = buf + span->name_off;
        size_t same = 0;
        while (same < len && ef_lower(name[same]) == ef_lower(option[same]))
            same++;
        if (same < len || is_protected(span, name)) continue;
        span->flags |= EF_SPAN_NOMINATED;
        head->has_connection_tokens = 1;
    }
}

static int mark_nominated(ef_head *head, const uint8_t *buf) {
    unsigned names = 0;
    if (!(head->seen_flags & EF_SEEN_NOMINATION)) return 0;
    for (unsigned i = 0; i < head->n_spans; i++) {
        const ef_span *span = &head->spans[i];
        if (span->id != EF_H_CONNECTION) continue;
        const uint8_t *value = buf + span->val_off;
        size_t at = 0;
        size_t start;
        size_t end;
        while (ef_list_next(value, span->val_len, &at, &start, &end)) {
            const uint8_t *option = value + start;
            const size_t n = end - start;
            if (n == 0 || equals(option, n, "close") || equals(option, n, "keep-alive") || equals(option, n, "upgrade"))
                continue;
            if (++names > EF_MAX_CONNECTION_NAMES) return ef_head_refuse(head, EF_E_TOO_MANY_HEADERS);
            if (!equals(option, n, "te")) head->nominates = 1;
            nominate(head, buf, option, n);
        }
    }
    return 0;
}

static int check_lengths(ef_head *head) {
    const uint32_t both = EF_SEEN_CONTENT_LENGTH | EF_SEEN_TRANSFER;
    if ((head->seen_flags & both) == both) return ef_head_refuse(head, EF_E_BOTH_LENGTHS);
    if (head->seen_flags & EF_SEEN_CODING_UNKNOWN) return ef_head_refuse(head, EF_E_CODING_UNKNOWN);
    return 0;
}

static uint8_t announced_body(const ef_head *head) {
    if (head->seen_flags & EF_SEEN_TRANSFER) return EF_BODY_CHUNKED;
    return head->content_length > 0 ? EF_BODY_LENGTH : EF_BODY_NONE;
}

/* A request whose end another reader could place elsewhere (RFC 1945 8.3: a body without a length) is the last one. */
static uint8_t keeps_http10(const ef_head *head) {
    const uint32_t seen = head->seen_flags;
    const int ends = (seen & EF_SEEN_CONTENT_LENGTH) || head->method == EF_M_GET || head->method == EF_M_HEAD;
    return ends && (seen & EF_SEEN_KEEP_ALIVE) && !(seen & EF_SEEN_CLOSE);
}

int ef_head_decide_request(ef_head *head, const uint8_t *buf, uint32_t http10) {
    const uint32_t seen = head->seen_flags;
    const int is_http10 = (seen & EF_SEEN_HTTP10) != 0;
    if (is_http10 && (seen & EF_SEEN_TRANSFER)) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
    if (is_http10 && http10 == EF_HTTP10_REJECT) return ef_head_refuse(head, EF_E_HTTP10);
    if (!(seen & EF_SEEN_HOST) && !(is_http10 && (head->absolute_scheme || http10 == EF_HTTP10_ALLOW)))
        return ef_head_refuse(head, EF_E_NO_HOST);
    int rc = check_lengths(head);
    if (rc != 0) return rc;
    head->body = announced_body(head);
    if (head->body != EF_BODY_NONE && !is_http10) {
        if (seen & EF_SEEN_EXPECT_OTHER) return ef_head_refuse(head, EF_E_EXPECT);
        head->expect_continue = (seen & EF_SEEN_EXPECT_CONTINUE) != 0;
    }
    if (head->method != EF_M_POST) head->grpc = 0;
    if (is_http10) {
        head->keep_alive = keeps_http10(head);
        head->te_trailers = 0;
    } else {
        head->keep_alive = !(seen & EF_SEEN_CLOSE);
        head->upgrade = (seen & EF_SEEN_UPGRADE) && (seen & EF_SEEN_CONNECT_UPGRADE) && !(seen & EF_SEEN_UPGRADE_HTTP2);
    }
    rc = mark_nominated(head, buf);
    return rc;
}

int ef_head_decide_response(ef_head *head, const uint8_t *buf, unsigned request_method) {
    const uint32_t seen = head->seen_flags;
    const unsigned status = head->response_status;
    const int is_http10 = (seen & EF_SEEN_HTTP10) != 0;
    if (is_http10 && (seen & EF_SEEN_TRANSFER)) return ef_head_refuse(head, EF_E_TRANSFER_ENCODING);
    const int rc = check_lengths(head);
    if (rc != 0) return rc;

    head->keep_alive = !(seen & EF_SEEN_CLOSE) && (!is_http10 || (seen & EF_SEEN_KEEP_ALIVE));
    head->upgrade = status == 101;
    head->body = announced_body(head);
    if (request_method == EF_M_HEAD || status == 304 || status == 204 || status < 200) {
        /* A length in a 1xx or 204 is a fault (RFC 9110 8.6, RFC 9112 6.1): bytes that follow are not the next response. */
        if (head->body != EF_BODY_NONE && (status < 200 || status == 204)) head->keep_alive = 0;
        head->body = EF_BODY_NONE;
        head->content_length = 0;
    } else if (!(seen & (EF_SEEN_CONTENT_LENGTH | EF_SEEN_TRANSFER))) {
        head->body = EF_BODY_EOF;
        head->keep_alive = 0;
    }
    return mark_nominated(head, buf);
}
