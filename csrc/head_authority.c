/* head_authority.c - the Host header (RFC 9110 7.2, RFC 3986 3.2.2): one host, an optional port, nothing else.
 *
 * In: the header's value, OWS trimmed. Out: host, host_port, authority. Narrower than reg-name on purpose: sub-delims and
 * percent-encoding stand in no DNS name, and each of them splits some parser from another (',' '@' '%' ...). The name of the root at
 * the end ("a." is "a", RFC 3986 3.2.2) is not part of the host: a name with it would miss the rules of the name without.
 */
#include <string.h>

#include "internal/charset.h"
#include "internal/head_scan.h"

/* "." separated decimal octets without leading zeros: the end of it, or 0. */
static size_t match_ipv4(const uint8_t *text, size_t at, size_t end) {
    for (int octet = 0; octet < 4; octet++) {
        unsigned value = 0;
        const size_t first = at;
        while (at < end && at - first < 3 && ef_is(text[at], EF_CLASS_DIGIT))
            value = value * 10 + (unsigned)(text[at++] - '0');
        if (at == first || value > 255 || (text[first] == '0' && at - first > 1)) return 0;
        if (octet < 3 && (at == end || text[at++] != '.')) return 0;
    }
    return at;
}

/* IPv6address of RFC 3986: eight groups, "::" once for at least one of them, the last two possibly as IPv4. */
static int is_ipv6(const uint8_t *text, size_t at, size_t end) {
    int groups = 0;
    int compressed = 0;
    if (end - at >= 2 && text[at] == ':' && text[at + 1] == ':') {
        compressed = 1;
        at += 2;
    }
    while (at < end) {
        const size_t first = at;
        while (at < end && at - first < 4 && ef_is(text[at], EF_CLASS_HEX))
            at++;
        if (at == first) return 0;
        if (at < end && text[at] == '.') {
            groups += 2;
            if (match_ipv4(text, first, end) != end) return 0;
            break;
        }
        groups++;
        if (at == end) break;
        if (text[at++] != ':' || at == end) return 0;
        if (text[at] == ':') {
            if (compressed++) return 0;
            at++;
        }
    }
    return compressed ? groups <= 7 : groups == 8;
}

/* 1 to 5 digits up to 65535, to the end. */
static int parse_port(const uint8_t *text, size_t at, size_t end, uint32_t *port) {
    uint32_t value = 0;
    if (at == end || end - at > 5) return -1;
    for (; at < end; at++) {
        if (!ef_is(text[at], EF_CLASS_DIGIT)) return -1;
        value = value * 10 + (uint32_t)(text[at] - '0');
    }
    *port = value;
    return value <= 65535 ? 0 : -1;
}

/* An absolute-form target named an authority before: both must be the same bytes, or routing and backend could disagree. */
static int equals_target(const ef_head *head, const uint8_t *buf, size_t at, size_t end) {
    if (end - at != head->authority_len) return 0;
    for (size_t i = 0; i < head->authority_len; i++)
        if (ef_lower(buf[at + i]) != ef_lower(buf[head->authority_off + i])) return 0;
    return 1;
}

int ef_head_parse_host(ef_head *head, const uint8_t *buf, size_t at, size_t end) {
    if (head->seen_flags & EF_SEEN_HOST) return ef_head_refuse(head, EF_E_MANY_HOSTS);
    head->seen_flags |= EF_SEEN_HOST;

    size_t host_end = at;
    if (at < end && buf[at] == '[') {
        while (host_end < end && buf[host_end] != ']')
            host_end++;
        if (host_end == end || !is_ipv6(buf, at + 1, host_end)) return ef_head_refuse(head, EF_E_HOST);
        host_end++;
    } else {
        for (uint8_t previous = '.'; host_end < end && ef_is(buf[host_end], EF_CLASS_UNRESERVED); host_end++) {
            if (buf[host_end] == '.' && previous == '.') return ef_head_refuse(head, EF_E_HOST); /* an empty label */
            previous = buf[host_end];
        }
    }
    if (host_end == at || host_end - at > EF_MAX_HOST) return ef_head_refuse(head, EF_E_HOST);
    if (host_end < end) {
        if (buf[host_end] != ':' || parse_port(buf, host_end + 1, end, &head->host_port) != 0)
            return ef_head_refuse(head, EF_E_HOST);
    }
    if (head->absolute_scheme && !equals_target(head, buf, at, end)) return ef_head_refuse(head, EF_E_AUTHORITY);

    if (buf[host_end - 1] == '.') {
        head->notes |= EF_NOTE_HOST_DOT;
        host_end--;
    }
    head->host_off = (uint32_t)at;
    head->host_len = (uint32_t)(host_end - at);
    head->authority_off = (uint32_t)at;
    head->authority_len = (uint32_t)(end - at);
    return 0;
}

size_t ef_head_add_host(const ef_head *head, const uint8_t *buf, const uint8_t *host, size_t len, uint8_t *out) {
    const size_t line_end = head->n_spans > 0 ? head->spans[0].name_off : head->head_len - 2;
    if (head->authority_len > 0) {
        host = buf + head->authority_off;
        len = head->authority_len;
    }
    uint8_t *at = out;
    memcpy(at, buf, line_end);
    at += line_end;
    memcpy(at, "Host: ", 6);
    at += 6;
    if (len > 0) memcpy(at, host, len);
    at += len;
    memcpy(at, "\r\n", 2);
    at += 2;
    memcpy(at, buf + line_end, head->head_len - line_end);
    at += head->head_len - line_end;
    return (size_t)(at - out);
}

void ef_head_drop_host_dot(ef_head *head, uint8_t *buf) {
    if (!(head->notes & EF_NOTE_HOST_DOT)) return;
    const size_t dot = (size_t)head->host_off + head->host_len;
    const size_t rest = (size_t)head->authority_off + head->authority_len - dot - 1; /* ":80" */
    head->notes &= (uint8_t)~EF_NOTE_HOST_DOT;
    memmove(buf + dot, buf + dot + 1, rest);
    buf[dot + rest] = ' '; /* OWS behind the value */
    head->authority_len--;
    for (unsigned i = 0; i < head->n_spans; i++)
        if (head->spans[i].id == EF_H_HOST) head->spans[i].val_len--;
}
