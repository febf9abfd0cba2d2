/* test_head_framing.c - lengths, codings, Connection, Upgrade, Expect of requests: the smuggling cases of docs/reference/http1.md. */
#include "head_case.h"

#define POST(headers) "POST / HTTP/1.1\r\nHost: a\r\n" headers "\r\n\r\n"
#define TE(value)     POST("Transfer-Encoding: " value)
#define CL(value)     POST("Content-Length: " value)

static const head_case lengths[] = {
    GOOD(CL("0")),
    GOOD(CL("5")),
    GOOD(CL("9223372036854775807")),
    GOOD(TE("chunked")),
    GOOD(TE("Chunked ")),
    BAD(POST("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400, EF_E_BOTH_LENGTHS),
    BAD(POST("Transfer-Encoding: chunked\r\nContent-Length: 5"), 400, EF_E_BOTH_LENGTHS),
    BAD(POST("Transfer-Encoding: chunked\r\nContent-Length: 0"), 400, EF_E_BOTH_LENGTHS),
    BAD(POST("Content-Length: 5\r\nTransfer-Encoding: gzip, chunked"), 400, EF_E_BOTH_LENGTHS),
    BAD(POST("Content-Length: 0\r\nContent-Length: 31"), 400, EF_E_MANY_CONTENT_LENGTHS),
    BAD(POST("Content-Length: 5\r\ncontent-length: 5"), 400, EF_E_MANY_CONTENT_LENGTHS),
    BAD(CL("5, 5"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("5,"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL(""), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("\r\nContent-Length: 5"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("+5"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("-5"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("-48"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("0x10"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("1_0"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("5e0"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("5.0"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("1Z"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("1 0"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("010"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("00"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("9223372036854775808"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("18446744073709551615"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("18446744073709551616"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("18446744073709551621"), 400, EF_E_CONTENT_LENGTH),
    BAD(CL("99999999999999999999999999"), 400, EF_E_CONTENT_LENGTH),
    BAD(POST("Content-Length : 5"), 400, EF_E_NAME),
    BAD(POST("Content-Length\t: 5"), 400, EF_E_NAME),
    BAD(POST("Content-Length 10"), 400, EF_E_NAME),
    BAD(POST("Content_Length: 5"), 400, EF_E_UNDERSCORE),
    BAD(POST("Transfer_Encoding: chunked"), 400, EF_E_UNDERSCORE),
};

static const head_case codings[] = {
    BAD(TE("xchunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunk"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunkedd"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("\"chunked\""), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("'chunked'"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked;a=b"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE(""), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE(","), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE(",chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked,"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("gzip,,chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("gzip"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("identity"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked, identity"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("identity, chunked, identity"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked, chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("chunked, gzip, chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Transfer-Encoding: identity, chunked \r\nContent-Length: 3"), 400, EF_E_BOTH_LENGTHS),
    BAD(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: x"), 400, EF_E_TRANSFER_ENCODING),
    BAD(TE("gzip, chunked"), 501, EF_E_CODING_UNKNOWN),
    BAD(TE("deflate ,\tgzip,Chunked"), 501, EF_E_CODING_UNKNOWN),
    BAD(TE("\x0b"
           "chunked"),
        400, EF_E_VALUE),
    BAD(TE("\x0c"
           "chunked"),
        400, EF_E_VALUE),
    BAD(TE("\x7f"
           "chunked"),
        400, EF_E_VALUE),
    BAD(TE("\xa0"
           "chunked"),
        400, EF_E_TRANSFER_ENCODING),
    BAD("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\0\r\n\r\n", 400, EF_E_VALUE),
    BAD("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \0chunked\r\n\r\n", 400, EF_E_VALUE),
    BAD(POST("Transfer-Encoding:\r\n chunked"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Foo:\r\n bar"), 400, EF_E_FOLD),
    BAD(POST("Foo: bar\nTransfer-Encoding: chunked"), 400, EF_E_BARE_LF),
    BAD(POST("Foo: bar\rTransfer-Encoding: chunked"), 400, EF_E_BARE_LF),
    BAD(POST("Te\nst: x"), 400, EF_E_BARE_LF),
    BAD(POST("Transfer-\r\nEncoding: chunked"), 400, EF_E_NAME),
};

static const head_case expectations[] = {
    GOOD(POST("Content-Length: 3\r\nExpect: 100-Continue")),
    GOOD(POST("Expect: foo")),
    GOOD(POST("Content-Length: 0\r\nExpect: foo")),
    BAD(POST("Content-Length: 3\r\nExpect: foo"), 417, EF_E_EXPECT),
    BAD(POST("Content-Length: 3\r\nExpect:"), 417, EF_E_EXPECT),
    BAD(POST("Content-Length: 3\r\nExpect: x 100-continue"), 417, EF_E_EXPECT),
    BAD(POST("Content-Length: 3\r\nExpect: 100-continue, x"), 417, EF_E_EXPECT),
    BAD(POST("Expect: foo\r\nTransfer-Encoding: chunked"), 417, EF_E_EXPECT),
    BAD(POST("Content-Length: 3\r\nExpect: 100-continue\r\nExpect: foo"), 417, EF_E_EXPECT),
};

/* Scans a good request and leaves it in `head`. */
static ef_head head;
static void accept(const scan_mode *mode, const char *text) {
    if (!CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0)) fprintf(stderr, "    %s\n", text);
}

static void test_bodies(const scan_mode *mode) {
    accept(mode, CL("0"));
    CHECK_EQUAL(head.body, EF_BODY_NONE);
    accept(mode, POST("Accept: x"));
    CHECK_EQUAL(head.body, EF_BODY_NONE);
    accept(mode, CL("9223372036854775807"));
    CHECK_EQUAL(head.body, EF_BODY_LENGTH);
    CHECK(head.content_length == UINT64_C(9223372036854775807));
    accept(mode, TE("CHUNKED"));
    CHECK_EQUAL(head.body, EF_BODY_CHUNKED);
    CHECK_EQUAL(head.content_length, 0);

    accept(mode, POST("Content-Length: 3\r\nExpect: 100-CONTINUE"));
    CHECK_EQUAL(head.expect_continue, 1);
    accept(mode, POST("Content-Length: 0\r\nExpect: 100-continue"));
    CHECK_EQUAL(head.expect_continue, 0);
    accept(mode, TE("chunked\r\nExpect: 100-continue"));
    CHECK_EQUAL(head.expect_continue, 1);
}

static void test_connection(const scan_mode *mode) {
    accept(mode, POST("Connection: close"));
    CHECK_EQUAL(head.keep_alive, 0);
    accept(mode, POST("Connection: Keep-Alive"));
    CHECK_EQUAL(head.keep_alive, 1);
    CHECK_EQUAL(head.has_connection_tokens, 0);
    accept(mode, POST("Connection: keep-alive\r\nConnection: x ,, CLOSE"));
    CHECK_EQUAL(head.keep_alive, 0);
    accept(mode, POST("Connection: closed"));
    CHECK_EQUAL(head.keep_alive, 1);
    accept(mode, POST("Proxy-Connection: close, upgrade\r\nUpgrade: x"));
    CHECK_EQUAL(head.keep_alive, 0);
    CHECK_EQUAL(head.upgrade, 0);

    accept(mode, POST("Connection: Upgrade\r\nUpgrade: websocket"));
    CHECK_EQUAL(head.upgrade, 1);
    accept(mode, POST("Connection: Upgrade\r\nUpgrade: "));
    CHECK_EQUAL(head.upgrade, 0);
    accept(mode, POST("Upgrade: websocket"));
    CHECK_EQUAL(head.upgrade, 0);
    accept(mode, POST("Connection: Upgrade"));
    CHECK_EQUAL(head.upgrade, 0);
    static const char *const http2[] = {"h2c", "H2C",    "websocket, h2c", "h2c, websocket",
                                        "h2",  "h2c-14", "HTTP/2.0",       "http"};
    for (size_t i = 0; i < sizeof(http2) / sizeof(http2[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), POST("Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA\r\nUpgrade: %s"),
                 http2[i]);
        accept(mode, text);
        CHECK_EQUAL(head.upgrade, 0);
        CHECK_EQUAL(head.spans[2].flags & EF_SPAN_HOP, EF_SPAN_HOP);
        CHECK_EQUAL(head.spans[3].flags, EF_SPAN_HOP);
    }
    accept(mode, POST("Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c"));
    CHECK_EQUAL(head.upgrade, 0);
    accept(mode, POST("Connection: upgrade\r\nUpgrade: TLS/1.0, httpx/1"));
    CHECK_EQUAL(head.upgrade, 1);

    accept(mode, POST("TE: gzip, Trailers"));
    CHECK_EQUAL(head.te_trailers, 1);
    accept(mode, POST("TE: trailersx"));
    CHECK_EQUAL(head.te_trailers, 0);
}

int main(void) {
    const scan_mode mode = {&default_limits, 0, 0};
    run_cases(&mode, lengths, sizeof(lengths) / sizeof(lengths[0]));
    run_cases(&mode, codings, sizeof(codings) / sizeof(codings[0]));
    run_cases(&mode, expectations, sizeof(expectations) / sizeof(expectations[0]));
    test_bodies(&mode);
    test_connection(&mode);
    return FINISH();
}
