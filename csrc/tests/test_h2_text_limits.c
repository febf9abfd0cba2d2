/* test_h2_text_limits.c - how large a block may be; responses and trailers. */
#include "h2_case.h"

static h2_outcome out;
static const ef_h2_block ends = {NULL, EF_M_GET, 1};
static const ef_h2_block goes_on = {NULL, EF_M_GET, 0};

#define GET ":method=GET\n:scheme=http\n:path=/a?b\n:authority=x\n"

static int field(const ef_head_limits *limits, const char *name, size_t value_len) {
    static uint8_t value[EF_MAX_HEAD];
    memset(value, 'v', sizeof(value));
    return ef_h2_text_field(&out.text, limits, (const uint8_t *)name, strlen(name), value, value_len);
}

static void begin(const ef_head_limits *limits) {
    ef_h2_text_begin(&out.text, EF_H2_REQUEST, 0, limits, out.buf);
    h2_feed(&out, limits, GET, sizeof(GET) - 1);
}

static void test_bytes_count_with_their_cost(void) {
    const ef_head_limits limits = {1000, 100, 20, EF_UNDERSCORE_REJECT, EF_RAW_REJECT, EF_HTTP10_REJECT};
    const uint32_t pseudo = (7 + 3 + 32) + (7 + 4 + 32) + (5 + 4 + 32) + (10 + 1 + 32);
    begin(&limits);
    CHECK_EQUAL(out.text.cost, pseudo);
    CHECK_EQUAL(field(&limits, "a", 1000 - pseudo - 33), 0);
    CHECK(ef_h2_text_end(&out.text, &limits, &ends, &out.head) > 0);
    begin(&limits);
    CHECK_EQUAL(field(&limits, "a", 1000 - pseudo - 32), EF_BAD);
    CHECK_EQUAL(out.text.status, 431);
    CHECK_EQUAL(ef_h2_text_end(&out.text, &limits, &ends, &out.head), EF_BAD);

    /* what follows is only counted, until it is a flood */
    int rc = EF_BAD;
    size_t fed = 0;
    while (rc == EF_BAD && fed < 100) {
        rc = field(&limits, "a", 100);
        fed++;
    }
    CHECK_EQUAL(rc, EF_H2_CLOSE);
    CHECK(out.text.cost > EF_H2_FLOOD * 1000 && out.text.cost <= EF_H2_FLOOD * 1000 + 133);
    CHECK_EQUAL(out.text.status, 431);
}

static void test_fields_and_crumbs_are_counted(void) {
    const ef_head_limits limits = {8000, 100, 5, EF_UNDERSCORE_REJECT, EF_RAW_REJECT, EF_HTTP10_REJECT};
    for (int crumbs = 0; crumbs < 2; crumbs++) {
        begin(&limits); /* Host is one */
        for (int i = 0; i < 4; i++)
            CHECK_EQUAL(field(&limits, crumbs ? "cookie" : "a", 1), 0);
        CHECK(ef_h2_text_end(&out.text, &limits, &ends, &out.head) > 0);
        begin(&limits);
        for (int i = 0; i < 4; i++)
            field(&limits, crumbs ? "cookie" : "a", 1);
        CHECK_EQUAL(field(&limits, crumbs ? "cookie" : "a", 1), EF_BAD);
        CHECK_EQUAL(out.text.status, 431);
    }
    begin(&limits); /* a body without length is a line, too, as in HTTP/1.1 */
    for (int i = 0; i < 4; i++)
        field(&limits, "a", 1);
    CHECK_EQUAL(ef_h2_text_end(&out.text, &limits, &goes_on, &out.head), EF_BAD);
    CHECK_EQUAL(out.text.status, 431);
}

static void test_request_line(void) {
    const ef_head_limits limits = {1000, 20, 20, EF_UNDERSCORE_REJECT, EF_RAW_REJECT, EF_HTTP10_REJECT};
    const char fits[] = ":method=GET\n:scheme=http\n:path=/123456\n:authority=x\n";
    const char not [] = ":method=GET\n:scheme=http\n:path=/1234567\n:authority=x\n";
    h2_run(&out, EF_H2_REQUEST, &limits, &ends, fits, sizeof(fits) - 1);
    CHECK(h2_is(&out, "GET /123456 HTTP/1.1\r\nhost: x\r\n\r\n"));
    h2_run(&out, EF_H2_REQUEST, &limits, &ends, not, sizeof(not ) - 1);
    CHECK(h2_refused(&out, EF_H2_E_TOO_LARGE, 414));
}

