/* h2_case.h - a block of fields, written as text for tests: one field per line, "name=value", and what becomes of it. */
#ifndef EF_TESTS_H2_CASE_H
#define EF_TESTS_H2_CASE_H
#include <string.h>

#include "../h2_text.h"
#include "check.h"
#include "guard.h"

typedef struct h2_outcome {
    ef_h2_text text;
    ef_head head;
    int rc;
    uint8_t buf[2 * EF_MAX_HEAD];
} h2_outcome;

static const ef_head_limits h2_limits = {EF_DEFAULT_REQUEST_HEAD, EF_DEFAULT_REQUEST_LINE, EF_DEFAULT_HEADERS,
                                         EF_UNDERSCORE_REJECT,    EF_RAW_REJECT,           EF_HTTP10_REJECT};

/* Lines "name=value\n"; a name may start with ':' but holds no '='. Each field lies flush against a forbidden page. */
static inline void h2_feed(h2_outcome *out, const ef_head_limits *limits, const char *fields, size_t len) {
    size_t at = 0;
    while (at < len) {
        const char *line = fields + at;
        const char *end = memchr(line, '\n', len - at);
        const char *equals = memchr(line, '=', (size_t)(end - line));
        const size_t name_len = (size_t)(equals - line);
        const size_t value_len = (size_t)(end - equals) - 1;
        const uint8_t *value = guard_end(equals + 1, value_len);
        const uint8_t *name = guard_start(line, name_len);
        const int rc = ef_h2_text_field(&out->text, limits, name, name_len, value, value_len);
        CHECK(rc == (out->text.error ? EF_BAD : 0));
        at += (size_t)(end - line) + 1;
    }
}

static inline int h2_run(h2_outcome *out, enum ef_h2_kind kind, const ef_head_limits *limits, const ef_h2_block *block,
                         const char *fields, size_t len) {
    /* what lies behind the room is not to be touched: the buffer ends where a page may not be written */
    const size_t room = ef_h2_text_room(limits);
    memset(out->buf, 0xee, sizeof(out->buf));
    ef_h2_text_begin(&out->text, kind, 0, limits, out->buf);
    h2_feed(out, limits, fields, len);
    out->rc = ef_h2_text_end(&out->text, limits, block, kind == EF_H2_TRAILERS ? NULL : &out->head);
    for (size_t i = room; i < sizeof(out->buf); i++)
        if (out->buf[i] != 0xee) {
            CHECK(out->buf[i] == 0xee);
            break;
        }
    return out->rc;
}

static inline int h2_is(const h2_outcome *out, const char *want) {
    const int holds = out->rc == (int)strlen(want) && memcmp(out->buf, want, strlen(want)) == 0;
    if (!holds) {
        fprintf(stderr, "    rc %d, %s %d, head %s:\n%.*s", out->rc, ef_h2_error_name(out->text.error),
                out->text.status, ef_head_error_name(out->head.error), (int)out->text.len, (const char *)out->buf);
    }
    return holds;
}

static inline int h2_refused(const h2_outcome *out, int error, int status) {
    const int holds = out->rc == EF_BAD && out->text.error == error && out->text.status == status;
    if (!holds)
        fprintf(stderr, "    rc %d, %s %d; want %s %d\n", out->rc, ef_h2_error_name(out->text.error), out->text.status,
                ef_h2_error_name(error), status);
    return holds;
}
#endif
