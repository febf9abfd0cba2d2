/* test_h2_text.c - requests: the text of an HTTP/2 request, and what is refused instead. */
#include "h2_case.h"

static h2_outcome out;
static const ef_h2_block ends = {NULL, EF_M_GET, 1};
static const ef_h2_block goes_on = {NULL, EF_M_GET, 0};

#define RUN(block, fields)         h2_run(&out, EF_H2_REQUEST, &h2_limits, &(block), fields, sizeof(fields) - 1)
#define TEXT_IS(fields, want)      (RUN(ends, fields), CHECK(h2_is(&out, want)))
#define REFUSED(fields, e, answer) (RUN(ends, fields), CHECK(h2_refused(&out, e, answer)))

#define GET  ":method=GET\n:scheme=http\n:path=/a?b\n:authority=x\n"
#define LINE "GET /a?b HTTP/1.1\r\nhost: x\r\n"

static void test_text(void) {
    TEXT_IS(GET, LINE "\r\n");
    TEXT_IS(":authority=x\n:path=/a?b\n:scheme=http\n:method=GET\n", LINE "\r\n");
    TEXT_IS(":path=/a?b\n:scheme=HTTP\n:method=GET\nhost=x\n", LINE "\r\n");
    TEXT_IS(GET "accept=*/*\nx-a=\nx-a=a\tb\n", LINE "accept: */*\r\nx-a: \r\nx-a: a\tb\r\n\r\n");
    TEXT_IS(GET "x-a=caf\xc3\xa9\n", LINE "x-a: caf\xc3\xa9\r\n\r\n");
    TEXT_IS(":method=OPTIONS\n:scheme=http\n:path=*\n:authority=x\n", "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n");
    TEXT_IS(GET "te=trailers\n", LINE "te: trailers\r\n\r\n");
    CHECK_EQUAL(out.head.te_trailers, 1);
    TEXT_IS(":method=GET\n:scheme=http\n:path=/\n:authority=[::1]:80\n", "GET / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n");
    CHECK_EQUAL(out.head.host_port, 80);
}

static void test_cookies_become_one_line_at_the_end(void) {
    TEXT_IS(GET "cookie=a=1\n", LINE "cookie: a=1\r\n\r\n");
    TEXT_IS(GET "cookie=a=1\nx-a=y\ncookie=b=2\nx-b=z\ncookie=c=3\n",
            LINE "x-a: y\r\nx-b: z\r\ncookie: a=1; b=2; c=3\r\n\r\n");
    TEXT_IS(GET "cookie=\ncookie=\n", LINE "cookie: \r\n\r\n");
    TEXT_IS(GET "cookie=\ncookie=a\ncookie=\ncookie=b\n", LINE "cookie: a; b\r\n\r\n");
}

static void test_host(void) {
    TEXT_IS(GET "host=x\n", LINE "\r\n");
    TEXT_IS(GET "host=X\n", LINE "\r\n");
    REFUSED(GET "host=y\n", EF_H2_E_HOST, 0);
    REFUSED(GET "host=x:80\n", EF_H2_E_HOST, 0);
    REFUSED(GET "host=\n", EF_H2_E_HOST, 0);
    REFUSED(GET "host=x\nhost=x\n", EF_H2_E_HOST, 0);
    REFUSED(":method=GET\n:scheme=http\n:path=/\nhost=x\nhost=y\n", EF_H2_E_HOST, 0);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n", EF_H2_E_HEAD, 400);
    CHECK_EQUAL(out.head.error, EF_E_NO_HOST);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n:authority=\n", EF_H2_E_HEAD, 400);
    CHECK_EQUAL(out.head.error, EF_E_HOST);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n:authority=a@b\n", EF_H2_E_HEAD, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n:authority=a b\n", EF_H2_E_HOST, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n:authority=a\r\n", EF_H2_E_HOST, 400);
}

