/* test_table.c - the builder and the gate: what goes in comes out, the same bytes every time, and damage is found. */
#include "../table.h"

#include "../table_layout.h"
#include "guard.h"
#include "tables.h"

static ef_blob *sample(size_t *len) {
    tables t;
    CHECK_EQUAL(tables_open(&t, "ns/gw/http/www.example.com", 1, 0, 1, TABLES_WORK), EF_T_OK);
    CHECK_EQUAL(tables_entry(&t, EF_PATH_EXACT, "/a", "GET", "x-a=1 x-b~^2$", ""), 0);
    CHECK_EQUAL(tables_path(&t, EF_PATH_EXACT, "/a"), 1);
    CHECK_EQUAL(tables_entry(&t, EF_PATH_REGEX, "/r/[0-9]+", "", "cookie:c=1", "q=1"), 2);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, "/a/rather/long/path/that/does/not/fit/a/slot"), 3);
    CHECK_EQUAL(tables_entry(&t, EF_PATH_PREFIX, "/a", "", "x-a=2", "q~.* z="), 4);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, ""), 5);
    return tables_end(&t, len);
}

static void test_contents(void) {
    size_t len, n;
    ef_blob *b = sample(&len);
    CHECK_EQUAL(ef_blob_rules(b), 6);
    CHECK_EQUAL(ef_blob_entries(b), 6);
    CHECK_EQUAL(ef_blob_fragments(b), 1);
    CHECK_EQUAL(ef_blob_fragment_index(b), 0);
    const uint8_t *key = ef_blob_key(b, &n);
    CHECK(n == 26 && memcmp(key, "ns/gw/http/www.example.com", n) == 0);
    for (uint32_t i = 0; i < 6; i++) {
        const uint8_t *payload = ef_blob_rule(b, i, &n);
        CHECK(n == 6 && memcmp(payload, "rule ", 5) == 0 && payload[5] == '0' + i);
    }
    const uint8_t *pattern = ef_blob_regex(b, 0, &n);
    CHECK(n == 9 && memcmp(pattern, "/r/[0-9]+", n) == 0);
    CHECK_EQUAL(b->n_paths, 3);
    CHECK_EQUAL(b->n_slots, 8);
    CHECK_EQUAL(b->prefix_depths, 1u | 1u << 1 | 1u << 10);
    CHECK_EQUAL(b->exact_depths, 1u << 1);
    CHECK_EQUAL(b->max_exact_len, 2);
    size_t again_len;
    ef_blob *again = sample(&again_len);
    CHECK(again_len == len && memcmp(again, b, len) == 0);
    free(again);
    free(b);
}

static void test_empty(void) {
    tables t;
    size_t len, n;
    CHECK_EQUAL(tables_open(&t, "", 1, 0, 1, 64), EF_T_OK);
    ef_blob *b = tables_end(&t, &len);
    CHECK_EQUAL(ef_blob_rules(b), 0);
    ef_blob_key(b, &n);
    CHECK_EQUAL(n, 0);
    free(b);
}

/* Whatever passes the gate must be safe to read: walk everything there is. */
static void walk(const ef_blob *b) {
    static const uint8_t paths[][12] = {"/a", "/a/b/c", "/r/12", "/", "*"};
    uint8_t scratch[16];
    const uint8_t *value;
    size_t len;
    if (b->n_fragments != 1) return;
    const ef_vhost vhost = {b, NULL, 1, 0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const ef_request r = {
            .path = paths[i], .path_len = strlen((const char *)paths[i]), .query = paths[0], .method = 7};
        ef_route it;
        ef_hit hit;
        ef_regex_pred pred;
        ef_route_begin(&it, &vhost, &r);
        while (ef_route_next(&it, &hit)) {
            ef_blob_rule(b, hit.rule, &len);
            if (hit.regex_path) ef_blob_regex(b, hit.candidate, &len);
            for (uint32_t k = 0; k < hit.regex_preds; k++) {
                CHECK_EQUAL(ef_route_pred(&hit, k, &pred), 0);
                ef_request_query(&r, pred.name, pred.name_len, scratch, sizeof scratch, &value, &len);
            }
        }
    }
}

