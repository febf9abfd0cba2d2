/* test_head_limits.c - limits hold while bytes arrive, and the work stays linear however they arrive (counted, not timed). */
#include "head_case.h"

#include "../internal/control.h"

#define MANY 70000u

static char text[MANY + 1000];

/* Scans growing prefixes; the length at which the outcome was known is left in *at. */
static int scan_bytes(ef_head *head, const scan_mode *mode, const char *bytes, size_t len, size_t *at) {
    int rc = EF_NEED_MORE;
    ef_head_reset(head);
    for (*at = 0; *at <= len; ++*at) {
        rc = scan_more(head, mode, (const uint8_t *)bytes, *at);
        if (rc != EF_NEED_MORE) return rc;
    }
    --*at;
    return rc;
}

/* Refused with `error`, the same at once and byte by byte, and no later than at byte `latest`. */
static void expect_refusal(const scan_mode *mode, size_t len, int error, int status, size_t latest) {
    static ef_head head;
    size_t at;
    CHECK_EQUAL(scan_whole(&head, mode, guard_end(text, len), len), EF_BAD);
    CHECK_EQUAL(head.error, error);
    CHECK_EQUAL(head.status, status);
    CHECK_EQUAL(scan_bytes(&head, mode, text, len, &at), EF_BAD);
    CHECK_EQUAL(head.error, error);
    CHECK_EQUAL(head.status, status);
    CHECK(at <= latest);
}

static void expect_good(const scan_mode *mode, size_t len) {
    static ef_head head;
    size_t at;
    CHECK_EQUAL(scan_whole(&head, mode, guard_end(text, len), len), len);
    CHECK_EQUAL(scan_bytes(&head, mode, text, len, &at), len);
    CHECK_EQUAL(at, len);
}

/* "GET /aaa... HTTP/1.1" of `line` bytes without CRLF, Host, end. */
static size_t make_line(size_t line) {
    memset(text, 'a', line);
    memcpy(text, "GET /", 5);
    memcpy(text + line - 9, " HTTP/1.1\r\nHost: a\r\n\r\n", 22);
    return line + 13;
}

static void test_line(void) {
    ef_head_limits limits = default_limits;
    const scan_mode mode = {&limits, 0, 0};
    expect_good(&mode, make_line(limits.line));
    expect_refusal(&mode, make_line(limits.line + 1), EF_E_LINE_TOO_LONG, 414, limits.line + 2);
    expect_refusal(&mode, make_line(17 * 1024), EF_E_LINE_TOO_LONG, 414, limits.line + 2);
    make_line(17 * 1024);
    expect_refusal(&mode, limits.line + 2, EF_E_LINE_TOO_LONG, 414, limits.line + 2);
    memmove(text + 2, text, 17 * 1024);
    memcpy(text, "\r\n", 2);
    expect_refusal(&mode, 17 * 1024, EF_E_LINE_TOO_LONG, 414, limits.line + 4);
    limits.head = 1000; /* the head's limit comes first */
    expect_refusal(&mode, make_line(2000), EF_E_HEAD_TOO_LARGE, 431, 1000);
}

/* A request or response of exactly `total` bytes, one long header. */
static size_t make_head(const char *line, size_t total) {
    const size_t n = strlen(line);
    memset(text, 'b', total);
    memcpy(text, line, n);
    memcpy(text + n, "L: ", 3);
    memcpy(text + total - 4, "\r\n\r\n", 4);
    return total;
}

