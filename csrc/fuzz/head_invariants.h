/* head_invariants.h - what holds for every head that the scan accepts, and for every way in which it may arrive. */
#ifndef EF_FUZZ_HEAD_INVARIANTS_H
#define EF_FUZZ_HEAD_INVARIANTS_H
#include "../head.h"
#include "require.h"

/* method: of the request that is answered, -1 when the head is a request's. */
static inline int fuzz_scan(ef_head *head, const ef_head_limits *limits, const uint8_t *buf, size_t len, int method) {
    if (method >= 0) return ef_head_scan_response(head, limits, buf, len, (unsigned)method);
    return ef_head_scan_request(head, limits, buf, len);
}

static inline void require_same(int rc_a, const ef_head *a, int rc_b, const ef_head *b) {
    REQUIRE(rc_a == rc_b);
    if (rc_a == EF_BAD) REQUIRE(a->error == b->error && a->status == b->status);
    if (rc_a <= 0) return;
    REQUIRE(memcmp(a, b, offsetof(ef_head, spans)) == 0);
    REQUIRE(memcmp(a->spans, b->spans, a->n_spans * sizeof(ef_span)) == 0);
}

/* Spans tile the head from behind its first line to its empty line, and hold nothing that ends a line. */
static inline void require_sound(const ef_head *head, const uint8_t *buf, size_t len) {
    REQUIRE(head->head_len <= len && head->head_len >= 4);
    REQUIRE(memcmp(buf + head->head_len - 4, "\r\n\r\n", 4) == 0);
    REQUIRE(head->n_spans <= EF_MAX_HEADERS);
    uint32_t next = head->n_spans > 0 ? head->spans[0].name_off : head->head_len - 2;
    REQUIRE(next >= 2 && memcmp(buf + next - 2, "\r\n", 2) == 0);
    for (unsigned i = 0; i < head->n_spans; i++) {
        const ef_span *span = &head->spans[i];
        REQUIRE(span->name_off == next && span->name_len > 0);
        REQUIRE(buf[span->name_off + span->name_len] == ':');
        REQUIRE(span->val_off > span->name_off + span->name_len && span->val_off + span->val_len + 2 <= span->line_end);
        REQUIRE(span->name_hash == ef_name_hash(buf + span->name_off, span->name_len));
        for (uint32_t j = span->val_off; j < span->val_off + span->val_len; j++)
            REQUIRE((buf[j] >= 0x20 || buf[j] == '\t') && buf[j] != 0x7f);
        next = span->line_end;
    }
    REQUIRE(next + 2 == head->head_len);
    REQUIRE(head->body == EF_BODY_LENGTH ? head->content_length > 0 : head->content_length == 0);
    if (head->host_len > 0) REQUIRE(buf[head->host_off] != '.' && buf[head->host_off + head->host_len - 1] != '.');
}

/* The head as a proxy would write it again, from the spans: it must mean the same. */
static inline void require_rewritten_same(const ef_head *head, const ef_head_limits *limits, const uint8_t *buf,
                                          int method) {
    static uint8_t out[2 * EF_MAX_HEAD];
    static ef_head again;
    const uint32_t line_end = head->n_spans > 0 ? head->spans[0].name_off : head->head_len - 2;
    uint32_t line = 0;
    while (buf[line] == '\r' || buf[line] == '\n')
        line++;
    size_t n = line_end - line;
    memcpy(out, buf + line, n);
    for (unsigned i = 0; i < head->n_spans; i++) {
        const ef_span *span = &head->spans[i];
        memcpy(out + n, buf + span->name_off, span->name_len);
        n += span->name_len;
        memcpy(out + n, ": ", 2);
        memcpy(out + n + 2, buf + span->val_off, span->val_len);
        memcpy(out + n + 2 + span->val_len, "\r\n", 2);
        n += 4u + span->val_len;
    }
    memcpy(out + n, "\r\n", 2);
    n += 2;
    const ef_head_limits wide = {EF_MAX_HEAD,        EF_MAX_HEAD, limits->count,
                                 limits->underscore, limits->raw, limits->http10};
    ef_head_reset(&again);
    REQUIRE(fuzz_scan(&again, &wide, out, n, method) == (int)n);
    REQUIRE(again.body == head->body && again.content_length == head->content_length);
    REQUIRE(again.keep_alive == head->keep_alive && again.upgrade == head->upgrade);
    REQUIRE(again.n_spans == head->n_spans && again.method == head->method);
    for (unsigned i = 0; i < head->n_spans; i++) {
        REQUIRE(again.spans[i].flags == head->spans[i].flags && again.spans[i].id == head->spans[i].id);
        REQUIRE(again.spans[i].val_len == head->spans[i].val_len);
    }
}