static void test_damage(void) {
    size_t len;
    ef_blob *b = sample(&len);
    uint8_t *copy = (uint8_t *)(uintptr_t)guard_end(b, len); /* reads behind the end crash */
    for (size_t short_len = 0; short_len < len; short_len++) {
        const uint8_t *part = guard_end(b, short_len);
        CHECK(((uintptr_t)part & 7) != 0 ? ef_table_check(part, short_len) == EF_T_BOUNDS
                                         : ef_table_check(part, short_len) == EF_T_SHORT);
    }
    unsigned passed = 0;
    for (size_t at = 0; at < len * 8; at++) {
        memcpy(copy, b, len);
        copy[at / 8] ^= (uint8_t)(1u << at % 8);
        CHECK(ef_table_check(copy, len) < 0);
        ef_blob *damaged = (ef_blob *)(void *)copy;
        if (damaged->size != len) continue;
        damaged->checksum = ef_table_checksum(damaged); /* as a buggy or hostile sender would */
        if (ef_table_check(copy, len) != EF_T_OK) continue;
        passed++;
        walk(damaged);
    }
    CHECK(passed > 0); /* payloads, names and values may be anything */
    CHECK_EQUAL(ef_table_check((const uint8_t *)b + 4, len - 8), EF_T_BOUNDS);
    free(b);
}

static void test_wrong_header(void) {
    size_t len;
    ef_blob *b = sample(&len);
    b->magic ^= 1;
    CHECK_EQUAL(ef_table_check((const uint8_t *)b, len), EF_T_MAGIC);
    b->magic ^= 1;
    b->version++;
    CHECK_EQUAL(ef_table_check((const uint8_t *)b, len), EF_T_VERSION);
    b->version--;
    b->checksum++;
    CHECK_EQUAL(ef_table_check((const uint8_t *)b, len), EF_T_CHECKSUM);
    free(b);
}

static void test_refusals(void) {
    tables t;
    char deep[256] = "";
    for (int i = 0; i < 63; i++)
        strcat(deep, "/s");
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, TABLES_WORK), EF_T_OK);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, "a"), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, "/a/"), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, "/"), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_EXACT, ""), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_EXACT, "*"), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, deep), 0);
    strcat(deep, "/s");
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, deep), EF_T_PATH);
    CHECK_EQUAL(tables_path(&t, EF_PATH_EXACT, deep), 1); /* one probe, however deep */
    CHECK_EQUAL(ef_build_entry(t.build, 99, EF_PATH_EXACT, (const uint8_t *)"/", 1, 0, 0, 0), EF_T_ORDER);
    CHECK_EQUAL(ef_build_entry(t.build, 0, 3, (const uint8_t *)"/", 1, 0, 0, 0), EF_T_ORDER);
    CHECK_EQUAL(ef_build_entry(t.build, 0, EF_PATH_EXACT, (const uint8_t *)"/", 1, EF_M_COUNT, 0, 0), EF_T_LIMIT);
    CHECK_EQUAL(ef_build_entry(t.build, 0, EF_PATH_EXACT, (const uint8_t *)"/", 1, 0, 256, 0), EF_T_LIMIT);
    CHECK_EQUAL(ef_build_pred(t.build, NULL, 0, NULL, 0, 0), EF_T_ORDER);
    CHECK_EQUAL(ef_build_entry(t.build, 0, EF_PATH_EXACT, (const uint8_t *)"/", 1, 0, 1, 0), 2);
    CHECK_EQUAL(ef_build_rule(t.build, NULL, 0), EF_T_ORDER);
    CHECK_EQUAL(ef_build_end(t.build, NULL, 0), EF_T_ORDER);
    CHECK_EQUAL(ef_build_pred(t.build, (const uint8_t *)"n", 1, NULL, 0, 0), EF_T_OK);
    CHECK_EQUAL(ef_build_depths(t.build, 0, 0, 0), EF_T_OK);
    free(tables_end(&t, NULL));

    CHECK_EQUAL(tables_open(&t, "k", 3, 0, 1, 64), EF_T_LIMIT);
    tables_close(&t);
    CHECK_EQUAL(tables_open(&t, "k", EF_MAX_FRAGMENTS * 2, 0, 1, 64), EF_T_LIMIT);
    tables_close(&t);
    CHECK_EQUAL(tables_open(&t, "k", 2, 2, 0, 64), EF_T_ORDER);
    tables_close(&t);
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 0, 64), EF_T_ORDER);
    tables_close(&t);
    CHECK_EQUAL(tables_open(&t, "k", 2, 1, 1, 64), EF_T_ORDER);
    tables_close(&t);
}

