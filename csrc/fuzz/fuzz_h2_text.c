/* fuzz_h2_text.c - any fields as a block: what is accepted is exactly what was written, reads back as the fields that came in,
 * and written again it is the same text.
 *
 * Input: one byte of choices, then fields: length of the name, length of the value, name, value.
 */
#include "../h2_lines.h"
#include "../h2_text.h"
#include "head_invariants.h"

static const ef_head_limits sets[] = {
    {EF_DEFAULT_REQUEST_HEAD, EF_DEFAULT_REQUEST_LINE, EF_DEFAULT_HEADERS, EF_UNDERSCORE_REJECT, EF_RAW_REJECT,
     EF_HTTP10_REJECT},
    {400, 40, 5, EF_UNDERSCORE_ALLOW, EF_RAW_ALLOW, EF_HTTP10_REJECT},
};

typedef struct block {
    const uint8_t *at;
    size_t len;
    enum ef_h2_kind kind;
    int is_tls;
    const ef_head_limits *limits;
    ef_h2_block facts;
} block;

/* The next field as exact copies; 0 at the end. */
static int next_field(const block *b, size_t *at, uint8_t **name, size_t *name_len, uint8_t **value,
                      size_t *value_len) {
    if (b->len - *at < 2) return 0;
    *name_len = b->at[*at];
    *value_len = b->at[*at + 1];
    if (b->len - *at - 2 < *name_len + *value_len) return 0;
    *name = exact_copy(b->at + *at + 2, *name_len);
    *value = exact_copy(b->at + *at + 2 + *name_len, *value_len);
    *at += 2 + *name_len + *value_len;
    return 1;
}

/* Feed all; with `moves`, into new memory for each field. Leaves text->buf for the caller to free. */
static int feed(const block *b, ef_h2_text *text, ef_head *head, int moves) {
    const size_t room = ef_h2_text_room(b->limits);
    uint8_t *name, *value;
    size_t at = 0, name_len, value_len;
    ef_h2_text_begin(text, b->kind, b->is_tls, b->limits, malloc(room));
    while (next_field(b, &at, &name, &name_len, &value, &value_len)) {
        const int rc = ef_h2_text_field(text, b->limits, name, name_len, value, value_len);
        free(name);
        free(value);
        if (rc == EF_H2_CLOSE) return EF_H2_CLOSE;
        REQUIRE(rc == (text->error ? EF_BAD : 0));
        REQUIRE(text->len <= text->room && text->held <= text->room);
        if (moves) {
            uint8_t *other = malloc(room);
            memcpy(other, text->buf, text->len);
            memcpy(other + text->room, text->buf + text->room, text->held);
            free(text->buf);
            text->buf = other;
        }
    }
    return ef_h2_text_end(text, b->limits, &b->facts, head);
}

/* Every field that is no pseudo field, no cookie and no Host stands in the text, in order. */
static void require_fields(const block *b, const ef_h2_text *text, const ef_head *head) {
    uint8_t *name, *value;
    size_t at = 0, name_len, value_len;
    unsigned next = 0;
    while (next_field(b, &at, &name, &name_len, &value, &value_len)) {
        const int is_line = name[0] != ':' &&
                            !(b->kind == EF_H2_REQUEST && name_len == 6 && memcmp(name, "cookie", 6) == 0) &&
                            !(b->kind == EF_H2_REQUEST && name_len == 4 && memcmp(name, "host", 4) == 0) &&
                            !(text->is_tunnel && name_len == 17 && memcmp(name, "sec-websocket-key", 17) == 0);
        if (is_line) {
            int is_there = 0;
            for (; next < head->n_spans && !is_there; next++) {
                const ef_span *span = &head->spans[next];
                is_there = span->name_len == name_len && span->val_len == value_len &&
                           memcmp(text->buf + span->name_off, name, name_len) == 0 &&
                           memcmp(text->buf + span->val_off, value, value_len) == 0;
            }
            REQUIRE(is_there);
        }
        free(name);
        free(value);
    }
}

