/* test_route.c - the matcher: whole segments, order of candidates, header and query predicates, bounds.
 *
 * Requests are scanned by ef_head_scan_request as in the product; the path is copied flush against a guard page. tests/table
 * compares the matcher with a naive reference over random tables; here are the cases one wants to see by name.
 */
#include "../route.h"

#include "../table_layout.h"
#include "guard.h"
#include "tables.h"

static const ef_head_limits limits = {65536, 65536, 100, EF_UNDERSCORE_ALLOW, EF_RAW_REJECT, EF_HTTP10_REJECT};
static ef_head head;
static char text[70000];

/* The request of a head: "GET /a?b" and header lines. */
static ef_request request(const char *line, const char *headers) {
    const int n = snprintf(text, sizeof text, "%s HTTP/1.1\r\nhost: h\r\n%s\r\n", line, headers);
    ef_head_reset(&head);
    CHECK_EQUAL(ef_head_scan_request(&head, &limits, (const uint8_t *)text, (size_t)n), n);
    const uint8_t *base = (const uint8_t *)text, *target = base + head.target_off;
    const int has_query = head.path_len < head.target_len;
    return (ef_request){.path = guard_end(target, head.path_len),
                        .path_len = head.path_len,
                        .query = target + head.path_len + has_query,
                        .query_len = head.target_len - head.path_len - (uint32_t)has_query,
                        .method = head.method,
                        .n_spans = head.n_spans,
                        .base = base,
                        .spans = head.spans};
}

/* The numbers of the rules that are offered, in order, as in "2 0 1". Prefix lengths follow in brackets. */
static void expect(const ef_blob *blob, ef_request r, const char *want) {
    const ef_vhost vhost = {blob, NULL, 1, 0};
    char got[400] = "";
    ef_route it;
    ef_hit hit;
    memset(&it, 0xAA, sizeof it); /* begin needs no cleared memory */
    ef_route_begin(&it, &vhost, &r);
    while (ef_route_next(&it, &hit) && strlen(got) < 300) {
        char one[40];
        snprintf(one, sizeof one, "%s%u(%u)", got[0] ? " " : "", hit.rule, hit.prefix_len);
        strcat(got, one);
        CHECK_EQUAL(hit.regex_path, hit.kind == EF_PATH_REGEX);
    }
    if (!CHECK(strcmp(got, want) == 0)) fprintf(stderr, "    got \"%s\", want \"%s\" for %s\n", got, want, text);
    CHECK_EQUAL(ef_route_next(&it, &hit), 0); /* and stays at its end */
}

static void test_paths(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_path(&t, EF_PATH_EXACT, "/foo");                                 /* 0 */
    tables_path(&t, EF_PATH_EXACT, "/foo/");                                /* 1 */
    tables_path(&t, EF_PATH_REGEX, "/f.*");                                 /* 2 */
    tables_path(&t, EF_PATH_PREFIX, "/foo/bar/baz");                        /* 3 */
    tables_path(&t, EF_PATH_PREFIX, "/foo");                                /* 4 */
    tables_path(&t, EF_PATH_PREFIX, "");                                    /* 5 */
    tables_path(&t, EF_PATH_PREFIX, "/.hidden/segment");                    /* 6 */
    tables_path(&t, EF_PATH_EXACT, "/a/longer/exact/path/that/has/a/tail"); /* 7 */
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /foo", ""), "0(4) 2(4) 4(4) 5(0)");
    expect(b, request("GET /foo/", ""), "1(5) 2(5) 4(4) 5(0)");
    expect(b, request("GET /foo/x", ""), "2(6) 4(4) 5(0)");
    expect(b, request("GET /foobar", ""), "2(7) 5(0)");
    expect(b, request("GET /Foo", ""), "2(4) 5(0)");
    expect(b, request("GET /foo/bar", ""), "2(8) 4(4) 5(0)");
    expect(b, request("GET /foo/bar/baz", ""), "2(12) 3(12) 4(4) 5(0)");
    expect(b, request("GET /foo/bar/baz/", ""), "2(13) 3(12) 4(4) 5(0)");
    expect(b, request("GET /foo/bar/bazz", ""), "2(13) 4(4) 5(0)");
    expect(b, request("GET /foo/bar/baz/q/w/e/r/t/y?/foo", ""), "2(24) 3(12) 4(4) 5(0)");
    expect(b, request("GET /", ""), "2(1) 5(0)");
    expect(b, request("GET /.hidden/segment/x", ""), "2(18) 6(16) 5(0)");
    expect(b, request("GET /.hidden/segments", ""), "2(17) 5(0)");
    expect(b, request("GET /a/longer/exact/path/that/has/a/tail", ""), "7(36) 2(36) 5(0)");
    expect(b, request("GET /a/longer/exact/path/that/has/a/tali", ""), "2(36) 5(0)");
    expect(b, request("OPTIONS *", ""), "2(1)");
    ef_request empty = request("GET /", "");
    empty.path_len = 0;
    expect(b, empty, "2(0)");
    free(b);
}

