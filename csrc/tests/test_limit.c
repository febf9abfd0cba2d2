/* test_limit.c - one worker and one segment: windows, eviction, a full bucket, names, and no byte outside of the segment. */
#include "../limit.h"

#include <stdio.h>

#include "../internal/limit_layout.h"
#include "limit_segment.h"

#define T0 1700000000000u /* ms; 20 seconds after a minute began */

static ef_limit_result got;

static int take(ef_limit *s, const char *key, uint32_t n, uint32_t limit, uint32_t unit, int sliding, uint64_t now_ms) {
    memset(&got, 0xEE, sizeof got);
    return ef_limit_take(s, (const uint8_t *)key, strlen(key), n, limit, unit, sliding, now_ms, &got);
}

static void check_result(uint32_t admitted, uint32_t remaining, uint64_t reset_ms, uint64_t window) {
    CHECK_EQUAL(got.admitted, admitted);
    CHECK_EQUAL(got.remaining, remaining);
    CHECK_EQUAL(got.reset_ms, reset_ms);
    CHECK_EQUAL(got.window, window);
}

static void test_fixed(void) {
    ef_limit *s = limit_segment(1);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 0, T0), 0);
    check_result(1, 9, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 20, 10, 60, 0, T0 + 39999), 0);
    check_result(9, 0, 1, 1699999980);
    CHECK_EQUAL(take(s, "b", 1, 10, 60, 0, T0), 0);
    check_result(1, 9, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 0, T0 + 40000), 0);
    check_result(1, 9, 60000, 1700000040);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 0, T0), 0); /* an older clock: the window has begun for somebody */
    check_result(1, 8, 60000, 1700000040);
    CHECK_EQUAL(take(s, "a", 1, 2, 60, 0, T0 + 41000), 0); /* a limit that was lowered, then raised */
    check_result(0, 0, 59000, 1700000040);
    CHECK_EQUAL(take(s, "a", 9, 5, 60, 0, T0 + 41000), 0);
    check_result(3, 0, 59000, 1700000040);
    CHECK_EQUAL(take(s, "c", 65535, 0xffffffffu, 1, 0, T0), 0);
    check_result(65535, 0xffffffffu - 65535, 1000, 1700000000);
    CHECK_EQUAL(take(s, "c", 0xffffffffu, 0xffffffffu, 1, 0, T0), 0); /* counts never wrap */
    check_result(0xffffffffu - 65535, 0, 1000, 1700000000);
    CHECK_EQUAL(take(s, "c", 1, 0xffffffffu, 1, 0, T0 + 1), 0);
    check_result(0, 0, 999, 1700000000);
}

static void test_sliding(void) {
    ef_limit *s = limit_segment(1);
    CHECK_EQUAL(take(s, "a", 10, 10, 60, 1, T0 + 39000), 0);
    check_result(10, 0, 1000 + 1, 1699999980); /* 1 ms into the next window, 9 of 10 still count */
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 1, T0 + 40000), 0);
    check_result(0, 0, 1, 1700000040);
    CHECK_EQUAL(take(s, "a", 9, 10, 60, 1, T0 + 70000), 0); /* half of it: 5 count */
    check_result(5, 0, 1, 1700000040);
    CHECK_EQUAL(take(s, "a", 9, 10, 60, 1, T0 + 70001), 0);
    check_result(1, 0, 6000, 1700000040);
    CHECK_EQUAL(take(s, "a", 9, 10, 60, 1, T0 + 76000), 0);
    check_result(0, 0, 1, 1700000040);
    CHECK_EQUAL(take(s, "a", 9, 10, 60, 1, T0), 0); /* an older clock reads the window's start */
    check_result(0, 0, 36001, 1700000040);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 1, T0 + 160000), 0); /* a window without any in between */
    check_result(1, 9, 60000, 1700000160);
}

