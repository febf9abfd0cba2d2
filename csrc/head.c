/* head.c - driver of the head scan: finds lines, applies the limits while bytes arrive, hands complete lines on.
 *
 * In: all bytes of the message so far. Out: ef_head. Must never look at a byte twice for the search of a line's end
 * (`searched` remembers), nor behind the limits: then the outcome does not depend on how the bytes arrived.
 */
#include "head.h"

#include <string.h>

#include "internal/control.h"
#include "internal/head_scan.h"

#ifdef EF_COUNT_WORK
unsigned long ef_work_bytes;
#endif

void ef_head_reset(ef_head *head) { memset(head, 0, offsetof(ef_head, spans)); }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* A control byte that does not end the line: name the fault by where it stands. */
static int refuse_control(ef_head *head, const uint8_t *buf, size_t start, size_t at) {
    if (!(head->seen_flags & EF_SEEN_LINE)) {
        const enum ef_head_error elsewhere = head->seen_flags & EF_SEEN_RESPONSE ? EF_E_STATUS : EF_E_LINE;
        return ef_head_refuse(head, buf[at] == '\n' || buf[at] == '\r' ? EF_E_BARE_LF : elsewhere);
    }
    if (at > start && ef_is_ows(buf[start])) return ef_head_refuse(head, EF_E_FOLD);
    if (buf[at] == '\n' || buf[at] == '\r') return ef_head_refuse(head, EF_E_BARE_LF);
    return ef_head_refuse(head, memchr(buf + start, ':', at - start) != NULL ? EF_E_VALUE : EF_E_NAME);
}

/* End of the line that starts at head->line_start, within [0, end) where end <= cap is what has arrived of the cap bytes
 * that the line may reach. 0: *line_len is set; EF_NEED_MORE; EF_BAD: control byte, or `too_long` when the cap is reached. */
static int find_line(ef_head *head, const uint8_t *buf, size_t end, size_t cap, enum ef_head_error too_long,
                     size_t *line_len) {
    const size_t start = head->line_start;
    const size_t at = ef_find_control(buf, head->searched, end);
    if (at + 1 < end) {
        if (buf[at] != '\r' || buf[at + 1] != '\n') return refuse_control(head, buf, start, at);
        *line_len = at - start;
        return 0;
    }
    if (at < end && buf[at] != '\r') return refuse_control(head, buf, start, at);
    if (end == cap) return ef_head_refuse(head, too_long);
    head->searched = (uint32_t)at;
    return EF_NEED_MORE;
}

static void advance(ef_head *head, size_t line_len) {
    head->line_start += (uint32_t)line_len + 2;
    head->searched = head->line_start;
}

/* Header lines up to and with the empty one. 0 when the head is complete. */
static int scan_fields(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len, size_t cap,
                       uint32_t underscore) {
    const size_t end = smaller(len, cap);
    const uint32_t count = limits->count < EF_MAX_HEADERS ? limits->count : EF_MAX_HEADERS;
    for (;;) {
        size_t line_len;
        int rc = find_line(head, buf, end, cap, EF_E_HEAD_TOO_LARGE, &line_len);
        if (rc != 0) return rc;
        const size_t start = head->line_start;
        advance(head, line_len);
        if (line_len == 0) break;
        if (head->n_spans >= count) return ef_head_refuse(head, EF_E_TOO_MANY_HEADERS);
        EF_COUNT(line_len);
        rc = ef_head_parse_field(head, buf, start, start + line_len, underscore);
        if (rc != 0) return rc;
    }
    head->head_len = head->line_start;
    return 0;
}

int ef_head_scan_request(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len) {
    const size_t cap = smaller(limits->head, EF_MAX_HEAD);
    int rc;
    while (!(head->seen_flags & EF_SEEN_LINE)) {
        const size_t line_cap = head->line_start + (size_t)limits->line + 2;
        const enum ef_head_error too_long = line_cap <= cap ? EF_E_LINE_TOO_LONG : EF_E_HEAD_TOO_LARGE;
        const size_t nearest = smaller(line_cap, cap);
        size_t line_len;
        rc = find_line(head, buf, smaller(len, nearest), nearest, too_long, &line_len);
        if (rc != 0) return rc;
        const size_t start = head->line_start;
        advance(head, line_len);
        if (line_len == 0) { /* a robust server ignores one (RFC 9112 2.2) */
            if (head->seen_flags & EF_SEEN_EMPTY_LINE) return ef_head_refuse(head, EF_E_LINE);
            head->seen_flags |= EF_SEEN_EMPTY_LINE;
            continue;
        }
        EF_COUNT(line_len);
        rc = ef_head_parse_request_line(head, buf, start, start + line_len, limits->raw);
        if (rc != 0) return rc;
        head->seen_flags |= EF_SEEN_LINE;
    }
    rc = scan_fields(head, limits, buf, len, cap, limits->underscore);
    if (rc != 0) return rc;
    rc = ef_head_decide_request(head, buf, limits->http10);
    return rc != 0 ? rc : (int)head->head_len;
}

int ef_head_scan_response(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len,
                          unsigned request_method) {
    const size_t cap = smaller(limits->head, EF_MAX_HEAD);
    int rc;
    head->seen_flags |= EF_SEEN_RESPONSE;
    if (!(head->seen_flags & EF_SEEN_LINE)) {
        size_t line_len;
        rc = find_line(head, buf, smaller(len, cap), cap, EF_E_HEAD_TOO_LARGE, &line_len);
        if (rc != 0) return rc;
        const size_t start = head->line_start;
        advance(head, line_len);
        EF_COUNT(line_len);
        rc = ef_head_parse_status_line(head, buf, start, start + line_len);
        if (rc != 0) return rc;
        head->seen_flags |= EF_SEEN_LINE;
    }
    rc = scan_fields(head, limits, buf, len, cap, EF_UNDERSCORE_ALLOW);
    if (rc != 0) return rc;
    rc = ef_head_decide_response(head, buf, request_method);
    return rc != 0 ? rc : (int)head->head_len;
}
