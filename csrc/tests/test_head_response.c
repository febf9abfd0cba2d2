/* test_head_response.c - response heads: the status line, framing by status and request method, keep-alive, faults as 502. */
#include "head_case.h"

#define OK(headers)           "HTTP/1.1 200 OK\r\n" headers "\r\n"
#define STATUS(line)          line "\r\nContent-Length: 0\r\n\r\n"
#define FAULT(literal, error) BAD(literal, 502, error)

static const head_case cases[] = {
    GOOD(STATUS("HTTP/1.1 200 OK")),
    GOOD(STATUS("HTTP/1.1 200 ")),
    GOOD(STATUS("HTTP/1.1 200")),
    GOOD(STATUS("HTTP/1.0 200 OK")),
    GOOD(STATUS("HTTP/1.1 999 \tOdd \x80 reason")),
    GOOD(STATUS("HTTP/1.1 100 Continue")),
    GOOD(OK("a_b: c\r\nContent_Length: 7\r\n")),
    FAULT(STATUS("HTTP/1.1 099 x"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 000"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 2000"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 20"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 20x OK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 +20 OK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1  200 OK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1\t200 OK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 200\tOK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 200OK"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 "), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1"), EF_E_STATUS),
    FAULT(STATUS("HTTP/1.1 200 \x01"), EF_E_STATUS),
    FAULT("HTTP/1.1 200 O\0K\r\n\r\n", EF_E_STATUS),
    FAULT(STATUS("HTTP/1.2 200 OK"), EF_E_VERSION),
    FAULT(STATUS("HTTP/2.0 200 OK"), EF_E_VERSION),
    FAULT(STATUS("HTTP/0.9 200 OK"), EF_E_VERSION),
    FAULT(STATUS("http/1.1 200 OK"), EF_E_VERSION),
    FAULT(STATUS("HTTP/11 200 OK"), EF_E_VERSION),
    FAULT(STATUS(" HTTP/1.1 200 OK"), EF_E_VERSION),
    FAULT("\r\n" STATUS("HTTP/1.1 200 OK"), EF_E_STATUS),
    FAULT("junk\r\n\r\n", EF_E_STATUS),
    FAULT("<html>no head at all</html>\r\n", EF_E_VERSION),
    FAULT("HTTP/1.1 200 OK\nContent-Length: 0\n\n", EF_E_BARE_LF),
    FAULT("HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n", EF_E_BARE_LF),
    FAULT(OK("A: b\r\n c\r\n"), EF_E_FOLD),
    FAULT(OK("A: b\rc\r\n"), EF_E_BARE_LF),
    FAULT(OK("A: b\nc\r\n"), EF_E_BARE_LF),
    FAULT(OK("A : b\r\n"), EF_E_NAME),
    FAULT(OK("junk\r\n"), EF_E_NAME),
    FAULT("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", EF_E_VALUE),
    FAULT(OK("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), EF_E_BOTH_LENGTHS),
    FAULT(OK("Content-Length: 5\r\nContent-Length: 5\r\n"), EF_E_MANY_CONTENT_LENGTHS),
    FAULT(OK("Content-Length: 5, 5\r\n"), EF_E_CONTENT_LENGTH),
    FAULT(OK("Content-Length: -1\r\n"), EF_E_CONTENT_LENGTH),
    FAULT(OK("Content-Length: \r\n"), EF_E_CONTENT_LENGTH),
    FAULT(OK("Transfer-Encoding: gzip, chunked\r\n"), EF_E_CODING_UNKNOWN),
    FAULT(OK("Transfer-Encoding: gzip\r\n"), EF_E_TRANSFER_ENCODING),
    FAULT(OK("Transfer-Encoding: identity\r\n"), EF_E_TRANSFER_ENCODING),
    FAULT("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", EF_E_TRANSFER_ENCODING),
    FAULT("HTTP/1.1 204 No\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", EF_E_BOTH_LENGTHS),
};

/* How responses are framed: RFC 9112 6.3 and 9.3. */
static const struct {
    unsigned method;
    const char *text;
    unsigned body;
    unsigned length;
    unsigned keep_alive;
} framed[] = {
    {EF_M_GET, OK("Content-Length: 5\r\n"), EF_BODY_LENGTH, 5, 1},
    {EF_M_GET, OK("Content-Length: 0\r\n"), EF_BODY_NONE, 0, 1},
    {EF_M_GET, OK("Transfer-Encoding: chunked\r\n"), EF_BODY_CHUNKED, 0, 1},
    {EF_M_GET, OK("Transfer-Encoding: chunked\r\nConnection: close\r\n"), EF_BODY_CHUNKED, 0, 0},
    {EF_M_GET, OK(""), EF_BODY_EOF, 0, 0},
    {EF_M_GET, OK("Connection: keep-alive\r\n"), EF_BODY_EOF, 0, 0},
    {EF_M_HEAD, OK("Content-Length: 5\r\n"), EF_BODY_NONE, 0, 1},
    {EF_M_HEAD, OK("Transfer-Encoding: chunked\r\n"), EF_BODY_NONE, 0, 1},
    {EF_M_HEAD, OK(""), EF_BODY_NONE, 0, 1},
    {EF_M_HEAD, OK("Connection: close\r\n"), EF_BODY_NONE, 0, 0},
    {EF_M_GET, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", EF_BODY_NONE, 0, 1},
    {EF_M_GET, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", EF_BODY_NONE, 0, 1},
    {EF_M_GET, "HTTP/1.1 204 No Content\r\n\r\n", EF_BODY_NONE, 0, 1},
    {EF_M_GET, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", EF_BODY_NONE, 0, 1},
    {EF_M_GET, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", EF_BODY_NONE, 0, 0},
    {EF_M_GET, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", EF_BODY_NONE, 0, 0},
    {EF_M_POST, "HTTP/1.1 100 Continue\r\n\r\n", EF_BODY_NONE, 0, 1},
    {EF_M_POST, "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n", EF_BODY_NONE, 0, 0},
    {EF_M_GET, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", EF_BODY_LENGTH, 5, 0},
    {EF_M_GET, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n", EF_BODY_LENGTH, 5, 1},
    {EF_M_GET, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive, close\r\n\r\n", EF_BODY_LENGTH, 5, 0},
    {EF_M_GET, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", EF_BODY_EOF, 0, 0},
};

static void test_framed(void) {
    static ef_head head;
    for (size_t i = 0; i < sizeof(framed) / sizeof(framed[0]); i++) {
        const scan_mode mode = {&default_limits, 1, framed[i].method};
        const size_t len = strlen(framed[i].text);
        int holds = CHECK_EQUAL(scan_all_ways(&head, &mode, framed[i].text, len), len);
        holds &= CHECK_EQUAL(head.body, framed[i].body);
        holds &= CHECK_EQUAL(head.content_length, framed[i].length);
        holds &= CHECK_EQUAL(head.keep_alive, framed[i].keep_alive);
        if (!holds) fprintf(stderr, "    %s\n", framed[i].text);
    }
}

static void test_results(const scan_mode *mode) {
    static ef_head head;
    const char *text =
        "HTTP/1.0 418 I'm a teapot\r\nServer: x\r\nConnection: X-Hop\r\nx-hop: 1\r\nDate: y\r\nHost: ,,\r\n\r\n";
    CHECK_EQUAL(scan_all_ways(&head, mode, text, strlen(text)), strlen(text));
    CHECK_EQUAL(head.response_status, 418);
    CHECK_EQUAL(head.version_minor, 0);
    CHECK_EQUAL(head.has_date, 1);
    CHECK_EQUAL(head.has_server, 1);
    CHECK_EQUAL(head.upgrade, 0);
    CHECK_EQUAL(head.n_spans, 5);
    CHECK_EQUAL(head.has_connection_tokens, 1);
    CHECK_EQUAL(head.spans[2].flags, EF_SPAN_NOMINATED);

    text = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.upgrade, 1);
    CHECK_EQUAL(head.body, EF_BODY_NONE);
    CHECK_EQUAL(head.version_minor, 1);

    text = OK("a_b: c\r\n");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.spans[0].flags, EF_SPAN_UNDERSCORE);
}

int main(void) {
    const scan_mode mode = {&default_limits, 1, EF_M_GET};
    run_cases(&mode, cases, sizeof(cases) / sizeof(cases[0]));
    test_framed();
    test_results(&mode);
    return FINISH();
}
