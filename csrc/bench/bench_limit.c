/* bench_limit.c - what a check costs: nanoseconds, best and median of many rounds. `make bench_limit`.
 *
 * Keys are 100 bytes, as the engine makes them. "new" checks are of keys that were never seen, in
 * buckets whose slots have been used before: all of them are looked at. A store of the default size is beyond most caches. The last rows are two threads on one counter and on many. No assertion: a benchmark is not a test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../limit.h"
#include "../siphash.h"

#define ROUNDS  21
#define CHECKS  100000u
#define KEY     100
#define T0      1700000000000ull
#define BUCKETS 4370u /* 262,200 slots */

static ef_limit *store;
static const uint8_t seed[EF_LIMIT_SEED] = "a bench's seed.";
static unsigned long admitted_all;

static double now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *samples) {
    qsort(samples, ROUNDS, sizeof(*samples), compare);
    printf("%-44s best %7.1f ns  median %7.1f ns\n", what, samples[0], samples[ROUNDS / 2]);
}

static void make_store(uint32_t buckets) {
    static size_t size;
    if (store != NULL) munmap(store, size);
    size = ef_limit_size(buckets);
    store = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED || ef_limit_init(store, size, buckets, seed) != 0) abort();
}

static unsigned long check(uint32_t number, uint32_t limit, uint32_t unit, int sliding, uint64_t now_ms) {
    static const char text[KEY + 1] = "36:0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f,8:n=orders,"
                                      "20:0123456789abcdef0123,14:x-user-0000000,";
    uint8_t key[KEY];
    ef_limit_result got;
    memcpy(key, text, KEY);
    memcpy(key + KEY - 8, &number, sizeof number);
    if (ef_limit_take(store, key, KEY, 1, limit, unit, sliding, now_ms, &got) != 0) abort();
    return got.admitted;
}

/* Round r is at T0 + r * step_ms. */
static void measure(const char *what, uint32_t keys, uint32_t limit, uint32_t unit, int sliding, uint64_t step_ms) {
    double samples[ROUNDS];
    for (uint64_t round = 0; round < ROUNDS + 2; round++) { /* the first two warm up */
        const double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (uint32_t i = 0; i < CHECKS; i++)
            admitted_all += check(i * 2654435761u % keys, limit, unit, sliding, T0 + round * step_ms);
        if (round >= 2) samples[round - 2] = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / CHECKS;
    }
    report(what, samples);
}

/* Every check is of a key that was never seen; as many as leave 60 % of the slots empty at any time. */
static void measure_new(const char *what, uint32_t buckets) {
    double samples[ROUNDS];
    uint32_t number = 0;
    const uint32_t checks = buckets * EF_LIMIT_SLOTS * 2 / 5;
    make_store(buckets);
    for (uint64_t round = 0; round < ROUNDS + 20; round++) {
        const double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (uint32_t i = 0; i < checks; i++)
            admitted_all += check(number++, 5, 1, 0, T0 + round * 2000);
        if (round >= 20) samples[round - 20] = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / checks;
    }
    report(what, samples);
}

static void *check_many(void *arg) {
    const uint32_t keys = *(const uint32_t *)arg;
    unsigned long sum = 0;
    for (uint32_t i = 0; i < CHECKS; i++)
        sum += check(i * 2654435761u % keys, 0xffffffffu, 86400, 0, T0);
    __atomic_fetch_add(&admitted_all, sum, __ATOMIC_RELAXED);
    return NULL;
}

/* By the wall clock: what each of two threads waits. */
static void measure_two(const char *what, uint32_t keys) {
    double samples[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[2];
        const double start = now_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < 2; i++)
            if (pthread_create(threads + i, NULL, check_many, &keys) != 0) abort();
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        samples[round] = (now_ns(CLOCK_MONOTONIC) - start) / CHECKS;
    }
    report(what, samples);
}

static void measure_hash(void) {
    double samples[ROUNDS];
    static uint8_t key[KEY];
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (uint32_t i = 0; i < CHECKS; i++) {
            const uint64_t hash = ef_siphash13(seed, key, KEY);
            memcpy(key, &hash, sizeof hash);
        }
        samples[round] = (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / CHECKS;
    }
    report("of which the key's hash", samples);
}

int main(void) {
    make_store(BUCKETS);
    measure("fixed, 1 key, admitted", 1, 0xffffffffu, 86400, 0, 0);
    measure("fixed, 1 key, refused", 1, 1, 86400, 0, 0);
    measure_hash();
    measure("fixed, 1,000 keys", 1000, 0xffffffffu, 86400, 0, 0);
    measure("fixed, 100,000 keys", 100000, 0xffffffffu, 86400, 0, 0);
    measure("fixed, 1,000 keys, new window each round", 1000, 50, 60, 0, 60000);
    make_store(BUCKETS);
    measure("sliding, 1 key", 1, 0xffffffffu, 86400, 1, 0);
    measure("sliding, 1,000 keys, new window each round", 1000, 500, 60, 1, 60000);
    measure("sliding, 50,000 keys, new window each round", 50000, 500, 60, 1, 60000);
    measure_new("new, a store of 2,000 slots", 33);
    measure_new("new, a store of 262,200 slots", BUCKETS);
    make_store(BUCKETS);
    measure_two("two threads, 1 key", 1);
    measure_two("two threads, 1,000 keys", 1000);
    return admitted_all == 0;
}