/* Somebody edits the algorithm of a limit: what was admitted stays so. */
static void test_switch(void) {
    ef_limit *s = limit_segment(1);
    CHECK_EQUAL(take(s, "a", 3, 10, 60, 0, T0), 0);
    check_result(3, 7, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 2, 10, 60, 1, T0), 0);
    check_result(2, 5, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 3, 10, 60, 0, T0), 0);
    check_result(3, 2, 40000, 1699999980);
    uint64_t cursor = 0;
    ef_limit_entry e;
    CHECK_EQUAL(ef_limit_next(s, &cursor, T0 + 40000, &e), 1); /* stays for the window that it may weigh on */
    CHECK(e.sliding && e.previous == 8 && e.window == 1700000040);
    CHECK_EQUAL(take(s, "a", 10, 10, 60, 1, T0 + 70000), 0); /* half of 8 */
    check_result(6, 0, 1, 1700000040);
    CHECK_EQUAL(take(s, "a", 10, 10, 60, 0, T0 + 70000), 0); /* fixed: nothing weighs */
    check_result(4, 0, 30000, 1700000040);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 0, T0 + 100000), 0);
    check_result(1, 9, 60000, 1700000100);
    CHECK_EQUAL(take(s, "a", 1, 10, 60, 1, T0 + 160000), 0); /* it was fixed: not evicted yet, so it weighs */
    check_result(1, 8, 60000, 1700000160);
}

static void test_nothing_admitted_changes_nothing(void) {
    ef_limit *s = limit_segment(1);
    uint8_t *before = malloc(ef_limit_size(1));
    if (before == NULL) abort();
    CHECK_EQUAL(take_one(s, "b", 5, 60, 1, T0), 1);
    memcpy(before, s, ef_limit_size(1));
    CHECK_EQUAL(take(s, "a", 0, 10, 60, 0, T0), 0);
    check_result(0, 10, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 1, 0, 60, 0, T0), 0);
    check_result(0, 0, 40000, 1699999980);
    CHECK_EQUAL(take(s, "a", 1, 0, 60, 1, T0), 0);
    check_result(0, 0, 40000, 1699999980);
    CHECK_EQUAL(take(s, "b", 0, 5, 60, 1, T0 + 60000), 0);
    CHECK_EQUAL(take(s, "b", 9, 1, 60, 1, T0 + 40000), 0);
    check_result(0, 0, 1, 1700000040);
    CHECK(memcmp(before, s, ef_limit_size(1)) == 0);
    free(before);
}

static void test_ranges(void) {
    ef_limit *s = limit_segment(1);
    CHECK_EQUAL(take(s, "a", 1, 1, 0, 0, T0), -1);
    CHECK_EQUAL(take(s, "a", 1, 1, 0x80000000u, 0, T0), -1);
    CHECK_EQUAL(take(s, "a", 1, 1, 1, 0, UINT64_MAX), -1);
    CHECK_EQUAL(take(s, "a", 1, 1, 1, 1, 0xfffffffcu * 1000ull), 0);
    CHECK_EQUAL(take(s, "a", 1, 1, 1, 1, 0xfffffffdu * 1000ull), -1);
    CHECK_EQUAL(take(s, "b", 1, 1, 31536000, 1, 0), 0); /* 1970 */
    check_result(1, 0, 31536000000ull + 1, 0);
    const size_t size = ef_limit_size(1);
    CHECK_EQUAL(ef_limit_check(s, size - 1), -1);
    CHECK_EQUAL(ef_limit_check(s, 8), -1);
    s->buckets = 0;
    CHECK_EQUAL(ef_limit_check(s, size), -1);
    s->buckets = EF_LIMIT_MAX_BUCKETS + 1;
    CHECK_EQUAL(ef_limit_check(s, SIZE_MAX), -1);
    s->buckets = 1;
    s->magic++;
    CHECK_EQUAL(ef_limit_check(s, size), -1);
    CHECK_EQUAL(ef_limit_init(s, size - 1, 1, limit_seed), -1);
    CHECK_EQUAL(ef_limit_init(s, size, 0, limit_seed), -1);
    CHECK_EQUAL(ef_limit_init(s, SIZE_MAX, EF_LIMIT_MAX_BUCKETS + 1, limit_seed), -1);
}