/* HTTP2-Settings is let in, and left out on the way out. */
static int has_settings(const uint8_t *text, size_t len) {
    for (size_t i = 0; i + 15 <= len; i++)
        if (memcmp(text + i, "http2-settings:", 15) == 0) return 1;
    return 0;
}

/* To fields and back: the same text. */
static void require_round_trip(const block *b, const ef_h2_text *text) {
    static ef_head again_head;
    static ef_h2_pair pairs[EF_MAX_HEADERS + EF_H2_PSEUDO_PAIRS];
    static const ef_head_limits wide = {EF_MAX_HEAD,         EF_MAX_HEAD,  EF_MAX_HEADERS,
                                        EF_UNDERSCORE_ALLOW, EF_RAW_ALLOW, EF_HTTP10_REJECT};
    const size_t room = EF_MAX_HEADERS + EF_H2_PSEUDO_PAIRS;
    const int is_request = b->kind == EF_H2_REQUEST;
    uint8_t *copy = exact_copy(text->buf, text->len);
    const int n = is_request ? ef_h2_lines_request(copy, text->len, b->is_tls, text->is_tunnel, pairs, room)
                  : b->kind == EF_H2_RESPONSE ? ef_h2_lines_response(copy, text->len, 0, pairs, room)
                                              : ef_h2_lines_trailers(copy, text->len, pairs, room);
    REQUIRE(n >= 0);
    ef_h2_text again;
    uint8_t *buf = malloc(ef_h2_text_room(&wide));
    ef_h2_text_begin(&again, b->kind, b->is_tls, &wide, buf);
    for (int i = 0; i < n; i++)
        REQUIRE(ef_h2_text_field(&again, &wide, pairs[i].name, pairs[i].name_len, pairs[i].value, pairs[i].value_len) ==
                0);
    const int rc = ef_h2_text_end(&again, &wide, &b->facts, &again_head);
    /* a tunnel's lines of framing, and a Host without :authority, come in another order */
    const int same_order = !text->is_tunnel && (!is_request || text->host_off > 0);
    if (same_order && !has_settings(text->buf, text->len))
        REQUIRE(rc == (int)text->len && memcmp(buf, text->buf, text->len) == 0);
    REQUIRE(rc >= 0);
    free(copy);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ef_head head, parts_head;
    ef_h2_text text, parts;
    if (size == 0) return 0;
    const block b = {data + 1,
                     size - 1,
                     (enum ef_h2_kind)((data[0] & 3) % 3),
                     data[0] >> 2 & 1,
                     &sets[data[0] >> 3 & 1],
                     {data[0] & 16 ? (const uint8_t *)"dGhlIHNhbXBsZSBub25jZQ==" : NULL, EF_M_GET, data[0] >> 5 & 1}};
    const int rc = feed(&b, &text, &head, 0);
    const int moved = feed(&b, &parts, &parts_head, 1);
    REQUIRE(rc == moved && text.error == parts.error && text.status == parts.status && text.len == parts.len);
    REQUIRE(rc >= 0 || rc == EF_BAD || rc == EF_H2_CLOSE);
    if (rc == EF_BAD)
        REQUIRE(text.error > EF_H2_E_NONE && text.error < EF_H2_E_COUNT && text.error != EF_H2_E_DISAGREE);
    if (rc >= 0) {
        REQUIRE((uint32_t)rc == text.len && memcmp(text.buf, parts.buf, text.len) == 0);
        if (b.kind != EF_H2_TRAILERS) {
            REQUIRE(head.head_len == text.len && head.n_spans == text.lines);
            if (text.is_tunnel) REQUIRE(head.body == EF_BODY_NONE && head.content_length == 0);
            require_sound(&head, text.buf, text.len);
            require_fields(&b, &text, &head);
        }
        require_round_trip(&b, &text);
    }
    free(text.buf);
    free(parts.buf);
    return 0;
}
