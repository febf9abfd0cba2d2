/* test_head_request.c - request line, target, Host: what is refused, with which answer, and what is read from the rest. */
#include "head_case.h"

#define REQUEST(line)         line "\r\nHost: a\r\n\r\n"
#define GET_HOST(value)       "GET / HTTP/1.1\r\nHost: " value "\r\n\r\n"
#define GET_AT(target, value) "GET " target " HTTP/1.1\r\nHost: " value "\r\n\r\n"

static const head_case lines[] = {
    GOOD(REQUEST("GET / HTTP/1.1")),
    GOOD("\r\n" REQUEST("GET / HTTP/1.1")),
    GOOD(REQUEST("M-SEARCH / HTTP/1.1")),
    GOOD(REQUEST("UNSUBSCRIBE /a HTTP/1.1")),
    BAD("\r\n\r\n" REQUEST("GET / HTTP/1.1"), 400, EF_E_LINE),
    BAD("\n" REQUEST("GET / HTTP/1.1"), 400, EF_E_BARE_LF),
    BAD("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, EF_E_BARE_LF),
    BAD("hello\r\n\r\n", 400, EF_E_LINE),
    BAD("GET\r\n\r\n", 400, EF_E_LINE),
    BAD("GET \r\n\r\n", 400, EF_E_LINE),
    BAD(REQUEST("GE(T / HTTP/1.1"), 400, EF_E_METHOD),
    BAD(REQUEST(" GET / HTTP/1.1"), 400, EF_E_METHOD),
    BAD(REQUEST("G\xc3\x89T / HTTP/1.1"), 400, EF_E_METHOD),
    BAD(REQUEST("GET\t/ HTTP/1.1"), 400, EF_E_METHOD),
    BAD(REQUEST("get / HTTP/1.1"), 501, EF_E_UNKNOWN_METHOD),
    BAD(REQUEST("FOO / HTTP/1.1"), 501, EF_E_UNKNOWN_METHOD),
    BAD(REQUEST("GETT / HTTP/1.1"), 501, EF_E_UNKNOWN_METHOD),
    BAD(REQUEST("FOO ??? HTTP/1.1"), 501, EF_E_UNKNOWN_METHOD),
    BAD(REQUEST("CONNECT a:80 HTTP/1.1"), 405, EF_E_REFUSED_METHOD),
    BAD(REQUEST("CONNECT / HTTP/1.1"), 405, EF_E_REFUSED_METHOD),
    BAD(REQUEST("TRACE / HTTP/1.1"), 405, EF_E_REFUSED_METHOD),
    BAD(REQUEST("GET  / HTTP/1.1"), 400, EF_E_LINE),
    BAD(REQUEST("GET /  HTTP/1.1"), 400, EF_E_VERSION),
    BAD(REQUEST("GET /\tHTTP/1.1"), 400, EF_E_HTTP09),
    BAD(REQUEST("GET / HTTP/1.1 "), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1.1\t"), 400, EF_E_VERSION),
    BAD("GET /\nHTTP/1.1\r\nHost: a\r\n\r\n", 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\nHost: a\n\n", 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\rHost: a\r\n\r\n", 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400, EF_E_BARE_LF),
    BAD("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400, EF_E_LINE),
    BAD("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400,
        EF_E_LINE), /* TLS on a plain port: no need to wait for a LF */
    BAD(REQUEST("GET / HTTP/1.01"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1.32"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1,1"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / http/1.1"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1.1x"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1."), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/x.1"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1.x"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / ICAP/1.1"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/0.9"), 400, EF_E_VERSION),
    BAD(REQUEST("GET / HTTP/1.2"), 505, EF_E_VERSION_UNSUPPORTED),
    BAD(REQUEST("GET / HTTP/2.0"), 505, EF_E_VERSION_UNSUPPORTED),
    BAD(REQUEST("GET / HTTP/3.0"), 505, EF_E_VERSION_UNSUPPORTED),
    BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, EF_E_VERSION_UNSUPPORTED),
    BAD("GET /\r\n\r\n", 400, EF_E_HTTP09),
    BAD("GET / HTTP/1.0\r\n\r\n", 426, EF_E_HTTP10),
    BAD("GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 426, EF_E_HTTP10),
    BAD("GET / HTTP/1.0\r\nContent-Length: 1\r\nExpect: foo\r\n\r\n", 426, EF_E_HTTP10),
    BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, EF_E_TRANSFER_ENCODING),
    BAD("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400, EF_E_TRANSFER_ENCODING),
    BAD("GET / HTTP/1.0\r\nBad Name: x\r\n\r\n", 400, EF_E_NAME),
};

static const head_case targets[] = {
    GOOD(REQUEST("OPTIONS * HTTP/1.1")),
    BAD(REQUEST("GET * HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("OPTIONS */x HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("OPTIONS ** HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET admin HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET a:80 HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET ?x HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /a#b HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /a?x#b HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET # HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /a\\b HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /a?\\ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\xff HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?\x80 HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\t HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\x7f HTTP/1.1"), 400, EF_E_LINE),
    BAD(REQUEST("GET /< HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?> HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\" HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /{ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /} HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /| HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /^ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /` HTTP/1.1"), 400, EF_E_TARGET),
    GOOD(REQUEST("GET /a%2Fb;c=d/e@f:g?a[]=1&b=!$'()*+,;=-._~/?:@ HTTP/1.1")),
    GOOD(GET_AT("http://a/", "a")),
    GOOD(GET_AT("HTTP://A.example:80/x", "a.EXAMPLE:80")),
    GOOD(GET_AT("https://a/", "a")),
    GOOD(GET_AT("http://[::1]:8080/", "[::1]:8080")),
    BAD(GET_AT("http://b/", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://a:80/", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://a/", "a:80"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://u:p@a/", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://u@a", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://@a/", "a"), 400, EF_E_AUTHORITY),
    GOOD(GET_AT("http://a/@", "a")),
    BAD(GET_AT("ftp://a/", "a"), 400, EF_E_TARGET),
    BAD(GET_AT("http:/a/", "a"), 400, EF_E_TARGET),
    BAD(GET_AT("httpx://a/", "a"), 400, EF_E_TARGET),
    BAD(GET_AT("http://", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http:///x", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://?x", "a"), 400, EF_E_AUTHORITY),
    BAD(GET_AT("http://a#b", "a"), 400, EF_E_TARGET),
    BAD(GET_AT("http://a/#b", "a"), 400, EF_E_TARGET),
    BAD(GET_AT("http://a,b/", "a,b"), 400, EF_E_HOST),
    BAD("GET http://a/ HTTP/1.1\r\nAccept: x\r\n\r\n", 400, EF_E_NO_HOST),
};

static const head_case hosts[] = {
    GOOD(GET_HOST("a")),
    GOOD(GET_HOST("A.b-c_d~e.example.")),
    GOOD(GET_HOST("127.0.0.1.:80")),
    GOOD(GET_HOST("127.0.0.1")),
    GOOD(GET_HOST("a:0")),
    GOOD(GET_HOST("a:65535")),
    GOOD(GET_HOST("[::]")),
    GOOD(GET_HOST("[::1]:443")),
    GOOD(GET_HOST("[1:2:3:4:5:6:7:8]")),
    GOOD(GET_HOST("[1::8]")),
    GOOD(GET_HOST("[1:2:3:4:5:6:7::]")),
    GOOD(GET_HOST("[::ffff:192.0.2.255]")),
    GOOD(GET_HOST("[1:2:3:4:5:6:192.0.2.1]")),
    GOOD(GET_HOST("[FE80::AbCd]")),
    BAD("GET / HTTP/1.1\r\n\r\n", 400, EF_E_NO_HOST),
    BAD("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, EF_E_MANY_HOSTS),
    BAD("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400, EF_E_MANY_HOSTS),
    BAD(GET_HOST(""), 400, EF_E_HOST),
    BAD(GET_HOST(" "), 400, EF_E_HOST),
    BAD(GET_HOST("a b"), 400, EF_E_HOST),
    BAD(GET_HOST("."), 400, EF_E_HOST),
    BAD(GET_HOST(".:80"), 400, EF_E_HOST),
    BAD(GET_HOST(".a"), 400, EF_E_HOST),
    BAD(GET_HOST("a.."), 400, EF_E_HOST),
    BAD(GET_HOST("a..:80"), 400, EF_E_HOST),
    BAD(GET_HOST("a..b"), 400, EF_E_HOST),
    BAD(GET_AT("http://a/", "a."), 400, EF_E_AUTHORITY),
    BAD(GET_HOST("a,b"), 400, EF_E_HOST),
    BAD(GET_HOST("a/b"), 400, EF_E_HOST),
    BAD(GET_HOST("a@b"), 400, EF_E_HOST),
    BAD(GET_HOST("a#b"), 400, EF_E_HOST),
    BAD(GET_HOST("a?b"), 400, EF_E_HOST),
    BAD(GET_HOST("a\\b"), 400, EF_E_HOST),
    BAD(GET_HOST("a%00"), 400, EF_E_HOST),
    BAD(GET_HOST("a;b"), 400, EF_E_HOST),
    BAD(GET_HOST("*"), 400, EF_E_HOST),
    BAD(GET_HOST("\xc3\xa4"), 400, EF_E_HOST),
    BAD("GET / HTTP/1.1\r\nHost: a\0.b\r\n\r\n", 400, EF_E_VALUE),
    BAD(GET_HOST("http://a"), 400, EF_E_HOST),
    BAD(GET_HOST(":80"), 400, EF_E_HOST),
    BAD(GET_HOST("a:"), 400, EF_E_HOST),
    BAD(GET_HOST("a:99999"), 400, EF_E_HOST),
    BAD(GET_HOST("a:65536"), 400, EF_E_HOST),
    BAD(GET_HOST("a:000080"), 400, EF_E_HOST),
    BAD(GET_HOST("a:0x50"), 400, EF_E_HOST),
    BAD(GET_HOST("a:+80"), 400, EF_E_HOST),
    BAD(GET_HOST("a:80:80"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1"), 400, EF_E_HOST),
    BAD(GET_HOST("::1"), 400, EF_E_HOST),
    BAD(GET_HOST("[]"), 400, EF_E_HOST),
    BAD(GET_HOST("[:]"), 400, EF_E_HOST),
    BAD(GET_HOST("[:::]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1:]"), 400, EF_E_HOST),
    BAD(GET_HOST("[:1]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1::2::3]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1:2:3:4:5:6:7:8:9]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1:2:3:4:5:6:7:8::]"), 400, EF_E_HOST),
    BAD(GET_HOST("[12345::]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::g]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1%25eth0]"), 400, EF_E_HOST),
    BAD(GET_HOST("[v1.x]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::256.0.0.1]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1.2.3]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::01.2.3.4]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1.2.3.4:5]"), 400, EF_E_HOST),
    BAD(GET_HOST("[1:2:3:4:5:6:7:1.2.3.4]"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1]80"), 400, EF_E_HOST),
    BAD(GET_HOST("[::1]."), 400, EF_E_HOST),
};

/* What browsers send raw (EF_RAW_ALLOW): '|' everywhere, the others in the query alone. */
static const head_case raw_targets[] = {
    GOOD(REQUEST("GET /a|b?|{}^\\\"` HTTP/1.1")),
    GOOD(GET_AT("http://a/|?{", "a")),
    GOOD(GET_AT("http://a?{", "a")),
    BAD(GET_AT("http://a|/", "a|"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /{ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /} HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /^ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\\ HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /\" HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /` HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?< HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?> HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?# HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET /?\x80 HTTP/1.1"), 400, EF_E_TARGET),
    BAD(REQUEST("GET |/ HTTP/1.1"), 400, EF_E_TARGET),
};

static void expect_notes(const scan_mode *mode, const char *text, unsigned notes) {
    static ef_head head;
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.notes, notes);
}

static void test_notes(const scan_mode *mode) {
    expect_notes(mode, REQUEST("GET /a HTTP/1.1"), 0);
    expect_notes(mode, REQUEST("GET /a%3B%7C?;{ HTTP/1.1"), 0);
    expect_notes(mode, REQUEST("GET /a?| HTTP/1.1"), 0);
    expect_notes(mode, REQUEST("GET /a;b HTTP/1.1"), EF_NOTE_PARAMETERS);
    expect_notes(mode, REQUEST("GET /;|?{ HTTP/1.1"), EF_NOTE_PARAMETERS | EF_NOTE_RAW);
    expect_notes(mode, GET_HOST("a."), EF_NOTE_HOST_DOT);
    expect_notes(mode, GET_AT("http://a.:80/|", "A.:80"), EF_NOTE_HOST_DOT | EF_NOTE_RAW);
    expect_notes(mode, GET_HOST("[::1]"), 0);
}

/* The bytes without the dot equal those of the name without it, with a space after the value. */
static void expect_without_dot(const scan_mode *mode, const char *with, const char *without) {
    static ef_head head, other;
    uint8_t buf[200];
    const size_t len = strlen(with);
    CHECK_EQUAL(strlen(without), len);
    memcpy(buf, with, len);
    CHECK_EQUAL(scan_whole(&head, mode, buf, len), (int)len);
    CHECK_EQUAL(buf[head.host_off + head.host_len], '.');
    ef_head_drop_host_dot(&head, buf);
    CHECK(memcmp(buf, without, len) == 0);
    ef_head_drop_host_dot(&head, buf); /* once */
    CHECK(memcmp(buf, without, len) == 0);
    CHECK(same_outcome((int)len, &head, scan_whole(&other, mode, (const uint8_t *)without, len), &other));
}

static void test_dot(const scan_mode *mode) {
    expect_without_dot(mode, GET_HOST("Shop.example."), GET_HOST("Shop.example "));
    expect_without_dot(mode, GET_HOST("a.:8080"), GET_HOST("a:8080 "));
    expect_without_dot(mode, GET_HOST("a.:80 \t"), GET_HOST("a:80  \t"));
    expect_without_dot(mode, "GET / HTTP/1.1\r\nX: y.\r\nhost:a.\r\nZ: a.\r\n\r\n",
                       "GET / HTTP/1.1\r\nX: y.\r\nhost:a \r\nZ: a.\r\n\r\n");
}

/* The fields of an accepted request. */
static void test_results(const scan_mode *mode) {
    static ef_head head;
    const char *text = "\r\nPOST /a/b?c=d?e HTTP/1.1\r\nHost:\tShop.example:8080 \r\nContent-Length: 12\r\n\r\nbody";
    const int len = (int)strlen(text) - 4;
    CHECK_EQUAL(scan_all_ways(&head, mode, text, strlen(text)), len);
    CHECK_EQUAL(head.head_len, len);
    CHECK_EQUAL(head.method, EF_M_POST);
    CHECK(span_is(text, head.method_off, head.method_len, "POST"));
    CHECK(span_is(text, head.target_off, head.target_len, "/a/b?c=d?e"));
    CHECK_EQUAL(head.path_len, 4);
    CHECK(span_is(text, head.host_off, head.host_len, "Shop.example"));
    CHECK(span_is(text, head.authority_off, head.authority_len, "Shop.example:8080"));
    CHECK_EQUAL(head.host_port, 8080);
    CHECK_EQUAL(head.version_minor, 1);
    CHECK_EQUAL(head.keep_alive, 1);
    CHECK_EQUAL(head.body, EF_BODY_LENGTH);
    CHECK_EQUAL(head.content_length, 12);
    CHECK_EQUAL(head.absolute_scheme, 0);
    CHECK_EQUAL(head.target_empty_path, 0);

    text = REQUEST("OPTIONS * HTTP/1.1");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK(span_is(text, head.target_off, head.target_len, "*"));
    CHECK_EQUAL(head.path_len, 1);
    CHECK_EQUAL(head.host_port, 0);

    text = GET_AT("HTTPS://a:1/x?y", "A:1");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK(span_is(text, head.target_off, head.target_len, "/x?y"));
    CHECK(span_is(text, head.authority_off, head.authority_len, "A:1"));
    CHECK_EQUAL(head.path_len, 2);
    CHECK_EQUAL(head.absolute_scheme, 2);
    CHECK_EQUAL(head.target_empty_path, 0);

    text = GET_AT("http://a", "a");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.target_len, 0);
    CHECK_EQUAL(head.path_len, 0);
    CHECK_EQUAL(head.absolute_scheme, 1);
    CHECK_EQUAL(head.target_empty_path, 1);

    text = GET_AT("http://a?x/y", "a");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK(span_is(text, head.target_off, head.target_len, "?x/y"));
    CHECK_EQUAL(head.path_len, 0);
    CHECK_EQUAL(head.target_empty_path, 1);
}

/* RFC 1035 2.3.4: no host is longer than 255 bytes. */
static void test_longest_host(const scan_mode *mode) {
    static ef_head head;
    char text[400] = "GET / HTTP/1.1\r\nHost: ";
    const size_t start = strlen(text);
    memset(text + start, 'a', EF_MAX_HOST);
    strcpy(text + start + EF_MAX_HOST, ":80\r\n\r\n");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.host_len, EF_MAX_HOST);
    strcpy(text + start + EF_MAX_HOST, "a\r\n\r\n");
    CHECK_EQUAL(scan_all_ways(&head, mode, text, strlen(text)), EF_BAD);
    CHECK_EQUAL(head.error, EF_E_HOST);
}

/* Two requests in one buffer: the first head ends where the second begins. */
static void test_pipelined(const scan_mode *mode) {
    static ef_head head;
    const char *text = REQUEST("GET /1 HTTP/1.1") REQUEST("GET /2 HTTP/1.1");
    const int first = scan_whole(&head, mode, (const uint8_t *)text, strlen(text));
    CHECK_EQUAL((size_t)first * 2, strlen(text));
    const int second = scan_whole(&head, mode, (const uint8_t *)text + first, strlen(text) - (size_t)first);
    CHECK_EQUAL(second, first);
    CHECK(span_is(text + first, head.target_off, head.target_len, "/2"));
}

int main(void) {
    const scan_mode mode = {&default_limits, 0, 0};
    run_cases(&mode, lines, sizeof(lines) / sizeof(lines[0]));
    run_cases(&mode, targets, sizeof(targets) / sizeof(targets[0]));
    run_cases(&mode, hosts, sizeof(hosts) / sizeof(hosts[0]));
    ef_head_limits lenient = default_limits;
    lenient.raw = EF_RAW_ALLOW;
    const scan_mode raw = {&lenient, 0, 0};
    run_cases(&raw, raw_targets, sizeof(raw_targets) / sizeof(raw_targets[0]));
    test_notes(&raw);
    test_dot(&mode);
    test_results(&mode);
    test_longest_host(&mode);
    test_pipelined(&mode);
    return FINISH();
}