/* With any amount of work memory the builder either gives the right bytes or says NO_MEMORY, and stays inside. */
static void test_memory(void) {
    size_t len;
    unsigned refused = 0, built = 0;
    ef_blob *want = NULL;
    for (size_t work = 64; work < 4096; work += 8) {
        tables t;
        CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, work), EF_T_OK);
        int rc = 0;
        for (int i = 0; i < 5 && rc >= 0; i++)
            rc = tables_entry(&t, EF_PATH_PREFIX, i % 2 ? "/odd" : "/even", "", "a=b", "c~d");
        const long size = rc < 0 ? rc : ef_build_end(t.build, NULL, 0);
        if (size < 0) {
            CHECK_EQUAL(size, EF_T_NO_MEMORY);
            CHECK_EQUAL(ef_build_end(t.build, NULL, 0), EF_T_NO_MEMORY); /* it remembers */
            CHECK_EQUAL(built, 0);
            refused++;
            tables_close(&t);
            continue;
        }
        ef_blob *b = tables_end(&t, &len);
        if (built++ == 0) {
            want = b;
            continue;
        }
        CHECK(memcmp(want, b, len) == 0);
        free(b);
    }
    CHECK(refused > 0 && built > 0);
    free(want);
}

static void test_fragments(void) {
    enum { FRAGMENTS = 4, PATHS = 50 };
    ef_blob *fragments[FRAGMENTS];
    unsigned entries = 0;
    for (uint32_t f = 0; f < FRAGMENTS; f++) {
        tables t;
        CHECK_EQUAL(tables_open(&t, "h#", FRAGMENTS, f, 0, TABLES_WORK), EF_T_OK);
        CHECK_EQUAL(tables_path(&t, EF_PATH_REGEX, "/x"), EF_T_ORDER);
        CHECK_EQUAL(ef_build_depths(t.build, 1, 1, 1), EF_T_ORDER);
        for (int i = 0; i < PATHS; i++) {
            char path[16];
            const int n = snprintf(path, sizeof path, "/p%d", i);
            const uint64_t hash = ef_path_hash((const uint8_t *)path, (size_t)n);
            const int rc = tables_path(&t, EF_PATH_PREFIX, path);
            if ((hash >> 32) % FRAGMENTS != f)
                CHECK_EQUAL(rc, EF_T_ORDER);
            else
                CHECK(rc >= 0);
        }
        fragments[f] = tables_end(&t, NULL);
        CHECK_EQUAL(ef_blob_fragment_index(fragments[f]), f);
        entries += ef_blob_entries(fragments[f]);
    }
    CHECK_EQUAL(entries, PATHS);
    tables t;
    CHECK_EQUAL(tables_open(&t, "h", FRAGMENTS, 0, 1, TABLES_WORK), EF_T_OK);
    CHECK_EQUAL(tables_path(&t, EF_PATH_PREFIX, "/p1"), EF_T_ORDER);
    for (int f = 0; f < FRAGMENTS; f++) {
        uint64_t prefix, exact;
        uint32_t longest;
        ef_blob_depths(fragments[f], &prefix, &exact, &longest);
        CHECK_EQUAL(ef_build_depths(t.build, prefix, exact, longest), EF_T_OK);
    }
    ef_blob *root = tables_end(&t, NULL);
    const ef_vhost vhost = {root, (const ef_blob *const *)fragments, FRAGMENTS, 0};
    const ef_request r = {.path = (const uint8_t *)"/p7/x", .path_len = 5};
    ef_route it;
    ef_hit hit;
    ef_route_begin(&it, &vhost, &r);
    CHECK_EQUAL(ef_route_next(&it, &hit), 1);
    CHECK_EQUAL(hit.prefix_len, 3);
    free(root);
    for (int f = 0; f < FRAGMENTS; f++)
        free(fragments[f]);
}

