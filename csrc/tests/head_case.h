/* head_case.h - one head scanned in every way: whole at both guard pages, split at every byte, byte by byte. All must agree. */
#ifndef EF_TESTS_HEAD_CASE_H
#define EF_TESTS_HEAD_CASE_H
#include <string.h>

#include "../head.h"
#include "check.h"
#include "guard.h"

typedef struct head_case {
    const char *text;
    size_t len;
    int error; /* enum ef_head_error, EF_E_NONE: accepted */
    int status;
} head_case;

/* Literals may hold NUL. */
#define TEXT(literal) (literal), sizeof(literal) - 1
#define GOOD(literal) \
    { TEXT(literal), EF_E_NONE, 0 }
#define BAD(literal, code, fault) \
    { TEXT(literal), fault, code }

static const ef_head_limits default_limits = {EF_DEFAULT_REQUEST_HEAD, EF_DEFAULT_REQUEST_LINE, EF_DEFAULT_HEADERS,
                                              EF_UNDERSCORE_REJECT,    EF_RAW_REJECT,           EF_HTTP10_REJECT};

/* What is scanned: a request, or a response to a request of some method. */
typedef struct scan_mode {
    const ef_head_limits *limits;
    int is_response;
    unsigned request_method;
} scan_mode;

static inline int scan_more(ef_head *head, const scan_mode *mode, const uint8_t *buf, size_t len) {
    if (mode->is_response) return ef_head_scan_response(head, mode->limits, buf, len, mode->request_method);
    return ef_head_scan_request(head, mode->limits, buf, len);
}

static inline int scan_whole(ef_head *head, const scan_mode *mode, const uint8_t *buf, size_t len) {
    ef_head_reset(head);
    return scan_more(head, mode, buf, len);
}

/* Same outcome: of accepted heads every field and span, of refused ones the reason. */
static inline int same_outcome(int rc_a, const ef_head *a, int rc_b, const ef_head *b) {
    if (rc_a != rc_b) return 0;
    if (rc_a == EF_NEED_MORE) return 1;
    if (rc_a == EF_BAD) return a->error == b->error && a->status == b->status;
    return memcmp(a, b, offsetof(ef_head, spans)) == 0 && memcmp(a->spans, b->spans, a->n_spans * sizeof(ef_span)) == 0;
}

/* The outcome of the whole text is left in *head; the bytes it refers to are `text`. */
static inline int scan_all_ways(ef_head *head, const scan_mode *mode, const char *text, size_t len) {
    static ef_head other;
    const int rc = scan_whole(head, mode, guard_end(text, len), len);
    CHECK(same_outcome(rc, head, scan_whole(&other, mode, guard_start(text, len), len), &other));
    for (size_t split = 0; split < len; split++) {
        ef_head_reset(&other);
        int part = scan_more(&other, mode, guard_end(text, split), split);
        if (part == EF_NEED_MORE) part = scan_more(&other, mode, guard_end(text, len), len);
        if (!CHECK(same_outcome(rc, head, part, &other)))
            fprintf(stderr, "    split at %zu of %zu: %s\n", split, len, text);
    }
    ef_head_reset(&other);
    int bytes = EF_NEED_MORE;
    for (size_t i = 0; i <= len && bytes == EF_NEED_MORE; i++)
        bytes = scan_more(&other, mode, guard_end(text, i), i);
    if (!CHECK(same_outcome(rc, head, bytes, &other))) fprintf(stderr, "    byte by byte: %s\n", text);
    return rc;
}

static inline void run_cases(const scan_mode *mode, const head_case *cases, size_t n) {
    static ef_head head;
    for (size_t i = 0; i < n; i++) {
        const head_case *c = &cases[i];
        const int rc = scan_all_ways(&head, mode, c->text, c->len);
        const int error = rc == EF_BAD ? head.error : EF_E_NONE;
        const int status = rc == EF_BAD ? head.status : 0;
        const int holds = rc != EF_NEED_MORE && error == c->error && status == c->status;
        if (!CHECK(holds))
            fprintf(stderr, "    rc %d, %d %s; want %d %s: %s\n", rc, status, ef_head_error_name(error), c->status,
                    ef_head_error_name(c->error), c->text);
    }
}

static inline int span_is(const char *text, uint32_t off, uint32_t len, const char *want) {
    return strlen(want) == len && memcmp(text + off, want, len) == 0;
}
#endif
