/* test_limit_local.c - token buckets and requests in progress: arithmetic, eviction, processes that count together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../limit_store.h"
#include "check.h"

#include <sys/mman.h>

#define T0     1700000000u /* seconds */
#define SECOND ((uint64_t)1 << 32)
#define NAME   4 /* bytes of a limit's name in keys here */

static const uint8_t seed[EF_LIMIT_SEED] = "not so random...";
static ef_limit_result got;

static ef_limit *make(uint32_t buckets) {
    const size_t size = ef_local_size(buckets);
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED) abort();
    CHECK_EQUAL(ef_local_init(mem, size - 1, buckets, seed), -1);
    CHECK_EQUAL(ef_local_check(mem, size), -1);
    CHECK_EQUAL(ef_local_init(mem, size, buckets, seed), 0);
    CHECK_EQUAL(ef_local_check(mem, size - 1), -1);
    CHECK_EQUAL(ef_local_check(mem, size), 0);
    return mem;
}

static void drop(ef_limit *s, uint32_t buckets) { munmap(s, ef_local_size(buckets)); }

/* One request; keys are a name of four bytes and a number. */
static uint32_t take(ef_limit *s, const char *name, unsigned number, uint64_t interval, uint32_t burst, uint64_t now) {
    char key[32];
    const int len = snprintf(key, sizeof key, "%s%u", name, number);
    CHECK_EQUAL(ef_bucket_take(s, (const uint8_t *)key, (size_t)len, NAME, interval, burst, now, &got), 0);
    return got.admitted;
}

static void give_back(ef_limit *s, const char *name, unsigned number, uint64_t interval) {
    char key[32];
    const int len = snprintf(key, sizeof key, "%s%u", name, number);
    ef_bucket_give_back(s, (const uint8_t *)key, (size_t)len, NAME, interval);
}

static void test_a_bucket(void) {
    ef_limit *s = make(1);
    const uint64_t now = T0 * SECOND, interval = SECOND / 2; /* 2 a second */
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_EQUAL(take(s, "rate", 1, interval, 5, now), 1);
        CHECK_EQUAL(got.remaining, 4 - i);
        CHECK_EQUAL(got.reset_ms, 500 * (i + 1) + 1);
    }
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now), 0);
    CHECK_EQUAL(got.remaining, 0);
    CHECK_EQUAL(got.reset_ms, 501);
    CHECK_EQUAL(take(s, "rate", 2, interval, 5, now), 1); /* another client */
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + interval - 1), 0);
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + interval), 1); /* one token came */
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + interval), 0);
    for (uint32_t i = 0; i < 5; i++) /* full again, and no fuller */
        CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + 1000 * SECOND), 1);
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + 1000 * SECOND), 0);
    give_back(s, "rate", 1, interval);
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + 1000 * SECOND), 1);
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now + 1000 * SECOND), 0);
    give_back(s, "none", 1, interval);
    /* A time that was read before: as if no time had passed. */
    CHECK_EQUAL(take(s, "rate", 1, interval, 5, now), 0);
    drop(s, 1);
}

/* nginx: limit_req with rate r and burst b, nodelay (ngx_http_limit_req_module.c), in thousandths of requests. */
static void test_as_nginx(void) {
    ef_limit *s = make(1);
    const uint32_t rate = 8, burst = 5; /* 1/8 s is a whole number of milliseconds and of 2^-32 s */
    const uint64_t interval = SECOND / rate;
    uint64_t random = 88172645463325252u, ms = 0;
    int64_t excess = 0, last = -1;
    for (int i = 0; i < 20000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        ms += random % 16 ? (random >> 8) % 2 * 125 : (random >> 8) % 20 * 125;
        int64_t now_excess = last < 0 ? 0 : excess - rate * ((int64_t)ms - last) + 1000;
        if (now_excess < 0) now_excess = 0;
        const int passes = now_excess <= burst * 1000;
        if (passes) {
            excess = now_excess;
            last = (int64_t)ms;
        }
        const uint64_t now = T0 * SECOND + ef_bucket_time(ms * 1000);
        CHECK_EQUAL((int)take(s, "rate", 1, interval, burst + 1, now), passes);
    }
    drop(s, 1);
}

