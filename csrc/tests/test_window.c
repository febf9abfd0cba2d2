/* test_window.c - repeats of an interval: against a plain count of all that happened. */
#include "../window.h"

#include <stdlib.h>

#include "check.h"
#include "health_segment.h"

static ef_health_record *one_of(ef_health *s) {
    ef_health_record *record = NULL;
    for (uint32_t seat = 0; seat < SEATS; seat++)
        record = ef_health_hold(s, 7, seat);
    CHECK(record != NULL);
    return record;
}

/* Of a hundred tries, a fifth may be repeats, whoever made them; past it nobody has one, until the window has moved on. */
static void test_a_part_of_all(void) {
    ef_health *s = make_health(8);
    ef_health_record *r = one_of(s);
    const ef_window how = {.percent = 20, .interval_ms = 10000, .floor = 0, .floor_ms = 1000};
    uint32_t had = 0;
    const uint64_t at = 50000; /* an interval begins */
    for (uint32_t i = 0; i < 80; i++)
        ef_window_count(r, i % SEATS, &how, at + i);
    for (uint32_t i = 0; i < 60; i++) {
        const uint32_t seat = (i * 3) % SEATS;
        if (!ef_window_take(r, SEATS, seat, &how, at + 100)) continue;
        ef_window_count(r, seat, &how, at + 100);
        had++;
    }
    CHECK_EQUAL(had, 20); /* 20 of 100 */
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, at + 9999), 0);
    /* Half of it is past: 50 tries and 10 repeats are left. */
    CHECK_EQUAL(ef_window_take(r, SEATS, 1, &how, at + 15000), 0);
    for (uint32_t i = 0; i < 10; i++)
        ef_window_count(r, 2, &how, at + 15000);
    CHECK_EQUAL(ef_window_take(r, SEATS, 1, &how, at + 15000), 1);
    /* All of it is past: one try, of which one part is too much. */
    CHECK_EQUAL(ef_window_take(r, SEATS, 1, &how, at + 40000), 0);
    drop_health(s, 8);
}

/* A floor holds whatever the part is, and is used up by all together. */
static void test_so_many_at_least(void) {
    ef_health *s = make_health(8);
    ef_health_record *r = one_of(s);
    const ef_window how = {.percent = 0, .interval_ms = 10000, .floor = 3, .floor_ms = 1000};
    const uint64_t at = 70000;
    uint32_t had = 0;
    for (uint32_t i = 0; i < 8; i++)
        had += (uint32_t)ef_window_take(r, SEATS, i % SEATS, &how, at + i);
    CHECK_EQUAL(had, 3);
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, at + 1100), 0); /* 0.9 of three are left, and this one */
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, at + 1500), 1); /* 1.5 of them, and this one */
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, at + 9000), 1);
    drop_health(s, 8);
}

/* A worker that is gone has nothing, and one that counts by another interval begins anew. */
static void test_who_is_gone(void) {
    ef_health *s = make_health(8);
    ef_health_record *r = one_of(s);
    ef_window how = {.percent = 50, .interval_ms = 10000, .floor = 0, .floor_ms = 1000};
    for (uint32_t i = 0; i < 10; i++)
        ef_window_count(r, 1, &how, 20000);
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, 20000), 1);
    CHECK_EQUAL(ef_health_forget(s, 1), 0);
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, 20000), 0);
    how.interval_ms = 3000;
    for (uint32_t i = 0; i < 3; i++)
        ef_window_count(r, 0, &how, 20000);
    CHECK_EQUAL(ef_window_take(r, SEATS, 0, &how, 20000), 1);
    CHECK_EQUAL(r->shares[0].count[EF_WINDOW_TRIES], 3);
    drop_health(s, 8);
}

/* Against a list of all that happened: what is let pass stays within the part of two windows, and nobody starves who is far below it. */
static void test_a_random_day(void) {
    enum { STEPS = 200000 };
    ef_health *s = make_health(8);
    ef_health_record *r = one_of(s);
    const ef_window how = {.percent = 25, .interval_ms = 1000, .floor = 2, .floor_ms = 500};
    uint64_t *tries = calloc(STEPS, sizeof *tries), *repeats = calloc(STEPS, sizeof *repeats);
    uint64_t random = 88172645463325252u, now = 1000000;
    uint32_t n_tries = 0, n_repeats = 0, refused = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        now += next(&random) % (next(&random) % 50 ? 12 : 900);
        const uint32_t seat = (uint32_t)(next(&random) % SEATS);
        if (next(&random) % 3) {
            ef_window_count(r, seat, &how, now);
            tries[n_tries++] = now;
        } else if (ef_window_take(r, SEATS, seat, &how, now)) {
            ef_window_count(r, seat, &how, now);
            tries[n_tries++] = now;
            repeats[n_repeats++] = now;
            uint32_t wide = 0, lately = 0;
            for (uint32_t k = n_tries; k && tries[k - 1] + 2000 > now; k--)
                wide++;
            for (uint32_t k = n_repeats; k && repeats[k - 1] + 500 > now; k--)
                lately++;
            uint32_t near = 0;
            for (uint32_t k = n_repeats; k && repeats[k - 1] / 1000 == now / 1000; k--)
                near++;
            CHECK(near * 4 <= wide + 4 || lately <= 4 + 2);
        } else {
            refused++;
            uint32_t near = 0, wide = 0;
            for (uint32_t k = n_tries; k && tries[k - 1] / 1000 == now / 1000; k--)
                near++;
            for (uint32_t k = n_repeats; k && repeats[k - 1] + 2000 > now; k--)
                wide++;
            CHECK((wide + 1) * 4 > near);
        }
    }
    CHECK(n_repeats > 1000 && refused > 1000);
    free(tries);
    free(repeats);
    drop_health(s, 8);
}

int main(void) {
    test_a_part_of_all();
    test_so_many_at_least();
    test_who_is_gone();
    test_a_random_day();
    return FINISH();
}
