/* test_trailer.c - trailer lines: what of them is where, which must not go on, and what is no line. */
#include "../trailer.h"

#include "check.h"
#include "guard.h"

static size_t next(const char *text, size_t at, ef_span *span) {
    const size_t len = strlen(text);
    return ef_trailer_next(guard_end(text, len), len, at, span);
}

static void test_spans(void) {
    const char *text = "grpc-status: 0\r\nA_b:\t x y \r\nempty:\r\n";
    ef_span span;
    size_t at = next(text, 0, &span);
    CHECK_EQUAL(at, 16);
    CHECK(span.name_off == 0 && span.name_len == 11 && span.val_off == 13 && span.val_len == 1 && span.line_end == 16);
    CHECK(span.flags == 0 && span.name_hash == ef_name_hash((const uint8_t *)"Grpc-Status", 11));
    at = next(text, at, &span);
    CHECK(span.name_off == 16 && span.name_len == 3 && span.val_off == 22 && span.val_len == 3 && span.line_end == at);
    CHECK_EQUAL(span.flags, EF_SPAN_UNDERSCORE);
    at = next(text, at, &span);
    CHECK(span.val_len == 0 && span.flags == 0);
    CHECK_EQUAL(at, strlen(text));
}

static void test_refused(void) {
    static const char *const names[] = {
        "Content-Length",
        "transfer-encoding",
        "Host",
        "Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Authorization",
        "cookie",
        "Cookie",
        "Set-Cookie",
        "proxy-authenticate",
        "Content-Type",
        "Range",
        "If-Match",
        "X-Forwarded-For",
        "x-edge-internal",
        "Age",
        "Location",
        "Cache-Control",
        "x-request-id",
        "Forwarded",
        "Date",
        "Strict-Transport-Security",
        "access-control-allow-credentials",
        "Proxy-Authorization",
        "content_length",
        "X_Forwarded-For",
        "max-forwards",
    };
    static const char *const passed[] = {"grpc-status", "grpc-message", "Server-Timing", "ETag", "digest",
                                         "x",           "ag",           "agee"};
    char line[100];
    ef_span span;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(line, sizeof(line), "%s: x\r\n", names[i]);
        CHECK_EQUAL(next(line, 0, &span), strlen(line));
        if (!CHECK(span.flags & EF_SPAN_HOP)) fprintf(stderr, "    %s\n", names[i]);
    }
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        snprintf(line, sizeof(line), "%s: x\r\n", passed[i]);
        CHECK_EQUAL(next(line, 0, &span), strlen(line));
        if (!CHECK_EQUAL(span.flags, 0)) fprintf(stderr, "    %s\n", passed[i]);
    }
}

static void test_no_lines(void) {
    static const char *const texts[] = {"a",       "a:",        "a: b",      "a: b\r", "a: b\n",
                                        ": b\r\n", " a: b\r\n", "a : b\r\n", "\r\n",   "a: b\rc\r\n"};
    ef_span span;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!CHECK_EQUAL(next(texts[i], 0, &span), 0)) fprintf(stderr, "    %s\n", texts[i]);
}

int main(void) {
    test_spans();
    test_refused();
    test_no_lines();
    return FINISH();
}
