/* test_chunk.c - chunked bodies: data, exact ends, refusals; whole, at every split, byte by byte, flush against guard pages. */
#include "../chunk.h"

#include "../head.h"
#include "check.h"
#include "guard.h"

#define ROOM 70000u

typedef struct outcome {
    int rc;
    int error;
    size_t used;
    size_t body_len;
    size_t lines_len;
    uint8_t body[ROOM];
    uint8_t lines[EF_MAX_TRAILER_BYTES + 1];
} outcome;

/* Feeds [from, to) of the text; returns the last answer. */
static int feed(ef_chunk *chunk, outcome *out, const char *text, size_t from, size_t to) {
    const uint8_t *buf = guard_end(text + from, to - from);
    size_t at = 0;
    for (;;) {
        size_t used;
        const uint8_t *data;
        size_t data_len;
        const int rc = ef_chunk_feed(chunk, buf + at, to - from - at, &used, &data, &data_len);
        CHECK(used <= to - from - at);
        at += used;
        out->used += used;
        if (rc == EF_CHUNK_TRAILER) {
            CHECK(data_len > 0 && data + data_len == buf + at);
            memcpy(out->lines + out->lines_len, data, data_len);
            out->lines_len += data_len;
            continue;
        }
        if (rc != EF_CHUNK_DATA) {
            CHECK(data_len == 0);
            if (rc == EF_NEED_MORE) CHECK_EQUAL(at, to - from);
            out->rc = rc;
            out->error = chunk->error;
            return rc;
        }
        CHECK(data_len > 0 && data + data_len == buf + at);
        memcpy(out->body + out->body_len, data, data_len);
        out->body_len += data_len;
    }
}

static void begin(ef_chunk *chunk, outcome *out) {
    ef_chunk_reset(chunk);
    memset(out, 0, offsetof(outcome, body));
}

static int same(const outcome *a, const outcome *b) {
    if (a->rc != b->rc || a->error != b->error || a->used != b->used || a->body_len != b->body_len) return 0;
    if (memcmp(a->body, b->body, a->body_len) != 0) return 0;
    /* of a fault the lines that came before it are handed over or not, as they arrived: nobody reads them any more */
    return a->rc == EF_BAD || (a->lines_len == b->lines_len && memcmp(a->lines, b->lines, a->lines_len) == 0);
}

static outcome whole;
static outcome parts;

static void decode_all_ways(const char *text, size_t len) {
    ef_chunk chunk;
    begin(&chunk, &whole);
    (void)feed(&chunk, &whole, text, 0, len);
    for (size_t split = 0; split <= len; split++) {
        begin(&chunk, &parts);
        if (feed(&chunk, &parts, text, 0, split) == EF_NEED_MORE) (void)feed(&chunk, &parts, text, split, len);
        if (!CHECK(same(&whole, &parts))) fprintf(stderr, "    split at %zu: %s\n", split, text);
    }
    begin(&chunk, &parts);
    for (size_t i = 0; i < len; i++)
        if (feed(&chunk, &parts, text, i, i + 1) != EF_NEED_MORE) break;
    if (!CHECK(same(&whole, &parts))) fprintf(stderr, "    byte by byte: %s\n", text);
}

/* The text is a whole body, what follows it is not touched. */
static void expect_body(const char *text, const char *body) {
    char longer[1000];
    const size_t len = strlen(text);
    decode_all_ways(text, len);
    int holds = CHECK_EQUAL(whole.rc, EF_CHUNK_DONE);
    holds &= CHECK_EQUAL(whole.used, len);
    holds &= CHECK(whole.body_len == strlen(body) && memcmp(whole.body, body, whole.body_len) == 0);
    snprintf(longer, sizeof(longer), "%sGET / HTTP/1.1\r\n", text);
    decode_all_ways(longer, strlen(longer));
    holds &= CHECK_EQUAL(whole.rc, EF_CHUNK_DONE);
    holds &= CHECK_EQUAL(whole.used, len);
    if (!holds) fprintf(stderr, "    %s\n", text);
    for (size_t i = 0; i < len; i++) { /* every proper prefix is incomplete, not wrong */
        ef_chunk chunk;
        begin(&chunk, &parts);
        CHECK_EQUAL(feed(&chunk, &parts, text, 0, i), EF_NEED_MORE);
    }
}

static void expect_fault(const char *text, size_t len, int error) {
    decode_all_ways(text, len);
    int holds = CHECK_EQUAL(whole.rc, EF_BAD);
    holds &= CHECK_EQUAL(whole.error, error);
    if (!holds) fprintf(stderr, "    %s\n", text);
}

#define FAULT(literal, error) expect_fault(literal, sizeof(literal) - 1, error)