/* An HTTP/1.0 request has no part of HTTP/1.1; without Host it gets one and means the same. */
static inline void require_http10(const ef_head *head, const ef_head_limits *limits, const uint8_t *buf) {
    static uint8_t out[2 * EF_MAX_HEAD];
    static ef_head again;
    if (head->version_minor == 0) {
        REQUIRE(limits->http10 != EF_HTTP10_REJECT && head->body != EF_BODY_CHUNKED);
        REQUIRE(!head->upgrade && !head->expect_continue && !head->te_trailers);
    }
    if (head->host_len > 0) return;
    REQUIRE(head->version_minor == 0 && (head->absolute_scheme || limits->http10 == EF_HTTP10_ALLOW));
    const size_t n = ef_head_add_host(head, buf, (const uint8_t *)"a", 1, out);
    REQUIRE(n == head->head_len + EF_HOST_LINE + (head->authority_len > 0 ? head->authority_len : 1));
    const ef_head_limits wide = {EF_MAX_HEAD,        EF_MAX_HEAD, EF_MAX_HEADERS,
                                 limits->underscore, limits->raw, limits->http10};
    ef_head_reset(&again);
    const int rc = ef_head_scan_request(&again, &wide, out, n);
    if (rc == EF_BAD) { /* the authority is no Host */
        REQUIRE(head->absolute_scheme && again.error == EF_E_HOST);
        return;
    }
    REQUIRE(rc == (int)n && again.host_len > 0 && again.n_spans == head->n_spans + 1);
    REQUIRE(again.target_off == head->target_off && again.target_len == head->target_len);
    REQUIRE(again.body == head->body && again.content_length == head->content_length);
    REQUIRE(again.keep_alive == head->keep_alive && again.method == head->method);
}

static inline void fuzz_head(const uint8_t *data, size_t size, int method) {
    static ef_head whole;
    static ef_head parts;
    /* The second set makes every limit reachable with small inputs. */
    static const ef_head_limits sets[] = {
        {EF_DEFAULT_REQUEST_HEAD, EF_DEFAULT_REQUEST_LINE, EF_DEFAULT_HEADERS, EF_UNDERSCORE_REJECT, EF_RAW_REJECT,
         EF_HTTP10_REJECT},
        {120, 40, 4, EF_UNDERSCORE_ALLOW, EF_RAW_REJECT, EF_HTTP10_WITH_HOST},
        {200, 200, 8, EF_UNDERSCORE_DROP, EF_RAW_ALLOW, EF_HTTP10_ALLOW},
    };
    uint8_t *buf = exact_copy(data, size);
    const size_t split = fuzz_number(data, size) % (size + 1);
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        const ef_head_limits *limits = &sets[i];
        ef_head_reset(&whole);
        const int rc = fuzz_scan(&whole, limits, buf, size, method);
        REQUIRE(rc > 0 || rc == EF_BAD || rc == EF_NEED_MORE);
        if (rc == EF_BAD) REQUIRE(whole.error > EF_E_NONE && whole.error < EF_E_COUNT && whole.status >= 400);
        if (rc > 0) {
            REQUIRE((uint32_t)rc == whole.head_len && whole.head_len <= limits->head && whole.n_spans <= limits->count);
            require_sound(&whole, buf, size);
            require_rewritten_same(&whole, limits, buf, method);
            if (method < 0) require_http10(&whole, limits, buf);
        }

        ef_head_reset(&parts);
        uint8_t *first = exact_copy(data, split);
        int part = fuzz_scan(&parts, limits, first, split, method);
        if (part == EF_NEED_MORE) part = fuzz_scan(&parts, limits, buf, size, method);
        free(first);
        require_same(rc, &whole, part, &parts);

        ef_head_reset(&parts);
        part = EF_NEED_MORE;
        for (size_t len = 0; len <= size && part == EF_NEED_MORE; len++)
            part = fuzz_scan(&parts, limits, buf, len, method);
        require_same(rc, &whole, part, &parts);
    }
    free(buf);
}
#endif