/* A key of any length, right before and right behind a page that must not be read. */
static void test_keys(void) {
    const size_t size = ef_limit_size(1);
    ef_limit *s = aligned_alloc(64, size);
    uint8_t key[600];
    if (s == NULL) abort();
    for (size_t len = 0; len < sizeof key; len = len < 40 ? len + 1 : len + 61) {
        memset(s, 0, size);
        ef_limit_init(s, size, 1, limit_seed);
        memset(key, 'k', sizeof key);
        CHECK_EQUAL(ef_limit_take(s, guard_end(key, len), len, 1, 3, 60, 0, T0, &got), 0);
        CHECK_EQUAL(ef_limit_take(s, guard_start(key, len), len, 1, 3, 60, 0, T0, &got), 0);
        check_result(1, 1, 40000, 1699999980);
    }
    free(s);
}

static void test_eviction(void) {
    ef_limit *s = limit_segment(1);
    char key[16];
    for (unsigned i = 0; i < EF_LIMIT_SLOTS; i++) {
        snprintf(key, sizeof key, "key %u", i);
        CHECK_EQUAL(take_one(s, key, 5, i % 2 ? 60 : 3600, 0, T0), 1);
    }
    CHECK_EQUAL(take_one(s, "more", 5, 60, 0, T0), -1);
    CHECK_EQUAL(take_one(s, "more", 5, 60, 0, T0 + 39999), -1); /* none of them has ended */
    CHECK_EQUAL(take_one(s, "key 7", 5, 60, 0, T0), 1);         /* who is there goes on */
    for (unsigned i = 0; i < EF_LIMIT_SLOTS / 2; i++) {
        snprintf(key, sizeof key, "more %u", i);
        CHECK_EQUAL(take_one(s, key, 5, 60, 0, T0 + 40000), 1); /* in the place of a minute that ended */
    }
    CHECK_EQUAL(take_one(s, "more", 5, 60, 0, T0 + 40000), -1);
    CHECK_EQUAL(take(s, "key 8", 5, 5, 3600, 0, T0 + 40000), 0); /* an hour that did not */
    CHECK_EQUAL(got.admitted, 4);
    CHECK_EQUAL(take_one(s, "key 7", 5, 60, 0, T0 + 39999), -1); /* evicted; no place for it */
    CHECK_EQUAL(s->bucket[0].floor, T0 / 1000 + 40);
    /* An older clock after all were evicted: what had ended for one begins for nobody. */
    CHECK_EQUAL(take(s, "key 7", 9, 5, 60, 0, T0 + 100000), 0);
    check_result(5, 0, 60000, 1700000100);
    s->bucket[0].floor = T0 / 1000 + 160;
    CHECK_EQUAL(take(s, "new", 9, 5, 60, 0, T0 + 100000), 0);
    check_result(5, 0, 60000, 1700000160);
    CHECK_EQUAL(take(s, "new and 0", 0, 5, 60, 0, T0), 0);
    check_result(0, 5, 60000, 1700000160);
}

/* A sliding counter takes a second slot when it enters a window with one before, and stays for a window longer. */
static void test_sliding_eviction(void) {
    ef_limit *s = limit_segment(1);
    char key[16];
    for (unsigned i = 0; i < EF_LIMIT_SLOTS - 2; i++) {
        snprintf(key, sizeof key, "key %u", i);
        CHECK_EQUAL(take_one(s, key, 5, 86400, 0, T0), 1);
    }
    CHECK_EQUAL(take(s, "s", 6, 6, 60, 1, T0), 0);
    CHECK_EQUAL(take_one(s, "last", 5, 60, 0, T0), 1);
    CHECK_EQUAL(take(s, "s", 6, 9, 60, 1, T0 + 39999), 0);
    CHECK_EQUAL(got.admitted, 3);
    CHECK_EQUAL(take_one(s, "last", 5, 60, 0, T0 + 40000), 1);
    CHECK_EQUAL(take(s, "s", 9, 12, 60, 1, T0 + 40000), -1); /* no room for what was before: refused, never forgotten */
    CHECK_EQUAL(take_one(s, "other", 5, 60, 0, T0 + 99999), -1);
    CHECK_EQUAL(take(s, "s", 9, 12, 60, 1, T0 + 100000), 0); /* the window before had none: needs no room */
    check_result(9, 3, 60000, 1700000100);
    CHECK_EQUAL(take(s, "s", 9, 12, 60, 1, T0 + 160000), 0);
    check_result(3, 0, 1, 1700000160);
    CHECK_EQUAL(take_one(s, "last", 5, 60, 0, T0 + 160000), -1); /* its place is the second slot now */
    CHECK_EQUAL(take(s, "s", 9, 12, 60, 1, T0 + 190000), 0);
    check_result(5, 0, 3334, 1700000160);
    CHECK_EQUAL(take_one(s, "last", 5, 60, 0, T0 + 220000), 1); /* ended with the window that it weighed on */
    CHECK_EQUAL(take_one(s, "other", 5, 60, 0, T0 + 279999), -1);
    CHECK_EQUAL(take_one(s, "other", 5, 60, 0, T0 + 280000), 1);
}

