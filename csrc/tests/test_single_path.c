/* test_single_path.c - hosts of one path: which tables are such, and that they match as their tables do. fuzz_route compares the two over any
 * requests; here are the cases one wants to see by name. */
#include "../single_path.h"

#include "guard.h"
#include "tables.h"

static ef_blob *table(int kind, const char *path, const char *method, const char *headers, const char *query) {
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    CHECK(tables_entry(&t, kind, path, method, headers, query) >= 0);
    return tables_end(&t, NULL);
}

/* The table and what was read from it agree, and both say `want`: bytes of the path, or -1. */
static void expect(int kind, const char *path, const char *method, const char *asked, const char *asked_method,
                   int want) {
    ef_blob *b = table(kind, path, method, "", "");
    const ef_vhost vhost = {b, NULL, 1, 0};
    const ef_request r = {.path = guard_end(asked, strlen(asked)),
                          .path_len = strlen(asked),
                          .method = ef_method_lookup((const uint8_t *)asked_method, strlen(asked_method))};
    ef_single_path sole;
    ef_route it;
    ef_hit hit, alone;
    CHECK_EQUAL(ef_single_path_read(b, &sole), 1);
    CHECK_EQUAL(sole.holds, 1);
    ef_route_begin(&it, &vhost, &r);
    CHECK_EQUAL(ef_route_next(&it, &hit), want >= 0);
    CHECK_EQUAL(ef_single_path_match(&sole, b, &r, &alone), want >= 0);
    if (want >= 0) {
        CHECK_EQUAL(alone.prefix_len, want);
        hit.where = 0;
        CHECK(memcmp(&hit, &alone, sizeof hit) == 0);
    }
    free(b);
}

static void test_matches(void) {
    expect(EF_PATH_PREFIX, "", "", "/", "GET", 0);
    expect(EF_PATH_PREFIX, "", "", "/a/b", "POST", 0);
    expect(EF_PATH_PREFIX, "", "", "*", "OPTIONS", -1);
    expect(EF_PATH_PREFIX, "", "", "", "GET", -1);
    expect(EF_PATH_PREFIX, "/a", "", "/a", "GET", 2);
    expect(EF_PATH_PREFIX, "/a", "", "/a/", "GET", 2);
    expect(EF_PATH_PREFIX, "/a", "", "/a/b/c", "GET", 2);
    expect(EF_PATH_PREFIX, "/a", "", "/ab", "GET", -1);
    expect(EF_PATH_PREFIX, "/a", "", "/", "GET", -1);
    expect(EF_PATH_PREFIX, "/a", "", "/A", "GET", -1);
    expect(EF_PATH_PREFIX, "/a", "GET", "/a", "GET", 2);
    expect(EF_PATH_PREFIX, "/a", "GET", "/a", "HEAD", -1);
    expect(EF_PATH_EXACT, "/a", "", "/a", "GET", 2);
    expect(EF_PATH_EXACT, "/a", "", "/a/", "GET", -1);
    expect(EF_PATH_EXACT, "/a/", "", "/a/", "GET", 3);
    expect(EF_PATH_EXACT, "/", "", "/", "GET", 1);
    expect(EF_PATH_EXACT, "/a", "POST", "/a", "GET", -1);
    expect(EF_PATH_PREFIX, "/of-12-bytes", "", "/of-12-bytes/x", "GET", 12);
    expect(EF_PATH_PREFIX, "/of-12-bytes", "", "/of-12-byte", "GET", -1);
}

static void refused(ef_blob *b) {
    ef_single_path sole;
    memset(&sole, 0xAA, sizeof sole);
    CHECK_EQUAL(ef_single_path_read(b, &sole), 0);
    CHECK_EQUAL(sole.holds, 0);
    free(b);
}

static void test_what_needs_its_table(void) {
    refused(table(EF_PATH_PREFIX, "/a", "", "x-a=1", ""));
    refused(table(EF_PATH_PREFIX, "/a", "", "", "q=1"));
    refused(table(EF_PATH_PREFIX, "/a", "", "x-a~1", ""));
    refused(table(EF_PATH_REGEX, "/a", "", "", ""));
    refused(table(EF_PATH_PREFIX, "/of-13-bytes+", "", "", ""));
    tables t;
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    refused(tables_end(&t, NULL)); /* nothing */
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_path(&t, EF_PATH_PREFIX, "/a");
    tables_path(&t, EF_PATH_PREFIX, "/a"); /* two of one path */
    refused(tables_end(&t, NULL));
    tables_open(&t, "k", 1, 0, 1, TABLES_WORK);
    tables_path(&t, EF_PATH_EXACT, "/a");
    tables_path(&t, EF_PATH_PREFIX, "/b");
    refused(tables_end(&t, NULL));
    tables_open(&t, "k", 4, 0, 1, TABLES_WORK);
    ef_build_depths(t.build, 2, 0, 0);
    refused(tables_end(&t, NULL)); /* its fragments have the paths */
}

int main(void) {
    test_matches();
    test_what_needs_its_table();
    return FINISH();
}