static void test_pseudo_fields(void) {
    REFUSED(GET ":method=GET\n", EF_H2_E_PSEUDO_REPEATED, 0);
    REFUSED(GET "a=b\n:method=GET\n", EF_H2_E_PSEUDO_LATE, 0);
    REFUSED(GET ":status=200\n", EF_H2_E_PSEUDO, 0);
    REFUSED(GET ":x=1\n", EF_H2_E_PSEUDO, 0);
    REFUSED(GET ":=1\n", EF_H2_E_PSEUDO, 0);
    REFUSED(GET ":Path=1\n", EF_H2_E_PSEUDO, 0);
    REFUSED("a=b\n" GET, EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED("", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=GET\n:scheme=http\n:authority=x\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=GET\n:path=/\n:authority=x\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":path=/\n:scheme=http\n:authority=x\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_METHOD, 0);
    REFUSED(":method=GET /\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_METHOD, 0);
    REFUSED(":method=G\rT\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_METHOD, 0);
    REFUSED(":method=FOO\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_HEAD, 501);
    REFUSED(":method=TRACE\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_HEAD, 405);
    REFUSED(":method=GET\n:scheme=https\n:path=/\n:authority=x\n", EF_H2_E_SCHEME, 400);
}

static void test_path(void) {
    REFUSED(":method=GET\n:scheme=http\n:path=\n:authority=x\n", EF_H2_E_PATH, 0);
    REFUSED(":method=GET\n:scheme=http\n:path=a\n:authority=x\n", EF_H2_E_PATH, 0);
    REFUSED(":method=GET\n:scheme=http\n:path=http://x/\n:authority=x\n", EF_H2_E_PATH, 0);
    REFUSED(":method=GET\n:scheme=http\n:path=*\n:authority=x\n", EF_H2_E_HEAD, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/ HTTP/1.1\n:authority=x\n", EF_H2_E_PATH, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/\r\n:authority=x\n", EF_H2_E_PATH, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/#a\n:authority=x\n", EF_H2_E_PATH, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/\\\n:authority=x\n", EF_H2_E_HEAD, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/?|\n:authority=x\n", EF_H2_E_HEAD, 400);
    REFUSED(":method=GET\n:scheme=http\n:path=/\n:authority=x..\n", EF_H2_E_HEAD, 400);
}

static void test_connect(void) {
    REFUSED(":method=CONNECT\n:authority=x:80\n", EF_H2_E_METHOD, 405);
    REFUSED(":method=CONNECT\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=CONNECT\n:authority=x\n:path=/\n:scheme=http\n", EF_H2_E_PSEUDO, 0);
    REFUSED(GET ":protocol=websocket\n", EF_H2_E_PROTOCOL, 0);
    REFUSED(":method=CONNECT\n:protocol=websocket\n:scheme=http\n:path=/\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=CONNECT\n:protocol=websocket\n:authority=x\n", EF_H2_E_PSEUDO_MISSING, 0);
    REFUSED(":method=CONNECT\n:protocol=connect-udp\n:scheme=http\n:path=/\n:authority=x\n", EF_H2_E_PROTOCOL, 501);

#define TUNNEL ":method=CONNECT\n:protocol=websocket\n:scheme=http\n:path=/c\n:authority=x\n"
    REFUSED(TUNNEL "content-length=0\n", EF_H2_E_CONTENT_LENGTH, 0);
    REFUSED(TUNNEL "content-length=1000\n", EF_H2_E_CONTENT_LENGTH, 0);
    RUN(goes_on, TUNNEL "sec-websocket-version=13\n");
    CHECK(h2_is(&out, "GET /c HTTP/1.1\r\nhost: x\r\nsec-websocket-version: 13\r\nconnection: upgrade\r\n"
                      "upgrade: websocket\r\n\r\n"));
    CHECK_EQUAL(out.head.upgrade, 1);
    const ef_h2_block keyed = {(const uint8_t *)"dGhlIHNhbXBsZSBub25jZQ==", EF_M_GET, 0};
    RUN(keyed, TUNNEL "sec-websocket-key=x\n");
    CHECK(h2_is(&out, "GET /c HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
}

static void test_fields(void) {
    static const char *const connection[] = {
        "connection=close",          "connection=x", "keep-alive=1", "proxy-connection=a",
        "transfer-encoding=chunked", "upgrade=h2c"};
    for (size_t i = 0; i < sizeof(connection) / sizeof(connection[0]); i++) {
        char fields[256];
        const int n = snprintf(fields, sizeof(fields), GET "%s\n", connection[i]);
        h2_run(&out, EF_H2_REQUEST, &h2_limits, &ends, fields, (size_t)n);
        CHECK(h2_refused(&out, EF_H2_E_CONNECTION, 0));
    }
    REFUSED(GET "te=gzip\n", EF_H2_E_TE, 0);
    REFUSED(GET "te=trailers, gzip\n", EF_H2_E_TE, 0);
    REFUSED(GET "Accept=1\n", EF_H2_E_NAME, 0);
    REFUSED(GET "=1\n", EF_H2_E_NAME, 0);
    REFUSED(GET "a b=1\n", EF_H2_E_NAME, 0);
    REFUSED(GET "a:b=1\n", EF_H2_E_NAME, 0);
    REFUSED(GET "a\r=1\n", EF_H2_E_NAME, 0);
    REFUSED(GET "a=\r\n", EF_H2_E_VALUE, 0);
    REFUSED(GET "a=b\0c\n", EF_H2_E_VALUE, 0);
    REFUSED(GET "a=b\rc: d\n", EF_H2_E_VALUE, 0);
    REFUSED(GET "a= b\n", EF_H2_E_VALUE, 0);
    REFUSED(GET "a=b\t\n", EF_H2_E_VALUE, 0);
    REFUSED(GET "a_b=1\n", EF_H2_E_HEAD, 400);
    REFUSED(GET "expect=x\ncontent-length=1\n", EF_H2_E_HEAD, 417);
    /* a line feed cannot be written in these fields */
    ef_h2_text_begin(&out.text, EF_H2_REQUEST, 0, &h2_limits, out.buf);
    h2_feed(&out, &h2_limits, GET, sizeof(GET) - 1);
    CHECK_EQUAL(ef_h2_text_field(&out.text, &h2_limits, (const uint8_t *)"a", 1, (const uint8_t *)"b\nc", 3), EF_BAD);
    CHECK_EQUAL(out.text.error, EF_H2_E_VALUE);
}

static void test_lengths(void) {
    REFUSED(GET "content-length=1\ncontent-length=1\n", EF_H2_E_CONTENT_LENGTH, 0);
    REFUSED(GET "content-length=1\n", EF_H2_E_CONTENT_LENGTH, 0); /* END_STREAM */
    REFUSED(GET "content-length=+1\n", EF_H2_E_HEAD, 400);
    TEXT_IS(GET "content-length=0\n", LINE "content-length: 0\r\n\r\n");
    RUN(goes_on, GET "content-length=7\n");
    CHECK(h2_is(&out, LINE "content-length: 7\r\n\r\n"));
    CHECK_EQUAL(out.head.content_length, 7);
    RUN(goes_on, GET);
    CHECK(h2_is(&out, LINE "transfer-encoding: chunked\r\n\r\n"));
    CHECK_EQUAL(out.head.body, EF_BODY_CHUNKED);
}

int main(void) {
    test_text();
    test_cookies_become_one_line_at_the_end();
    test_host();
    test_pseudo_fields();
    test_path();
    test_connect();
    test_fields();
    test_lengths();
    return FINISH();
}