static void test_bodies(void) {
    expect_body("0\r\n\r\n", "");
    expect_body("5\r\nhello\r\n0\r\n\r\n", "hello");
    expect_body("5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", "hello world");
    expect_body("000000000000000A\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    expect_body("a;x\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    expect_body("2;a=b;c=\"d\\\"e\";f\r\nhi\r\n0;g=\"\"\r\n\r\n", "hi");
    expect_body("2;a=\" \t;=\\\\\x80\"\r\nhi\r\n0\r\n\r\n", "hi");
    expect_body("2\r\n\r\n\r\n0\r\n\r\n", "\r\n");
    expect_body("0\r\nContent-Length: 5\r\nHost: b\r\nX-Empty:\r\n\r\n", "");
    expect_body("1\r\nx\r\n0\r\nA_b: \t\x80 c\r\n\r\n", "x");
}

static void test_sizes(void) {
    FAULT("0x5\r\nhello\r\n0\r\n\r\n", EF_CE_SIZE);
    FAULT("+5\r\nhello\r\n0\r\n\r\n", EF_CE_SIZE);
    FAULT("-0x0\r\n\r\n", EF_CE_SIZE);
    FAULT("-1\r\n\r\n", EF_CE_SIZE);
    FAULT("5_0\r\n", EF_CE_SIZE);
    FAULT("5g\r\n", EF_CE_SIZE);
    FAULT(" 5\r\nhello\r\n", EF_CE_SIZE);
    FAULT("5 \r\nhello\r\n", EF_CE_SIZE);
    FAULT("5\t;a\r\nhello\r\n", EF_CE_SIZE);
    FAULT("\r\n", EF_CE_SIZE);
    FAULT(";a\r\n", EF_CE_SIZE);
    FAULT("\0", EF_CE_SIZE);
    FAULT("5\xff", EF_CE_SIZE);
    FAULT("FFFFFFFFFFFFFFFFF\r\n", EF_CE_SIZE);
    FAULT("10000000000000000\r\n", EF_CE_SIZE);
    FAULT("00000000000000000\r\n", EF_CE_SIZE);
    FAULT("FFFFFFFFFFFFFFFF\r\n", EF_CE_SIZE);
    FAULT("8000000000000000\r\n", EF_CE_SIZE);
    FAULT("1\r\nx\r\n\r\n", EF_CE_SIZE);

    ef_chunk chunk;
    begin(&chunk, &whole);
    CHECK_EQUAL(feed(&chunk, &whole, "7fffffffffffffff\r\nabc", 0, 21), EF_NEED_MORE);
    CHECK_EQUAL(whole.body_len, 3);
    CHECK(chunk.left == EF_MAX_CONTENT_LENGTH - 3);
}

static void test_line_ends(void) {
    FAULT("5\nhello\r\n0\r\n\r\n", EF_CE_CRLF);
    FAULT("5\rhello\r\n", EF_CE_CRLF);
    FAULT("5\r\nhelloXX0\r\n\r\n", EF_CE_CRLF);
    FAULT("5\r\nhello0\r\n\r\n", EF_CE_CRLF);
    FAULT("5\r\nhello\n0\r\n\r\n", EF_CE_CRLF);
    FAULT("5\r\nhello\r0\r\n\r\n", EF_CE_CRLF);
    FAULT("0\r\n\n", EF_CE_TRAILER);
    FAULT("0\r\n\rX", EF_CE_CRLF);
    FAULT("0\n\n", EF_CE_CRLF);
}

static void test_extensions(void) {
    FAULT("5;\r\n", EF_CE_EXTENSION);
    FAULT("5;;a\r\n", EF_CE_EXTENSION);
    FAULT("5; a\r\n", EF_CE_EXTENSION);
    FAULT("5;a \r\n", EF_CE_EXTENSION);
    FAULT("5;a=\r\n", EF_CE_EXTENSION);
    FAULT("5;a=b=c\r\n", EF_CE_EXTENSION);
    FAULT("5;a=\"b\"c\r\n", EF_CE_EXTENSION);
    FAULT("5;a=\"b\r\n\"", EF_CE_EXTENSION);
    FAULT("5;a=\"\\\r\"", EF_CE_EXTENSION);
    FAULT("5;a=\"\0\"", EF_CE_EXTENSION);
    FAULT("5;a=\"\\\0\"", EF_CE_EXTENSION);
    FAULT("5;a\nhello", EF_CE_EXTENSION);
    FAULT("5;a\0", EF_CE_EXTENSION);
    FAULT("5;a\r\r", EF_CE_CRLF);
    FAULT("5;a=\x80", EF_CE_EXTENSION);
}

static void expect_lines(const char *text, const char *lines) {
    decode_all_ways(text, strlen(text));
    int holds = CHECK_EQUAL(whole.rc, EF_CHUNK_DONE);
    holds &= CHECK(whole.lines_len == strlen(lines) && memcmp(whole.lines, lines, whole.lines_len) == 0);
    if (!holds) fprintf(stderr, "    %s\n", text);
}

static void test_trailers(void) {
    expect_lines("0\r\n\r\n", "");
    expect_lines("1\r\nx\r\n0\r\na: b\r\n\r\nc: d\r\n", "a: b\r\n");
    expect_lines("0\r\na:\r\nB: \t\x80 c \r\na: b\r\n\r\n", "a:\r\nB: \t\x80 c \r\na: b\r\n");
    FAULT("0\r\nbadtrailer\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\n: x\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\na : x\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\n a: x\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\na: x\r\n y\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\na: x\ny: z\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\na: x\ry: z\r\n\r\n", EF_CE_CRLF);
    FAULT("0\r\na: \0\r\n\r\n", EF_CE_TRAILER);
    FAULT("0\r\na: \x7f\r\n\r\n", EF_CE_TRAILER);
}

/* Feeds `unit` again and again, then `last`; returns what came of it. */
static int feed_many(const char *first, const char *unit, unsigned times, const char *last) {
    ef_chunk chunk;
    begin(&chunk, &whole);
    int rc = feed(&chunk, &whole, first, 0, strlen(first));
    for (unsigned i = 0; i < times && rc == EF_NEED_MORE; i++)
        rc = feed(&chunk, &whole, unit, 0, strlen(unit));
    return rc == EF_NEED_MORE ? feed(&chunk, &whole, last, 0, strlen(last)) : rc;
}

static void test_limits(void) {
    /* 4 bytes of extension a chunk: the limit is of the body, not of one chunk */
    CHECK_EQUAL(feed_many("", "1;abc\r\nx\r\n", EF_MAX_CHUNK_EXT / 4, "0\r\n\r\n"), EF_CHUNK_DONE);
    CHECK_EQUAL(whole.body_len, EF_MAX_CHUNK_EXT / 4);
    CHECK_EQUAL(feed_many("", "1;abc\r\nx\r\n", EF_MAX_CHUNK_EXT / 4, "0;a\r\n\r\n"), EF_BAD);
    CHECK_EQUAL(whole.error, EF_CE_LIMIT);
    CHECK_EQUAL(feed_many("1;", "a", EF_MAX_CHUNK_EXT, "\r\n"), EF_BAD);
    CHECK_EQUAL(whole.error, EF_CE_LIMIT);
    CHECK_EQUAL(feed_many("0\r\n", "a:b\r\n", EF_MAX_TRAILERS, "\r\n"), EF_CHUNK_DONE);
    CHECK_EQUAL(feed_many("0\r\n", "a:b\r\n", EF_MAX_TRAILERS, "a"), EF_BAD);
    CHECK_EQUAL(whole.error, EF_CE_LIMIT);
    CHECK_EQUAL(feed_many("0\r\na:", "b", EF_MAX_TRAILER_BYTES - 4, "\r\n\r\n"), EF_CHUNK_DONE);
    CHECK_EQUAL(feed_many("0\r\na:", "b", EF_MAX_TRAILER_BYTES - 3, "\r\n\r\n"), EF_BAD);
    CHECK_EQUAL(whole.error, EF_CE_LIMIT);
}

/* The end stays the end, a fault stays a fault, until the next message. */
static void test_after(void) {
    ef_chunk chunk;
    begin(&chunk, &whole);
    CHECK_EQUAL(feed(&chunk, &whole, "0\r\n\r\n", 0, 5), EF_CHUNK_DONE);
    CHECK_EQUAL(feed(&chunk, &whole, "5\r\n", 0, 3), EF_CHUNK_DONE);
    CHECK_EQUAL(whole.used, 5);
    begin(&chunk, &whole);
    CHECK_EQUAL(feed(&chunk, &whole, "5\r\nab!", 0, 6), EF_NEED_MORE);
    CHECK_EQUAL(feed(&chunk, &whole, "", 0, 0), EF_NEED_MORE);
    begin(&chunk, &whole);
    CHECK_EQUAL(feed(&chunk, &whole, "x", 0, 1), EF_BAD);
    CHECK_EQUAL(feed(&chunk, &whole, "0\r\n\r\n", 0, 5), EF_BAD);
    CHECK_EQUAL(whole.used, 0);
    for (int i = 0; i < EF_CE_COUNT; i++)
        CHECK(ef_chunk_error_text(i)[0] != 0);
    CHECK(strcmp(ef_chunk_error_text(EF_CE_COUNT), "unknown fault") == 0);
    CHECK(strcmp(ef_chunk_error_text(-1), "unknown fault") == 0);
}

int main(void) {
    test_bodies();
    test_sizes();
    test_line_ends();
    test_extensions();
    test_trailers();
    test_limits();
    test_after();
    return FINISH();
}
