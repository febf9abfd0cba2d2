/* test_head_http10.c - requests in HTTP/1.0, by each setting: what is refused, what is ignored, when the connection stays, and Host. */
#include "head_case.h"

#define OLD(lines)  "GET / HTTP/1.0\r\n" lines "\r\n"
#define POST(lines) "POST / HTTP/1.0\r\nHost: a\r\n" lines "\r\n"

static ef_head_limits limits;
static const scan_mode mode = {&limits, 0, 0};
static ef_head head;

static const head_case refused[] = {
    BAD(OLD("Host: a\r\n"), 426, EF_E_HTTP10),
    BAD(OLD(""), 426, EF_E_HTTP10),
    BAD("GET http://a/ HTTP/1.0\r\n\r\n", 426, EF_E_HTTP10),
    BAD(OLD("Host: a\r\nConnection: upgrade\r\nUpgrade: x\r\n"), 426, EF_E_HTTP10),
    BAD(POST("Transfer-Encoding: chunked\r\n"), 400, EF_E_TRANSFER_ENCODING),
};

static const head_case with_host[] = {
    GOOD(OLD("Host: a\r\n")),
    GOOD("GET http://a/ HTTP/1.0\r\n\r\n"),
    GOOD("GET http://a/ HTTP/1.0\r\nHost: A\r\n\r\n"),
    GOOD(POST("Content-Length: 3\r\nExpect: foo\r\n")),
    BAD(OLD(""), 400, EF_E_NO_HOST),
    BAD("GET / HTTP/1.1\r\n\r\n", 400, EF_E_NO_HOST),
    BAD("GET http://a/ HTTP/1.1\r\n\r\n", 400, EF_E_NO_HOST),
    BAD("GET http://a/ HTTP/1.0\r\nHost: b\r\n\r\n", 400, EF_E_AUTHORITY),
    BAD(OLD("Host: a\r\nHost: a\r\n"), 400, EF_E_MANY_HOSTS),
    BAD(OLD("Host:\r\n"), 400, EF_E_HOST),
    BAD(POST("Transfer-Encoding: chunked\r\n"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Transfer-Encoding: gzip, chunked\r\n"), 400, EF_E_TRANSFER_ENCODING),
    BAD(POST("Content-Length: 3\r\nContent-Length: 3\r\n"), 400, EF_E_MANY_CONTENT_LENGTHS),
    BAD("CONNECT a:1 HTTP/1.0\r\nHost: a:1\r\n\r\n", 405, EF_E_REFUSED_METHOD),
    BAD("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 400, EF_E_VERSION),
    BAD("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505, EF_E_VERSION_UNSUPPORTED),
    BAD("GET /\r\nHost: a\r\n\r\n", 400, EF_E_HTTP09),
};

static const head_case without_host[] = {
    GOOD(OLD("")),
    GOOD("GET http://a/ HTTP/1.0\r\n\r\n"),
    GOOD("OPTIONS * HTTP/1.0\r\n\r\n"),
    BAD(OLD("Host:\r\n"), 400, EF_E_HOST),
    BAD("GET / HTTP/1.1\r\n\r\n", 400, EF_E_NO_HOST),
    BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, EF_E_TRANSFER_ENCODING),
};

static void accept(const char *text) {
    if (!CHECK(scan_all_ways(&head, &mode, text, strlen(text)) > 0)) fprintf(stderr, "    %s\n", text);
    CHECK_EQUAL(head.version_minor, 0);
}

static void test_keep_alive(void) {
    static const struct {
        const char *text;
        int keeps;
    } cases[] = {
        {OLD("Host: a\r\n"), 0},
        {OLD("Host: a\r\nConnection: Keep-Alive\r\n"), 1},
        {OLD("Host: a\r\nConnection: x, keep-alive\r\n"), 1},
        {OLD("Host: a\r\nConnection: keep-alive, close\r\n"), 0},
        {OLD("Host: a\r\nConnection: keep-alive\r\nProxy-Connection: close\r\n"), 0},
        {OLD("Host: a\r\nProxy-Connection: keep-alive\r\n"), 0},
        {OLD("Host: a\r\nKeep-Alive: timeout=5\r\n"), 0},
        {"HEAD / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 1},
        {POST("Connection: keep-alive\r\n"), 0}, /* a body, if there is one, has no length */
        {POST("Connection: keep-alive\r\nContent-Length: 0\r\n"), 1},
        {POST("Connection: keep-alive\r\nContent-Length: 3\r\n"), 1},
        {"DELETE / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        accept(cases[i].text);
        if (!CHECK(head.keep_alive == cases[i].keeps)) fprintf(stderr, "    %s\n", cases[i].text);
    }
}

static void test_ignored(void) {
    accept(POST("Content-Length: 3\r\nExpect: 100-continue\r\n"));
    CHECK_EQUAL(head.expect_continue, 0);
    CHECK_EQUAL(head.body, EF_BODY_LENGTH);
    accept(POST("Connection: upgrade\r\nUpgrade: websocket\r\n"));
    CHECK_EQUAL(head.upgrade, 0);
    CHECK_EQUAL(head.spans[2].flags & EF_SPAN_HOP, EF_SPAN_HOP);
    accept(POST("Connection: te, x-a\r\nTE: trailers\r\nX-A: 1\r\n"));
    CHECK_EQUAL(head.te_trailers, 0);
    CHECK_EQUAL(head.spans[3].flags & EF_SPAN_NOMINATED, EF_SPAN_NOMINATED);
}

/* The head with Host, at the end of readable memory in and out. */
static void add_host(const char *text, const char *host, const char *want) {
    static ef_head again;
    char out[200];
    accept(text);
    CHECK_EQUAL(head.host_len, 0);
    const size_t n =
        ef_head_add_host(&head, guard_end(text, strlen(text)), (const uint8_t *)host, strlen(host), (uint8_t *)out);
    if (!CHECK(span_is(out, 0, (uint32_t)n, want))) fprintf(stderr, "    %.*s\n", (int)n, out);
    CHECK_EQUAL(scan_whole(&again, &mode, (const uint8_t *)out, n), n);
    CHECK(again.host_len > 0);
    CHECK(again.target_off == head.target_off && again.target_len == head.target_len);
}

static void test_added_host(void) {
    add_host(OLD(""), "_", "GET / HTTP/1.0\r\nHost: _\r\n\r\n");
    add_host("\r\n" OLD("A: b\r\n"), "site.test", "\r\nGET / HTTP/1.0\r\nHost: site.test\r\nA: b\r\n\r\n");
    add_host("GET http://b:80/x HTTP/1.0\r\n\r\n", "_", "GET http://b:80/x HTTP/1.0\r\nHost: b:80\r\n\r\n");
    add_host("OPTIONS * HTTP/1.0\r\n\r\n", "a", "OPTIONS * HTTP/1.0\r\nHost: a\r\n\r\n");
}

int main(void) {
    limits = default_limits;
    run_cases(&mode, refused, sizeof(refused) / sizeof(refused[0]));
    limits.http10 = EF_HTTP10_WITH_HOST;
    run_cases(&mode, with_host, sizeof(with_host) / sizeof(with_host[0]));
    test_keep_alive();
    test_ignored();
    limits.http10 = EF_HTTP10_ALLOW;
    run_cases(&mode, without_host, sizeof(without_host) / sizeof(without_host[0]));
    test_keep_alive();
    test_added_host();
    return FINISH();
}
