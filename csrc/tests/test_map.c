/* test_map.c - the map against a plain array of pairs under random puts and deletions, and its hash. */
#include "../map.h"

#include <stdlib.h>
#include <string.h>

#include "../pick.h"
#include "check.h"
#include "guard.h"

#define KEYS 300

static void test_random_work(void) {
    static uint64_t values[KEYS]; /* 0: absent */
    uint64_t state[2] = {1, 2}, old, got;
    size_t count = 0;
    ef_map m;
    CHECK_EQUAL(ef_map_init(&m, 0), 0);
    for (int step = 0; step < 60000; step++) {
        const uint64_t r = ef_random(state) >> 8;
        const size_t i = (size_t)(r % KEYS);
        const uint64_t key = ((uint64_t)i + 1) << 33; /* low halves all equal: homes must come from the high half */
        if (r >> 40 & 1) {
            const uint64_t value = (r >> 20 & 0xffff) + 1;
            const int rc = ef_map_put(&m, key, value, &old);
            CHECK_EQUAL(rc, values[i] != 0);
            if (rc == 1) CHECK_EQUAL(old, values[i]);
            count += rc == 0;
            values[i] = value;
        } else {
            const int rc = ef_map_del(&m, key, &old);
            CHECK_EQUAL(rc, values[i] != 0);
            if (rc == 1) CHECK_EQUAL(old, values[i]);
            count -= (size_t)rc;
            values[i] = 0;
        }
        CHECK_EQUAL(m.used, count);
        CHECK(m.used * 10 <= m.capacity * 7);
        const size_t k = (size_t)(r >> 50) % KEYS;
        CHECK_EQUAL(ef_map_get(&m, ((uint64_t)k + 1) << 33, &got), values[k] != 0);
        if (values[k] != 0) CHECK_EQUAL(got, values[k]);
    }
    size_t cursor = 0, seen = 0;
    uint64_t key;
    while (ef_map_next(&m, &cursor, &key, &got)) {
        CHECK_EQUAL(values[(key >> 33) - 1], got);
        seen++;
    }
    CHECK_EQUAL(seen, count);
    ef_map_free(&m);
}

static void test_edges(void) {
    ef_map m;
    uint64_t got, key;
    size_t cursor = 0;
    CHECK_EQUAL(ef_map_init(&m, 1000), 0);
    const size_t capacity = m.capacity;
    CHECK(capacity * 7 >= 10000);
    CHECK_EQUAL(ef_map_get(&m, 5, &got), 0);
    CHECK_EQUAL(ef_map_del(&m, 5, NULL), 0);
    CHECK_EQUAL(ef_map_put(&m, 0, 7, NULL), 0); /* key 0 is key 1 */
    CHECK_EQUAL(ef_map_get(&m, 1, &got), 1);
    CHECK_EQUAL(got, 7);
    CHECK_EQUAL(ef_map_put(&m, 1, 8, NULL), 1);
    CHECK_EQUAL(ef_map_next(&m, &cursor, &key, &got), 1);
    CHECK_EQUAL(got, 8);
    CHECK_EQUAL(ef_map_next(&m, &cursor, &key, &got), 0);
    for (uint64_t i = 2; i < 1000; i++)
        CHECK_EQUAL(ef_map_put(&m, i, i, NULL), 0);
    CHECK_EQUAL(m.capacity, capacity); /* as many as expected: no growth */
    ef_map_free(&m);
    CHECK_EQUAL(ef_map_get(&m, 1, &got), 0);
    CHECK_EQUAL(ef_map_put(&m, 3, 4, NULL), 0); /* an empty map grows from nothing */
    CHECK_EQUAL(ef_map_get(&m, 3, &got), 1);
    ef_map_free(&m);
    CHECK_EQUAL(ef_map_init(&m, SIZE_MAX / 20), -1);
}

static void test_hash(void) {
    uint8_t bytes[64], folded[64];
    for (int c = 0; c < 256; c++) { /* every byte at every place of a word folds as ASCII says */
        for (size_t at = 0; at < 9; at++) {
            memset(bytes, 'q', sizeof bytes);
            memset(folded, 'q', sizeof folded);
            bytes[at] = (uint8_t)c;
            folded[at] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : (uint8_t)c;
            CHECK_EQUAL(ef_hash64(1, bytes, 9, 1) == ef_hash64(1, folded, 9, 0), 1);
            CHECK_EQUAL(ef_hash64(1, bytes, 9, 0) == ef_hash64(1, folded, 9, 0), bytes[at] == folded[at]);
        }
    }
    memset(bytes, 0, sizeof bytes);
    for (size_t a = 0; a < 32; a++) { /* zeros of different lengths differ; nothing outside is read */
        const uint64_t hash = ef_hash64(7, guard_end(bytes, a), a, 1);
        CHECK(hash == ef_hash64(7, guard_start(bytes, a), a, 1));
        CHECK(hash != 0 && hash != ef_hash64(8, bytes, a, 1));
        for (size_t b = 0; b < a; b++)
            CHECK(hash != ef_hash64(7, bytes, b, 1));
    }
}

int main(void) {
    test_random_work();
    test_edges();
    test_hash();
    return FINISH();
}
