/* test_limit_store.c - a flood of values of one limit: it ends at the limit's share, and no other limit ever notices. */
#include "../limit_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define T0     1700000000000u /* ms; 20 seconds after a minute began */
#define VALUES 40u            /* buckets: 2,400 slots, room for 1,200 values */

static const uint8_t seed[EF_LIMIT_SEED] = "not so random...";
static ef_limit_result got;

static ef_store *make(uint32_t limits) {
    const size_t size = ef_store_size(2, VALUES);
    ef_store *s = aligned_alloc(64, size);
    if (s == NULL) abort();
    memset(s, 0, size);
    CHECK_EQUAL(ef_store_init(s, size, 2, VALUES, seed, 5), 0);
    CHECK_EQUAL(ef_store_check(s, size), 0);
    CHECK_EQUAL(ef_store_check(s, size - 1), -1);
    CHECK_EQUAL(ef_store_holds(s, 2, VALUES), 1);
    CHECK_EQUAL(ef_store_holds(s, 3, VALUES - 1), 0);
    CHECK_EQUAL(ef_store_holds(s, 2, VALUES + 1), 0);
    CHECK_EQUAL(ef_store_now(s, 7), 12);
    ef_store_set_limits(s, limits);
    return s;
}

/* One request of value `number` of limit `name`. */
static int value(ef_store *s, const char *name, unsigned number, uint32_t limit, int sliding, uint64_t now_ms) {
    char key[64];
    const int len = snprintf(key, sizeof key, "%s:%u", name, number);
    const int rc =
        ef_store_take(s, (const uint8_t *)key, (size_t)len, strlen(name), 1, limit, 60, sliding, now_ms, &got);
    return rc != 0 ? rc : (int)got.admitted;
}

/* One request of a limit without values. */
static int plain(ef_store *s, const char *name, uint32_t limit, uint64_t now_ms) {
    const int rc = ef_store_take(s, (const uint8_t *)name, strlen(name), strlen(name), 1, limit, 60, 0, now_ms, &got);
    return rc != 0 ? rc : (int)got.admitted;
}

/* How many of `count` new values of a limit were counted. */
static unsigned flood(ef_store *s, const char *name, unsigned count, int sliding, uint64_t now_ms) {
    unsigned counted = 0;
    for (unsigned i = 0; i < count; i++) {
        const int rc = value(s, name, 1000000 + i, 2, sliding, now_ms);
        CHECK(rc == 1 || rc == 0 || rc == EF_STORE_SHARE);
        counted += rc == 1;
        if (rc == EF_STORE_SHARE) CHECK(got.admitted == 0 && got.reset_ms > 0 && got.reset_ms <= 60000);
    }
    return counted;
}

static void test_one_limit_has_all_of_it(void) {
    ef_store *s = make(1);
    CHECK_EQUAL(ef_store_share(s, 0), 1200);
    CHECK_EQUAL(flood(s, "a", 5000, 0, T0), 1200);
    CHECK_EQUAL(value(s, "a", 1000000, 2, 0, T0 + 1000), 1); /* who has begun goes on, exactly */
    CHECK_EQUAL(value(s, "a", 1000000, 2, 0, T0 + 1000), 0);
    CHECK_EQUAL(flood(s, "a", 5000, 0, T0 + 40000), 1200); /* the next window */
    free(s);
}

static void test_no_flood_reaches_another_limit(int sliding) {
    ef_store *s = make(4);
    const unsigned share = sliding ? 150 : 300;
    CHECK_EQUAL(ef_store_share(s, sliding), share);
    for (unsigned i = 0; i < 2; i++)
        CHECK_EQUAL(plain(s, "login", 2, T0), 1);
    CHECK_EQUAL(value(s, "b", 1, 2, sliding, T0), 1);
    for (uint64_t now = T0; now < T0 + 400000; now += 20000) { /* windows begin meanwhile */
        (void)flood(s, "a", 2000, sliding, now);
        (void)flood(s, "c", 2000, sliding, now);
        (void)flood(s, "d", 2000, sliding, now);
        if (now < T0 + 40000) CHECK_EQUAL(plain(s, "login", 2, now), 0);
    }
    const uint64_t last = T0 + 400000;
    for (unsigned i = 0; i < share; i++) {
        CHECK_EQUAL(value(s, "b", i, 2, sliding, last), 1);
        CHECK_EQUAL(value(s, "b", i, 2, sliding, last), 1);
        CHECK_EQUAL(value(s, "b", i, 2, sliding, last), 0);
    }
    for (unsigned i = 0; i < 40; i++) { /* limits that were never there before */
        char name[16];
        snprintf(name, sizeof name, "new %u", i);
        CHECK_EQUAL(plain(s, name, 1, last), 1);
        CHECK_EQUAL(plain(s, name, 1, last), 0);
    }
    free(s);
}

static void test_what_admits_nothing_takes_no_share(void) {
    ef_store *s = make(1);
    for (unsigned i = 0; i < 5000; i++)
        CHECK_EQUAL(value(s, "a", i, 0, 0, T0), 0);
    CHECK_EQUAL(flood(s, "a", 5000, 0, T0), 1200);
    free(s);
}

static void test_both_are_listed(void) {
    ef_store *s = make(1);
    ef_limit_entry entry;
    uint64_t cursor = 0;
    int is_name, names = 0, values = 0;
    CHECK_EQUAL(plain(s, "login", 5, T0), 1);
    for (unsigned i = 0; i < 7; i++)
        CHECK_EQUAL(value(s, "a", i, 2, 0, T0), 1);
    while (ef_store_next(s, &cursor, T0, &entry, &is_name) == 1) {
        if (is_name) {
            names++;
            CHECK_EQUAL(entry.current, entry.key_len == 1 ? 7 : 1); /* "a" has begun with 7 values */
        } else {
            values++;
            CHECK_EQUAL(entry.key_len, 3);
        }
    }
    CHECK_EQUAL(names, 2);
    CHECK_EQUAL(values, 7);
    free(s);
}

static void test_sizes(void) {
    const size_t size = ef_store_size(1, 1);
    uint8_t *mem = aligned_alloc(64, size);
    if (mem == NULL) abort();
    memset(mem, 0, size);
    CHECK_EQUAL(ef_store_init(mem, size - 1, 1, 1, seed, 0), -1);
    CHECK_EQUAL(ef_store_init(mem, size, 0, 1, seed, 0), -1);
    CHECK_EQUAL(ef_store_init(mem, size, 1, 0, seed, 0), -1);
    CHECK_EQUAL(ef_store_init(mem, SIZE_MAX, EF_LIMIT_MAX_BUCKETS + 1, 1, seed, 0), -1);
    CHECK_EQUAL(ef_store_check(mem, size), -1);
    CHECK_EQUAL(ef_store_init(mem, size, 1, 1, seed, 0), 0);
    CHECK_EQUAL(ef_store_check(mem, 8), -1);
    ef_store *s = (ef_store *)(void *)mem;
    CHECK_EQUAL(ef_store_share(s, 0), EF_LIMIT_SLOTS / 2 / EF_STORE_FEW); /* nobody has said how many */
    ef_store_set_limits(s, 1000000);
    CHECK_EQUAL(ef_store_share(s, 1), 1);
    free(mem);
}

int main(void) {
    test_one_limit_has_all_of_it();
    test_no_flood_reaches_another_limit(0);
    test_no_flood_reaches_another_limit(1);
    test_what_admits_nothing_takes_no_share();
    test_both_are_listed();
    test_sizes();
    return FINISH();
}