/* Between two fields the text may move: a block that comes in several reads. */
static void test_buffer_may_move(void) {
    static uint8_t other[2 * EF_DEFAULT_REQUEST_HEAD];
    const char rest[] = "cookie=a\nx=y\ncookie=b\n";
    for (int moved = 0; moved < 2; moved++) {
        ef_h2_text_begin(&out.text, EF_H2_REQUEST, 0, &h2_limits, out.buf);
        h2_feed(&out, &h2_limits, GET "cookie=0\n", sizeof(GET "cookie=0\n") - 1);
        if (moved) {
            memcpy(other, out.buf, sizeof(other));
            memset(out.buf, 0, sizeof(other));
            out.text.buf = other;
        }
        h2_feed(&out, &h2_limits, rest, sizeof(rest) - 1);
        const int n = ef_h2_text_end(&out.text, &h2_limits, &ends, &out.head);
        const char want[] = "GET /a?b HTTP/1.1\r\nhost: x\r\nx: y\r\ncookie: 0; a; b\r\n\r\n";
        CHECK_EQUAL(n, sizeof(want) - 1);
        CHECK(memcmp(out.text.buf, want, sizeof(want) - 1) == 0);
    }
}

#define RESPONSE(block, fields) h2_run(&out, EF_H2_RESPONSE, &h2_limits, &(block), fields, sizeof(fields) - 1)

static void test_responses(void) {
    RESPONSE(ends, ":status=200\ncontent-length=5\nset-cookie=a\nset-cookie=b\n");
    CHECK(h2_is(&out, "HTTP/1.1 200 \r\ncontent-length: 5\r\nset-cookie: a\r\nset-cookie: b\r\n\r\n"));
    CHECK_EQUAL(out.head.response_status, 200);
    RESPONSE(goes_on, ":status=200\n");
    CHECK(h2_is(&out, "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n"));
    RESPONSE(goes_on, ":status=103\nlink=a\n");
    CHECK(h2_is(&out, "HTTP/1.1 103 \r\nlink: a\r\n\r\n"));
    RESPONSE(goes_on, ":status=204\n");
    CHECK(h2_is(&out, "HTTP/1.1 204 \r\n\r\n"));
    CHECK_EQUAL(out.head.keep_alive, 1);
    RESPONSE(ends, ":status=200\nhost=a\ncookie=x\ncookie=y\n");
    CHECK(h2_is(&out, "HTTP/1.1 200 \r\nhost: a\r\ncookie: x\r\ncookie: y\r\n\r\n"));
    static const char *const bad[] = {":status=101\n", ":status=20\n", ":status=2000\n", ":status=2x0\n",
                                      ":status=099\n", ":status=\n",   ":status=20 \n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        h2_run(&out, EF_H2_RESPONSE, &h2_limits, &ends, bad[i], strlen(bad[i]));
        CHECK(h2_refused(&out, EF_H2_E_STATUS, 0));
    }
    RESPONSE(ends, "a=b\n");
    CHECK(h2_refused(&out, EF_H2_E_PSEUDO_MISSING, 0));
    RESPONSE(ends, ":status=200\n:path=/\n");
    CHECK(h2_refused(&out, EF_H2_E_PSEUDO, 0));
    RESPONSE(ends, ":status=200\nconnection=close\n");
    CHECK(h2_refused(&out, EF_H2_E_CONNECTION, 0));
    RESPONSE(ends, ":status=200\na=b\rc\n");
    CHECK(h2_refused(&out, EF_H2_E_VALUE, 0));
}

#define TRAILERS(fields) h2_run(&out, EF_H2_TRAILERS, &h2_limits, &ends, fields, sizeof(fields) - 1)

static void test_trailers(void) {
    TRAILERS("");
    CHECK_EQUAL(out.rc, 0);
    TRAILERS("grpc-status=0\ngrpc-message=\n");
    CHECK(h2_is(&out, "grpc-status: 0\r\ngrpc-message: \r\n"));
    TRAILERS(":status=200\n");
    CHECK(h2_refused(&out, EF_H2_E_PSEUDO_LATE, 0));
    TRAILERS("a=b\n:path=/\n");
    CHECK(h2_refused(&out, EF_H2_E_PSEUDO_LATE, 0));
    TRAILERS("transfer-encoding=chunked\n");
    CHECK(h2_refused(&out, EF_H2_E_CONNECTION, 0));
    TRAILERS("content-length=1\n");
    CHECK(h2_refused(&out, EF_H2_E_TRAILER, 0));
    TRAILERS("host=x\n");
    CHECK(h2_refused(&out, EF_H2_E_TRAILER, 0));
    TRAILERS("A=b\n");
    CHECK(h2_refused(&out, EF_H2_E_NAME, 0));
}

static void test_words(void) {
    for (int i = -1; i <= EF_H2_E_COUNT; i++) {
        CHECK(ef_h2_error_name(i) != NULL && ef_h2_error_name(i)[0] != 0);
        CHECK(ef_h2_error_text(i) != NULL && ef_h2_error_text(i)[0] != 0);
    }
}

int main(void) {
    test_bytes_count_with_their_cost();
    test_fields_and_crumbs_are_counted();
    test_request_line();
    test_buffer_may_move();
    test_responses();
    test_trailers();
    test_words();
    return FINISH();
}