/* Every length around the words of the hash, for whole paths and for prefixes. */
static void test_lengths(void) {
    for (size_t len = 1; len < 70; len++) {
        char path[80] = "/", longer[90], line[100];
        memset(path + 1, '.', len); /* next to '/' in ASCII: what a careless zero-byte test takes for one */
        path[len + 1] = 0;
        tables t;
        tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
        tables_path(&t, EF_PATH_EXACT, path);
        tables_path(&t, EF_PATH_PREFIX, path);
        ef_blob *b = tables_end(&t, NULL);
        char want[40];
        snprintf(want, sizeof want, "0(%zu) 1(%zu)", len + 1, len + 1);
        snprintf(line, sizeof line, "GET %s", path);
        expect(b, request(line, ""), want);
        snprintf(want, sizeof want, "1(%zu)", len + 1);
        snprintf(longer, sizeof longer, "GET %s/x", path);
        expect(b, request(longer, ""), want);
        snprintf(longer, sizeof longer, "GET %s.", path);
        expect(b, request(longer, ""), "");
        line[strlen(line) - 1] = 'x';
        expect(b, request(line, ""), "");
        free(b);
    }
}

static void test_many_slashes(void) {
    char deep[200] = "", line[60100] = "GET ";
    for (int i = 0; i < 63; i++)
        strcat(deep, "/s");
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_path(&t, EF_PATH_PREFIX, deep);
    tables_path(&t, EF_PATH_PREFIX, "/s/s");
    ef_blob *b = tables_end(&t, NULL);
    for (size_t i = 4; i < 60000; i += 2)
        memcpy(line + i, "/s", 3);
    expect(b, request(line, ""), "0(126) 1(4)");
    line[4 + 126] = 0;
    expect(b, request(line, ""), "0(126) 1(4)");
    line[4 + 125] = 0;
    expect(b, request(line, ""), "1(4)");
    free(b);
    strcat(deep, "/s/s/s"); /* an Exact path may be as deep as it likes */
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_path(&t, EF_PATH_EXACT, deep);
    b = tables_end(&t, NULL);
    snprintf(line, sizeof line, "GET %s", deep);
    expect(b, request(line, ""), "0(132)");
    strcat(line, "/s");
    expect(b, request(line, ""), "");
    free(b);
}

static void test_methods(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_entry(&t, EF_PATH_PREFIX, "/a", "GET", "", "");
    tables_entry(&t, EF_PATH_PREFIX, "/a", "POST", "", "");
    tables_path(&t, EF_PATH_PREFIX, "/a");
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /a", ""), "0(2) 2(2)");
    expect(b, request("POST /a/", ""), "1(2) 2(2)");
    expect(b, request("HEAD /a/b", ""), "2(2)");
    free(b);
}

static void test_headers(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-color=red x-size=xl", ""); /* 0 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-color=red,blue", "");      /* 1 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-color=red", "");           /* 2 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-empty=", "");              /* 3 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x_under=1", "");             /* 4 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-color=,", "");             /* 5 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "x-color=red,", "");          /* 6 */
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /", ""), "");
    expect(b, request("GET /", "X-Color: red\r\n"), "2(0)");
    expect(b, request("GET /", "x-color:red  \r\nX-SIZE:\txl\r\n"), "0(0) 2(0)");
    expect(b, request("GET /", "x-color: Red\r\n"), ""); /* values are case-sensitive */
    expect(b, request("GET /", "x-color: redd\r\n"), "");
    expect(b, request("GET /", "x-color: red\r\nother: 1\r\nX-Color: blue\r\n"), "1(0)");
    expect(b, request("GET /", "x-color: red,blue\r\n"), "1(0)");
    expect(b, request("GET /", "x-color: blue\r\nX-Color: red\r\n"), "");
    expect(b, request("GET /", "x-color: red\r\nX-Color: blue\r\nx-color: \r\n"), "");
    expect(b, request("GET /", "x-color: \r\nX-Color: \r\n"), "5(0)");
    expect(b, request("GET /", "x-color: red\r\nX-Color: \r\n"), "6(0)");
    expect(b, request("GET /", "x-empty:\r\n"), "3(0)");
    expect(b, request("GET /", "X_Under: 1\r\n"), "4(0)");
    free(b);
}

