/* health_segment.h - a segment that processes share, for tests of health.c: plain, or with steps in it (test_health_races.c). */
#ifndef EF_TESTS_HEALTH_SEGMENT_H
#define EF_TESTS_HEALTH_SEGMENT_H
#include "../health.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define SEATS 4u

static inline void *shared(size_t size) {
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED) abort();
    return mem;
}

static inline ef_health *make_health(uint32_t records) {
    const size_t size = ef_health_size(records, SEATS);
    ef_health *s = shared(size);
    CHECK_EQUAL(ef_health_init(s, size, records, SEATS), 0);
    CHECK_EQUAL(ef_health_check(s, size), 0);
    return s;
}

static inline void drop_health(ef_health *s, uint32_t records) { munmap(s, ef_health_size(records, SEATS)); }

static inline uint64_t next(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Processes, one for each seat, wait until all of them have come so far. */
static inline void meet(uint32_t *at, uint32_t seat, uint32_t when) {
    __atomic_store_n(&at[seat], when, __ATOMIC_SEQ_CST);
    for (uint32_t other = 0; other < SEATS; other++)
        while (__atomic_load_n(&at[other], __ATOMIC_SEQ_CST) < when)
            sched_yield();
}

/* Wait for the processes of all seats, each of which has come to its end or was killed by the signal that it should be: a sanitizer's find
 * is no end. */
static inline void reap(const pid_t *workers, const int *killed) {
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        int status = 0;
        CHECK(workers[seat] > 0 && waitpid(workers[seat], &status, 0) == workers[seat]);
        const int by = killed ? killed[seat] : 0;
        CHECK(by ? WIFSIGNALED(status) && WTERMSIG(status) == by : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

enum { ENDPOINTS = 8 };

static inline ef_health_record *hold_all(ef_health *s, uint32_t seat, ef_health_record **endpoints) {
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        endpoints[i] = ef_health_hold(s, 100 + i, seat);
    return ef_health_hold(s, 99, seat);
}
#endif
