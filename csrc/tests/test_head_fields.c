/* test_head_fields.c - header lines: name and value syntax, spans, known names, hop-by-hop, nominations, underscores. */
#include "head_case.h"

#define GET(headers) "GET / HTTP/1.1\r\nHost: a\r\n" headers "\r\n\r\n"

static const head_case cases[] = {
    GOOD(GET("Empty:")),
    GOOD(GET("Tabs:\t\ta\tb\t ")),
    GOOD(GET("Obs: \x80\xff")),
    GOOD(GET("!#$%&'*+-.^`|~09azAZ: x")),
    GOOD(GET("Quoted: \"a: b, c\"")),
    BAD(GET(": v"), 400, EF_E_NAME),
    BAD(GET(":"), 400, EF_E_NAME),
    BAD(GET("foo bar"), 400, EF_E_NAME),
    BAD(GET("foo"), 400, EF_E_NAME),
    BAD(GET("foo bar: x"), 400, EF_E_NAME),
    BAD(GET("foo : x"), 400, EF_E_NAME),
    BAD("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, EF_E_FOLD),
    BAD("GET / HTTP/1.1\r\n\tContent-Length: 1\r\nHost: a\r\n\r\n", 400, EF_E_FOLD),
    BAD(GET("A: b\r\n c"), 400, EF_E_FOLD),
    BAD(GET("A: b\r\n\tc"), 400, EF_E_FOLD),
    BAD(GET("A: b\r\n "), 400, EF_E_FOLD),
    BAD(GET("A: b\r\n \x01"), 400, EF_E_FOLD),
    BAD(GET("A\x80: b"), 400, EF_E_NAME),
    BAD(GET("A\x01: b"), 400, EF_E_NAME),
    BAD("GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n", 400, EF_E_NAME),
    BAD("GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n", 400, EF_E_VALUE),
    BAD(GET("A: b\rc"), 400, EF_E_BARE_LF),
    BAD(GET("A: b\nc"), 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\n\r\n", 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\r\n\n", 400, EF_E_BARE_LF),
    BAD("GET / HTTP/1.1\r\nHost: a\r\n\rX", 400, EF_E_BARE_LF),
    BAD(GET("a_b: c"), 400, EF_E_UNDERSCORE),
    BAD(GET("_: c"), 400, EF_E_UNDERSCORE),
};

/* Every byte in a name and in a value: exactly the grammar. */
static void test_every_byte(const scan_mode *mode) {
    static ef_head head;
    for (int byte = 0; byte < 256; byte++) {
        char text[] = GET("a?b: c\r\nd: e?f");
        char *in_name = strstr(text, "a?b") + 1;
        char *in_value = strstr(text, "e?f") + 1;
        const size_t len = sizeof(text) - 1;
        *in_name = '-';
        *in_value = (char)byte;
        const int control = (byte < 0x20 && byte != '\t') || byte == 0x7f;
        CHECK_EQUAL(scan_all_ways(&head, mode, text, len) > 0, !control);
        *in_value = '-';
        *in_name = (char)byte;
        const int token = byte != 0 && (strchr("!#$%&'*+-.^`|~", byte) != NULL || (byte >= '0' && byte <= '9') ||
                                        (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'));
        CHECK_EQUAL(scan_all_ways(&head, mode, text, len) > 0, token || byte == ':');
    }
}

static void test_spans(const scan_mode *mode) {
    static ef_head head;
    const char *text = "GET / HTTP/1.1\r\nhOST: a\r\nX-Thing: \t v w\t \r\nEmpty: \r\n\r\n";
    CHECK_EQUAL(scan_all_ways(&head, mode, text, strlen(text)), strlen(text));
    CHECK_EQUAL(head.n_spans, 3);
    const ef_span *thing = &head.spans[1];
    CHECK_EQUAL(head.spans[0].id, EF_H_HOST);
    CHECK(span_is(text, thing->name_off, thing->name_len, "X-Thing"));
    CHECK(span_is(text, thing->val_off, thing->val_len, "v w"));
    CHECK_EQUAL(thing->line_end, head.spans[2].name_off);
    CHECK_EQUAL(thing->name_hash, ef_name_hash((const uint8_t *)"x-thing", 7));
    CHECK_EQUAL(thing->id, EF_H_OTHER);
    CHECK_EQUAL(thing->flags, 0);
    CHECK_EQUAL(head.spans[2].val_len, 0);
    CHECK_EQUAL(head.spans[2].line_end + 2, head.head_len);
}

/* Names with the flags that they have by themselves. */
static const struct {
    const char *name;
    unsigned id;
    unsigned flags;
} known[] = {
    {"Connection", EF_H_CONNECTION, EF_SPAN_HOP},
    {"Content-Type", EF_H_CONTENT_TYPE, 0},
    {"DATE", EF_H_DATE, 0},
    {"Expect", EF_H_EXPECT, 0},
    {"HTTP2-Settings", EF_H_HTTP2_SETTINGS, EF_SPAN_HOP},
    {"Keep-Alive", EF_H_KEEP_ALIVE, EF_SPAN_HOP},
    {"Origin", EF_H_ORIGIN, 0},
    {"Proxy-Authenticate", EF_H_PROXY_AUTHENTICATE, 0},
    {"Proxy-Connection", EF_H_PROXY_CONNECTION, EF_SPAN_HOP},
    {"Server", EF_H_SERVER, 0},
    {"te", EF_H_TE, EF_SPAN_HOP},
    {"Trailer", EF_H_TRAILER, EF_SPAN_HOP},
    {"Upgrade", EF_H_UPGRADE, EF_SPAN_HOP},
    {"Via", EF_H_VIA, 0},
    {"X-Edge-", EF_H_X_EDGE, 0},
    {"x-EDGE-internal", EF_H_X_EDGE, 0},
    {"x-edge-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789", EF_H_X_EDGE, 0},
    {"x-edge", EF_H_OTHER, 0},
    {"X-Forwarded-For", EF_H_X_FORWARDED_FOR, 0},
    {"X-Forwarded-Proto", EF_H_X_FORWARDED_PROTO, 0},
    {"X-Forwarded-Host", EF_H_FORWARDING, 0},
    {"x-forwarded-client-CERT", EF_H_FORWARDING, 0},
    {"x-forwarded-0123456789-0123456789-0123456789-0123456789-0123456789", EF_H_FORWARDING, 0},
    {"X-Forwarded-", EF_H_OTHER, 0},
    {"X-Forwarded", EF_H_OTHER, 0},
    {"Forwarded", EF_H_FORWARDING, 0},
    {"Forwarder", EF_H_OTHER, 0},
    {"X-Real-IP", EF_H_FORWARDING, 0},
    {"X-Real-IPs", EF_H_OTHER, 0},
    {"X-Original-URL", EF_H_FORWARDING, 0},
    {"X-Original-URI", EF_H_FORWARDING, 0},
    {"X-Original-Host", EF_H_FORWARDING, 0},
    {"X-Original-Name", EF_H_OTHER, 0},
    {"X-Rewrite-URL", EF_H_FORWARDING, 0},
    {"X-Rewrite-URI", EF_H_OTHER, 0},
    {"X-Request-ID", EF_H_X_REQUEST_ID, 0},
    {"Access-Control-Request-Method", EF_H_ACCESS_CONTROL_REQUEST_METHOD, 0},
    {"Access-Control-Request-Headers", EF_H_OTHER, 0},
};

static void test_known(const scan_mode *mode) {
    static ef_head head;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), GET("%s: x"), known[i].name);
        if (!CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0)) continue;
        CHECK_EQUAL(head.spans[1].id, known[i].id);
        CHECK_EQUAL(head.spans[1].flags, known[i].flags);
        CHECK_EQUAL(head.spans[1].name_hash, ef_name_hash((const uint8_t *)known[i].name, strlen(known[i].name)));
        CHECK_EQUAL(head.has_date, known[i].id == EF_H_DATE);
        CHECK_EQUAL(head.has_server, known[i].id == EF_H_SERVER);
    }
}