static void test_head_size(void) {
    const char *request = "GET / HTTP/1.1\r\nHost: a\r\n";
    ef_head_limits limits = default_limits;
    const scan_mode mode = {&limits, 0, 0};
    expect_good(&mode, make_head(request, limits.head));
    expect_refusal(&mode, make_head(request, limits.head + 1), EF_E_HEAD_TOO_LARGE, 431, limits.head);
    expect_refusal(&mode, make_head(request, 33 * 1024 + 100), EF_E_HEAD_TOO_LARGE, 431, limits.head);
    expect_refusal(&mode, limits.head, EF_E_HEAD_TOO_LARGE, 431, limits.head);

    /* A fault within the limit is found, one behind it does not matter. */
    make_head(request, 40000);
    text[limits.head - 1] = '\n';
    expect_refusal(&mode, 40000, EF_E_BARE_LF, 400, limits.head);
    make_head(request, 40000);
    text[limits.head] = '\n';
    expect_refusal(&mode, 40000, EF_E_HEAD_TOO_LARGE, 431, limits.head);
    make_head(request, 40000);
    text[limits.head - 1] = '\r';
    expect_refusal(&mode, 40000, EF_E_HEAD_TOO_LARGE, 431, limits.head);

    const scan_mode response = {&limits, 1, EF_M_GET};
    limits.head = EF_DEFAULT_RESPONSE_HEAD;
    expect_good(&response, make_head("HTTP/1.1 200 OK\r\n", limits.head));
    expect_refusal(&response, make_head("HTTP/1.1 200 OK\r\n", limits.head + 1), EF_E_HEAD_TOO_LARGE, 502, limits.head);
    memset(text, 'x', limits.head);
    memcpy(text, "HTTP/1.1 200 ", 13);
    expect_refusal(&response, limits.head, EF_E_HEAD_TOO_LARGE, 502, limits.head);
}

static size_t make_count(unsigned count) {
    char *end = stpcpy(text, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (unsigned i = 1; i < count; i++)
        end = stpcpy(end, "a:\r\n");
    return (size_t)(stpcpy(end, "\r\n") - text);
}

static void test_count(void) {
    ef_head_limits limits = default_limits;
    const scan_mode mode = {&limits, 0, 0};
    expect_good(&mode, make_count(100));
    expect_refusal(&mode, make_count(101), EF_E_TOO_MANY_HEADERS, 431, make_count(101));
    expect_refusal(&mode, make_count(10000), EF_E_TOO_MANY_HEADERS, 431, make_count(101));
    limits.count = 1000000; /* settings cannot lift the ceilings */
    limits.head = 0xffffffffu;
    expect_good(&mode, make_count(EF_MAX_HEADERS));
    expect_refusal(&mode, make_count(EF_MAX_HEADERS + 1), EF_E_TOO_MANY_HEADERS, 431, make_count(EF_MAX_HEADERS + 1));
    make_head("GET / HTTP/1.1\r\nHost: a\r\n", MANY);
    memset(text + 25, 'n', MANY - 35);
    memcpy(text + MANY - 10, "nnn: b\r\n\r\n", 10);
    expect_refusal(&mode, MANY, EF_E_HEAD_TOO_LARGE, 431, MANY); /* a name of more than 16 bits */
    limits.head = 0;
    expect_refusal(&mode, 10, EF_E_HEAD_TOO_LARGE, 431, 0);
}

/* Byte by byte every byte is examined a bounded number of times: 16 by an overlapping load, once more when its line is read.
 * Quadratic work would be thousands of times as much. */
static void expect_linear(const scan_mode *mode, size_t len) {
    static ef_head head;
    size_t at;
    ef_work_bytes = 0;
    (void)scan_bytes(&head, mode, text, len, &at);
    CHECK(ef_work_bytes >= at);
    CHECK(ef_work_bytes <= 40 * at + 1000);
    ef_work_bytes = 0;
    (void)scan_whole(&head, mode, (const uint8_t *)text, len);
    CHECK(ef_work_bytes >= at - 2);
    CHECK(ef_work_bytes <= 8 * at + 1000);
}

static void test_linear(void) {
    const scan_mode mode = {&default_limits, 0, 0};
    expect_linear(&mode, make_head("GET / HTTP/1.1\r\nHost: a\r\n", default_limits.head));
    expect_linear(&mode, make_line(default_limits.line));
    expect_linear(&mode, make_count(100));
    expect_linear(&mode, make_count(10000));
}

int main(void) {
    test_line();
    test_head_size();
    test_count();
    test_linear();
    return FINISH();
}