static void test_numbers_out_of_range(void) {
    ef_limit *s = make(1);
    const uint8_t *key = (const uint8_t *)"k";
    CHECK_EQUAL(ef_bucket_take(s, key, 1, 1, 0, 1, SECOND, &got), -1);
    CHECK_EQUAL(ef_bucket_take(s, key, 1, 1, 1, 0, SECOND, &got), -1);
    CHECK_EQUAL(ef_bucket_take(s, key, 1, 1, EF_BUCKET_MAX, 2, SECOND, &got), -1);
    CHECK_EQUAL(ef_bucket_take(s, key, 1, 1, 1, 1, UINT64_MAX, &got), -1);
    CHECK_EQUAL(ef_bucket_take(s, key, 1, 1, EF_BUCKET_MAX, 1, T0 * SECOND, &got), 0);
    ef_held held;
    CHECK_EQUAL(ef_held_take(s, key, 1, 2, 2, 5, T0, &held), -1);
    CHECK_EQUAL(ef_held_take(s, key, 1, 0, EF_LOCAL_SEATS + 1, 5, T0, &held), -1);
    CHECK(held.slot == NULL);
    drop(s, 1);
}

/* However many clients one limit has, a client that is refused stays refused, and so does one of another limit. */
static void test_a_flood_of_clients(void) {
    ef_limit *s = make(16); /* 960 slots */
    const uint64_t now = T0 * SECOND;
    for (int i = 0; i < 8; i++) {
        take(s, "hour", 1, 60 * SECOND, 4, now);
        take(s, "tiny", 1, SECOND, 8, now);
    }
    CHECK_EQUAL(take(s, "hour", 1, 60 * SECOND, 4, now), 0);
    for (unsigned i = 2; i < 100000; i++)
        CHECK_EQUAL(take(s, "hour", i, 60 * SECOND, 4, now), 1);
    CHECK_EQUAL(take(s, "hour", 1, 60 * SECOND, 4, now), 0);
    CHECK_EQUAL(take(s, "tiny", 1, SECOND, 8, now), 0);
    drop(s, 16);
}