/* An author of routes who knows the hash: `want` paths whose home is one slot of a table for that many paths. */
static void test_hostile_paths(uint64_t multiplier, int want) {
    tables t;
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, TABLES_WORK), EF_T_OK);
    int found = 0;
    for (unsigned i = 0; found < want; i++) {
        char path[32];
        const int n = snprintf(path, sizeof path, "/%x", i);
        if (ef_path_hash((const uint8_t *)path, (size_t)n) * multiplier >> (64 - 9) != 5) continue;
        CHECK(tables_path(&t, EF_PATH_EXACT, path) >= 0);
        found++;
    }
    ef_blob *b = tables_end(&t, NULL);
    CHECK(b->multiplier != multiplier);
    CHECK(b->max_probe <= 16);
    free(b);
}

/* `want` paths of one 64-bit hash: the second word of each cancels the state that the first one left. */
static int add_equal_hashes(tables *t, int want) {
    int found = 0;
    for (unsigned i = 0; found < want; i++) {
        char path[32];
        snprintf(path, sizeof path, "/%07x", i);
        const uint64_t state = ef_path_hash((const uint8_t *)path, 8);
        memcpy(path + 8, &state, 8);
        path[16] = 0;
        if (strlen(path) != 16 || strchr(path + 1, '/') != NULL) continue;
        CHECK_EQUAL(ef_path_hash((const uint8_t *)path, 16), 0);
        CHECK(tables_path(t, EF_PATH_EXACT, path) >= 0);
        found++;
    }
    return found;
}

static void test_equal_hashes(void) {
    tables t;
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, TABLES_WORK), EF_T_OK);
    add_equal_hashes(&t, EF_MAX_PROBE);
    ef_blob *b = tables_end(&t, NULL);
    CHECK_EQUAL(b->max_probe, EF_MAX_PROBE);
    const ef_vhost vhost = {b, NULL, 1, 0};
    for (uint32_t i = 0; i < b->n_slots; i++) { /* found by their bytes, each its own rule */
        const ef_slot *slot = ef_slots(b) + i;
        if (slot->n_exact == 0) continue;
        const ef_request r = {.path = slot->path, .path_len = 16};
        ef_route it;
        ef_hit hit;
        ef_route_begin(&it, &vhost, &r);
        CHECK_EQUAL(ef_route_next(&it, &hit), 1);
        CHECK_EQUAL(hit.rule, slot->only.rule);
        CHECK_EQUAL(ef_route_next(&it, &hit), 0);
    }
    free(b);
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, TABLES_WORK), EF_T_OK);
    add_equal_hashes(&t, EF_MAX_PROBE + 1);
    CHECK_EQUAL(ef_build_end(t.build, NULL, 0), EF_T_LIMIT);
    CHECK_EQUAL(ef_build_rule(t.build, NULL, 0), EF_T_LIMIT); /* it remembers */
    tables_close(&t);
}

static void test_many(void) {
    tables t;
    CHECK_EQUAL(tables_open(&t, "k", 1, 0, 1, 64u << 20), EF_T_OK);
    for (int i = 0; i < 20000; i++) {
        char path[32];
        snprintf(path, sizeof path, "/t%d/api", i);
        CHECK(tables_path(&t, EF_PATH_PREFIX, path) >= 0);
    }
    ef_blob *b = tables_end(&t, NULL);
    CHECK_EQUAL(b->n_slots, 65536);
    CHECK(b->max_probe <= 40);
    free(b);
}

int main(void) {
    test_contents();
    test_empty();
    test_damage();
    test_wrong_header();
    test_refusals();
    test_memory();
    test_fragments();
    test_hostile_paths(0x9E3779B97F4A7C15u, 200);
    test_equal_hashes();
    test_many();
    return FINISH();
}