static void test_query(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "a=1 b=2"); /* 0 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "a=1");     /* 1 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "a=");      /* 2 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "a=x+y");   /* 3: the value is "x+y" */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "A=1");     /* 4 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "p=100%");  /* 5 */
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /", ""), "");
    expect(b, request("GET /?", ""), "");
    expect(b, request("GET /?a=1", ""), "1(0)");
    expect(b, request("GET /?b=2&a=1", ""), "0(0) 1(0)");
    expect(b, request("GET /?a=1&a=2", ""), "1(0)"); /* the first counts */
    expect(b, request("GET /?a=2&a=1", ""), "");
    expect(b, request("GET /?a", ""), "2(0)");
    expect(b, request("GET /?a&b", ""), "2(0)");
    expect(b, request("GET /?&&a=", ""), "2(0)");
    expect(b, request("GET /?a==1", ""), "");
    expect(b, request("GET /?%61=%31", ""), "1(0)");
    expect(b, request("GET /?A=1", ""), "4(0)");
    expect(b, request("GET /?a=x%2By", ""), "3(0)");
    expect(b, request("GET /?a=x%2by", ""), "3(0)");
    expect(b, request("GET /?a=x+y", ""), "");
    expect(b, request("GET /?p=100%25", ""), "5(0)");
    expect(b, request("GET /?aa=1&=1", ""), "");
    free(b);
}

static void test_regexes(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_entry(&t, EF_PATH_REGEX, "/v[0-9]+/.*", "GET", "x-a~^1 x-b=2", "q~[a-z]+"); /* 0 */
    tables_path(&t, EF_PATH_REGEX, "/.*");                                             /* 1 */
    tables_entry(&t, EF_PATH_EXACT, "/v1", "", "x-a~.", "");                           /* 2 */
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /v1?q=z", "x-a: 1\r\nx-b: 2\r\n"), "2(3) 0(3) 1(3)");
    expect(b, request("GET /v1", "x-a: 1\r\nx-b: 2\r\n"), "2(3) 1(3)"); /* an absent parameter matches no pattern */
    expect(b, request("GET /v1?q=z", "x-b: 2\r\n"), "1(3)");
    const ef_vhost vhost = {b, NULL, 1, 0};
    ef_request r = request("GET /v1?q=z", "x-a: 1\r\nx-b: 2\r\n");
    ef_route it;
    ef_hit hit;
    ef_regex_pred pred;
    size_t len;
    ef_route_begin(&it, &vhost, &r);
    CHECK_EQUAL(ef_route_next(&it, &hit), 1);
    CHECK_EQUAL(ef_route_next(&it, &hit), 1);
    CHECK_EQUAL(hit.regex_path, 1);
    CHECK_EQUAL(hit.regex_preds, 2);
    const uint8_t *pattern = ef_blob_regex(hit.blob, hit.candidate, &len);
    CHECK(len == 11 && memcmp(pattern, "/v[0-9]+/.*", len) == 0);
    CHECK_EQUAL(ef_route_pred(&hit, 0, &pred), 0);
    CHECK(pred.name_len == 3 && memcmp(pred.name, "x-a", 3) == 0 && !pred.is_query);
    CHECK(pred.pattern_len == 2 && memcmp(pred.pattern, "^1", 2) == 0);
    CHECK_EQUAL(ef_route_pred(&hit, 1, &pred), 0);
    CHECK(pred.name_len == 1 && pred.name[0] == 'q' && pred.is_query && pred.pattern_len == 6);
    CHECK_EQUAL(ef_route_pred(&hit, 2, &pred), -1);
    free(b);
}

/* What a regular expression is matched against. want NULL: absent. */
static void value_is(ef_request r, int query, const char *name, size_t cap, const char *want, int want_rc) {
    uint8_t scratch[64];
    const uint8_t *value = NULL;
    size_t len = 0;
    const int rc = (query ? ef_request_query : ef_request_header)(&r, (const uint8_t *)name, strlen(name), scratch, cap,
                                                                  &value, &len);
    CHECK_EQUAL(rc, want_rc);
    if (rc == 1 && !CHECK(len == strlen(want) && memcmp(value, want, len) == 0))
        fprintf(stderr, "    got %.*s, want %s\n", (int)len, (const char *)value, want);
}

static void test_values(void) {
    const ef_request r =
        request("GET /?a=1%20b+c&n=&e%3D=%zz%4&big=%41BCDEF", "X-A: one\r\nb: x\r\nx-a: two\r\nx-a:\r\n");
    value_is(r, 0, "x-a", 64, "one,two,", 1);
    value_is(r, 0, "x-a", 8, "one,two,", 1);
    value_is(r, 0, "x-a", 7, "", -1);
    value_is(r, 0, "x-a", 2, "", -1);
    value_is(r, 0, "b", 0, "x", 1); /* a single line is not copied */
    value_is(r, 0, "x-c", 64, "", 0);
    value_is(r, 1, "a", 64, "1 b c", 1);
    value_is(r, 1, "n", 0, "", 1);
    value_is(r, 1, "e=", 64, "%zz%4", 1);
    value_is(r, 1, "big", 6, "ABCDEF", 1);
    value_is(r, 1, "big", 5, "", -1);
    value_is(r, 1, "z", 64, "", 0);
}