/* Processes that take from the same buckets at the same time: the burst passes, no more and no less. */
static void test_workers_share_a_bucket(void) {
    enum { WORKERS = 4, KEYS = 200, EACH = 2000 };
    ef_limit *s = make(8);
    uint32_t *passed = mmap(NULL, KEYS * sizeof *passed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned worker = 0; worker < WORKERS; worker++) {
        if (fork() == 0) {
            for (unsigned i = 0; i < EACH * 4; i++) {
                const unsigned number = (i * 7 + worker * 13) % KEYS;
                if (take(s, "rate", number, 3600 * SECOND, 25, T0 * SECOND))
                    __atomic_fetch_add(&passed[number], 1, __ATOMIC_RELAXED);
            }
            _exit(checks_failed != 0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    for (unsigned i = 0; i < KEYS; i++)
        CHECK_EQUAL(passed[i], 25);
    munmap(passed, KEYS * sizeof *passed);
    drop(s, 8);
}

static int hold(ef_limit *s, const char *key, uint32_t seat, uint32_t seats, uint32_t most, ef_held *held) {
    return ef_held_take(s, (const uint8_t *)key, strlen(key), seat, seats, most, T0, held);
}

static void test_requests_in_progress(void) {
    ef_limit *s = make(4);
    ef_held held[24], other;
    for (uint32_t i = 0; i < 20; i++) { /* of 20 workers, in three sets */
        CHECK_EQUAL(hold(s, "a", i, 20, 20, held + i), 1);
        CHECK_EQUAL(held[i].sum, i + 1);
    }
    CHECK_EQUAL(hold(s, "a", 7, 20, 20, &other), 0);
    CHECK_EQUAL(other.sum, 20);
    CHECK_EQUAL(hold(s, "b", 7, 20, 1, &other), 1);
    ef_held_release(held + 3, T0);
    ef_held_release(held + 3, T0); /* once */
    CHECK_EQUAL(hold(s, "a", 3, 20, 20, held + 20), 1);
    CHECK_EQUAL(hold(s, "a", 3, 20, 20, held + 21), 0);
    ef_held_forget(s, 11, T0); /* that worker was killed */
    CHECK_EQUAL(hold(s, "a", 3, 20, 20, held + 21), 1);
    CHECK_EQUAL(hold(s, "a", 3, 20, 20, held + 22), 0);
    ef_held_release(held + 11, T0); /* what was forgotten is not taken off again */
    CHECK_EQUAL(hold(s, "a", 3, 20, 20, held + 22), 0);
    CHECK_EQUAL(hold(s, "a", 3, 20, 0, held + 22), 0);
    drop(s, 4);
}

/* A set that is full of requests in progress refuses; ended ones make room. */
static void test_no_room_for_more_in_progress(void) {
    ef_limit *s = make(1);
    ef_held held[EF_LIMIT_SLOTS], more;
    char key[16];
    for (unsigned i = 0; i < EF_LIMIT_SLOTS; i++) {
        snprintf(key, sizeof key, "%u", i);
        CHECK_EQUAL(hold(s, key, 0, 1, 1, held + i), 1);
    }
    CHECK_EQUAL(hold(s, "more", 0, 1, 1, &more), -1);
    CHECK(more.slot == NULL);
    ef_held_release(held + 17, T0);
    CHECK_EQUAL(hold(s, "more", 0, 1, 1, &more), 1);
    CHECK_EQUAL(hold(s, "more", 0, 1, 1, held + 17), 0);
    drop(s, 1);
}

/* Processes hold and release at the same time: never more than the limit, and nothing is left at the end. */
static void test_workers_hold_together(void) {
    enum { WORKERS = 4, MOST = 3 };
    ef_limit *s = make(2);
    uint32_t *now = mmap(NULL, 3 * sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (uint32_t worker = 0; worker < WORKERS; worker++) {
        if (fork() == 0) {
            for (int i = 0; i < 20000; i++) {
                ef_held held[2];
                for (int n = 0; n < 2; n++) {
                    if (hold(s, "a", worker, WORKERS, MOST, held + n) != 1) continue;
                    const uint32_t most = __atomic_add_fetch(now, 1, __ATOMIC_SEQ_CST);
                    if (most > MOST) __atomic_fetch_add(now + 1, 1, __ATOMIC_RELAXED);
                    __atomic_fetch_add(now + 2, 1, __ATOMIC_RELAXED);
                }
                for (int n = 0; n < 2; n++) {
                    if (held[n].slot == NULL) continue;
                    __atomic_sub_fetch(now, 1, __ATOMIC_SEQ_CST);
                    ef_held_release(held + n, T0);
                }
            }
            _exit(checks_failed != 0);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_EQUAL(now[0], 0);
    CHECK_EQUAL(now[1], 0);
    CHECK(now[2] > 20000);
    ef_held held;
    CHECK_EQUAL(hold(s, "a", 0, WORKERS, 1, &held), 1);
    munmap(now, 3 * sizeof *now);
    drop(s, 2);
}

/* The store's own segment of buckets. */
static void test_tokens_of_the_store(void) {
    const size_t size = ef_store_size(1, 1);
    ef_store *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK_EQUAL(ef_store_init(s, size, 1, 1, seed, 0), 0);
    CHECK_EQUAL(ef_store_check(s, size), 0);
    CHECK_EQUAL(take(ef_store_tokens(s), "rate", 1, SECOND, 1, T0 * SECOND), 1);
    CHECK_EQUAL(take(ef_store_tokens(s), "rate", 1, SECOND, 1, T0 * SECOND), 0);
    CHECK_EQUAL(ef_store_check(s, size), 0);
    munmap(s, size);
}

int main(void) {
    test_a_bucket();
    test_as_nginx();
    test_numbers_out_of_range();
    test_a_flood_of_clients();
    test_workers_share_a_bucket();
    test_requests_in_progress();
    test_no_room_for_more_in_progress();
    test_workers_hold_together();
    test_tokens_of_the_store();
    return FINISH();
}