/* docs/reference/http1.md, case 79 and what may not be nominated. */
static void test_nominated(const scan_mode *mode) {
    static ef_head head;
    const char *text =
        GET("Connection: close, X-A, host ,x-forwarded-host\r\nX-A: 1\r\nX-Ab: 1\r\nx-a: 2\r\nX-Forwarded-Host: b\r\n"
            "Keep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\nUpgrade: x");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    static const unsigned want[] = {0, EF_SPAN_HOP, EF_SPAN_NOMINATED, 0,           EF_SPAN_NOMINATED,
                                    0, EF_SPAN_HOP, EF_SPAN_HOP,       EF_SPAN_HOP, EF_SPAN_HOP};
    CHECK_EQUAL(head.n_spans, 10);
    for (unsigned i = 0; i < head.n_spans; i++)
        CHECK_EQUAL(head.spans[i].flags, want[i]);
    CHECK_EQUAL(head.has_connection_tokens, 1);
    CHECK_EQUAL(head.keep_alive, 0);

    text =
        GET("Connection: content-length, transfer-encoding, x-forwarded-for, x-forwarded-proto, X-Forwarded-, "
            "x-request-id, "
            "X-Edge-Internal\r\nContent-Length: 5\r\nX-Forwarded-For: b\r\nX-Forwarded-Proto: b\r\nX-Forwarded-: b\r\n"
            "X-Request-Id: c\r\nX-Edge-Internal: d");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    for (unsigned i = 0; i < head.n_spans; i++)
        CHECK_EQUAL(head.spans[i].flags & EF_SPAN_NOMINATED, 0);
    CHECK_EQUAL(head.has_connection_tokens, 0);

    text = GET("Authorization: x\r\nCookie: y\r\nConnection: authorization\r\nConnection: cookie");
    CHECK(scan_all_ways(&head, mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.spans[1].flags, EF_SPAN_NOMINATED);
    CHECK_EQUAL(head.spans[2].flags, EF_SPAN_NOMINATED);

    char many[400] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive";
    for (unsigned i = 0; i < EF_MAX_CONNECTION_NAMES; i++)
        strcat(many, ",x");
    const size_t len = strlen(many);
    strcat(many, "\r\n\r\n");
    CHECK(scan_all_ways(&head, mode, many, strlen(many)) > 0);
    strcpy(many + len, ",x\r\n\r\n");
    CHECK_EQUAL(scan_all_ways(&head, mode, many, strlen(many)), EF_BAD);
    CHECK_EQUAL(head.error, EF_E_TOO_MANY_HEADERS);
}

static void test_underscore(void) {
    static ef_head head;
    const char *text = GET("a_b: c\r\nContent_Length: 5\r\nX_Forwarded_For: d\r\nx_edge_internal: e\r\nX-Y: f");
    ef_head_limits limits = default_limits;
    const scan_mode mode = {&limits, 0, 0};
    limits.underscore = EF_UNDERSCORE_ALLOW;
    CHECK(scan_all_ways(&head, &mode, text, strlen(text)) > 0);
    CHECK_EQUAL(head.body, EF_BODY_NONE);
    CHECK_EQUAL(head.spans[1].flags, EF_SPAN_UNDERSCORE);
    for (unsigned i = 2; i < 5; i++) {
        CHECK_EQUAL(head.spans[i].flags, EF_SPAN_UNDERSCORE | EF_SPAN_HOP);
        CHECK_EQUAL(head.spans[i].id, EF_H_OTHER);
    }
    CHECK_EQUAL(head.spans[5].flags, 0);
    limits.underscore = EF_UNDERSCORE_DROP;
    CHECK(scan_all_ways(&head, &mode, text, strlen(text)) > 0);
    for (unsigned i = 1; i < 5; i++)
        CHECK_EQUAL(head.spans[i].flags, EF_SPAN_UNDERSCORE | EF_SPAN_HOP);
    CHECK_EQUAL(head.spans[5].flags, 0);
}

int main(void) {
    const scan_mode mode = {&default_limits, 0, 0};
    run_cases(&mode, cases, sizeof(cases) / sizeof(cases[0]));
    test_every_byte(&mode);
    test_spans(&mode);
    test_known(&mode);
    test_nominated(&mode);
    test_underscore();
    return FINISH();
}