static void test_cookies(void) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie:sid=1", "");             /* 0 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie:sid=2 cookie:b=", "");   /* 1 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie:SID=1", "");             /* 2 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie:v~^a$ x-a=1", "");       /* 3 */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie=sid=1", "");             /* 4: the header itself, whole */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "", "cookie:sid=1");             /* 5: a query parameter of that name */
    tables_entry(&t, EF_PATH_PREFIX, "", "", "cookie:q=\"a\" cookie:=1", ""); /* 6: no cookie is called "" */
    ef_blob *b = tables_end(&t, NULL);
    expect(b, request("GET /", "cookie: sid=1\r\n"), "0(0) 4(0)");
    expect(b, request("GET /", "Cookie: a=b; sid=1 ; sid=3\r\n"), "0(0)");
    expect(b, request("GET /", "Cookie: sid=3;\tsid = 1\r\n"), "0(0)");
    expect(b, request("GET /", "cookie: sid=3\r\nCookie: sid=1\r\n"), "0(0)");
    expect(b, request("GET /", "cookie: SID=1; sid=11; xsid=1; sid\r\n"), "2(0)");
    expect(b, request("GET /", "cookie: sid=2\r\n"), "");
    expect(b, request("GET /", "cookie: b=;sid=2;;\r\n"), "1(0)");
    expect(b, request("GET /", "cookie: b; sid=2\r\n"), "");
    expect(b, request("GET /", "cookie: sid=1=1; =1; sid==1\r\n"), "");
    expect(b, request("GET /", "x-a: 1\r\ncookie: v=b\r\n"), "3(0)");
    expect(b, request("GET /", "x-a: 1\r\ncookie: w=a\r\n"), "");
    expect(b, request("GET /?cookie:sid=1", "x-cookie: sid=1\r\n"), "5(0)");
    const ef_vhost vhost = {b, NULL, 1, 0};
    ef_request r = request("GET /", "x-a: 1\r\ncookie: v=b ; v=\r\nv: z\r\ncookie: u=1\r\ncookie: v=a\r\n");
    ef_route it;
    ef_hit hit;
    ef_regex_pred pred;
    ef_route_begin(&it, &vhost, &r);
    CHECK_EQUAL(ef_route_next(&it, &hit), 1);
    CHECK_EQUAL(hit.regex_preds, 1);
    CHECK_EQUAL(ef_route_pred(&hit, 0, &pred), 0);
    CHECK(pred.is_cookie && !pred.is_query && pred.name_len == 1 && pred.name[0] == 'v');
    char values[20] = "";
    uint64_t at = 0;
    const uint8_t *value;
    size_t len;
    while (ef_request_cookie(&r, pred.name, pred.name_len, &at, &value, &len) && strlen(values) < 10) {
        strncat(values, (const char *)value, len);
        strcat(values, "|");
    }
    CHECK(strcmp(values, "b||a|") == 0);
    CHECK_EQUAL(ef_request_cookie(&r, pred.name, pred.name_len, &at, &value, &len), 0); /* and stays at its end */
    free(b);
}

static void test_run_of_tenants(void) { /* one path, many values of one header: still in order, still right */
    tables t;
    char header[32], want[32];
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    for (int i = 0; i < 1000; i++) {
        snprintf(header, sizeof header, "x-tenant=t%d", i);
        tables_entry(&t, EF_PATH_PREFIX, "/", "", header, "");
        tables_entry(&t, EF_PATH_PREFIX, "", "", header, "");
    }
    tables_path(&t, EF_PATH_PREFIX, "");
    ef_blob *b = tables_end(&t, NULL);
    CHECK_EQUAL(ef_blob_entries(b), 1001); /* "/" itself is no prefix: those entries were refused */
    for (int i = 0; i < 1000; i += 111) {
        snprintf(header, sizeof header, "X-Tenant: t%d\r\n", i);
        snprintf(want, sizeof want, "%d(0) 2000(0)", 2 * i + 1);
        expect(b, request("GET /any", header), want);
    }
    free(b);
}

int main(void) {
    test_paths();
    test_lengths();
    test_many_slashes();
    test_methods();
    test_headers();
    test_query();
    test_regexes();
    test_values();
    test_cookies();
    test_run_of_tenants();
    return FINISH();
}