static int find_entry(ef_limit *s, const char *key, uint64_t now_ms, ef_limit_entry *out) {
    uint64_t cursor = 0;
    int found = 0;
    ef_limit_entry entry;
    while (ef_limit_next(s, &cursor, now_ms, &entry)) {
        if (entry.kept != strlen(key) || memcmp(entry.key, key, entry.kept) != 0) continue;
        *out = entry;
        found++;
    }
    return found;
}

static void test_list(void) {
    ef_limit *s = limit_segment(2);
    ef_limit_entry e;
    uint64_t cursor = 0;
    CHECK_EQUAL(ef_limit_next(s, &cursor, T0, &e), 0);
    CHECK_EQUAL(take(s, "fixed", 3, 5, 60, 0, T0), 0);
    CHECK_EQUAL(take(s, "sliding", 4, 5, 60, 1, T0), 0);
    CHECK_EQUAL(find_entry(s, "fixed", T0 + 1000, &e), 1);
    CHECK(e.unit == 60 && !e.sliding && e.current == 3 && e.window == 1699999980 && e.key_len == 5);
    CHECK_EQUAL(find_entry(s, "sliding", T0 + 1000, &e), 1);
    CHECK(e.unit == 60 && e.sliding && e.current == 4 && e.previous == 0 && e.window == 1699999980);
    CHECK_EQUAL(find_entry(s, "fixed", T0 + 40000, &e), 0); /* ended */
    CHECK_EQUAL(find_entry(s, "sliding", T0 + 40000, &e), 1);
    CHECK(e.current == 0 && e.previous == 4 && e.window == 1700000040);
    CHECK_EQUAL(take(s, "sliding", 2, 9, 60, 1, T0 + 40000), 0);
    CHECK_EQUAL(find_entry(s, "sliding", T0 + 40000, &e), 1);
    CHECK(e.current == 2 && e.previous == 4 && e.window == 1700000040);
    CHECK_EQUAL(find_entry(s, "sliding", T0 + 160000, &e), 0);
    char key[400];
    memset(key, 'x', sizeof key - 1);
    key[sizeof key - 1] = 0;
    CHECK_EQUAL(take(s, key, 2, 5, 3600, 0, T0 + 200000), 0);
    key[EF_LIMIT_NAME] = 0;
    CHECK_EQUAL(find_entry(s, key, T0 + 200000, &e), 1);
    CHECK(e.kept == EF_LIMIT_NAME && e.key_len == 399 && e.current == 2);
    cursor = 0;
    for (uint32_t i = 0; i < 2 * EF_LIMIT_SLOTS; i++)
        ef_limit_names(s)[i].words[3]++; /* as if its writer had died half-way */
    CHECK_EQUAL(ef_limit_next(s, &cursor, T0 + 200000, &e), 1);
    CHECK(e.unit == 0 && e.kept == 0 && e.key[0] == 0 && e.current == 2 && e.tag != 0);
    CHECK_EQUAL(ef_limit_next(s, &cursor, T0 + 200000, &e), 0);
}

int main(void) {
    test_fixed();
    test_sliding();
    test_switch();
    test_nothing_admitted_changes_nothing();
    test_ranges();
    test_keys();
    test_eviction();
    test_sliding_eviction();
    test_list();
    return FINISH();
}
