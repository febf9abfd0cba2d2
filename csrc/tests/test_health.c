/* test_health.c - records of clusters and endpoints: who holds them, what is counted in them, who is ejected; real processes, some killed. */
#include "../health.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SEATS 4u

static void *shared(size_t size) {
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mem == MAP_FAILED) abort();
    return mem;
}

static ef_health *make(uint32_t records) {
    const size_t size = ef_health_size(records, SEATS);
    ef_health *s = shared(size);
    CHECK_EQUAL(ef_health_init(s, size, records, SEATS), 0);
    CHECK_EQUAL(ef_health_check(s, size), 0);
    return s;
}

static void drop(ef_health *s, uint32_t records) { munmap(s, ef_health_size(records, SEATS)); }

static void test_bounds(void) {
    static _Alignas(64) uint8_t mem[8192];
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 0, 1), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 1, 0), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 1, EF_HEALTH_SEATS + 1), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, EF_HEALTH_RECORDS + 1, 1), -1);
    CHECK_EQUAL(ef_health_init(mem, ef_health_size(4, 2) - 1, 4, 2), -1);
    CHECK_EQUAL(ef_health_check(mem, sizeof mem), -1);
    CHECK_EQUAL(ef_health_init(mem, ef_health_size(4, 2), 4, 2), 0);
    CHECK_EQUAL(ef_health_check(mem, ef_health_size(4, 2) - 1), -1);
    CHECK_EQUAL(ef_health_check(mem, ef_health_size(4, 2)), 0);
    CHECK_EQUAL(ef_health_seats((ef_health *)(void *)mem), 2);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 0, 0) == NULL);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 1, 2) == NULL); /* no such seat */
    CHECK_EQUAL(ef_health_forget((ef_health *)(void *)mem, 2), -1);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 1, 1) != NULL);
}

static void test_holders(void) {
    ef_health *s = make(8);
    ef_health_record *one = ef_health_hold(s, 7, 0);
    CHECK(one != NULL && one == ef_health_hold(s, 7, 1) && one == ef_health_hold(s, 7, 3));
    CHECK(ef_health_hold(s, 8, 0) != one);
    CHECK_EQUAL(ef_health_used(s), 2);
    one->shares[0].count[EF_SHARE_REQUESTS] = 5;
    one->failures[EF_FAILURE_LOCAL] = 3;
    ef_health_release(s, one, 0);
    ef_health_release(s, one, 0); /* who does not hold it leaves nothing */
    CHECK_EQUAL(ef_share_sum(one, SEATS, EF_SHARE_REQUESTS), 0);
    CHECK_EQUAL(one->failures[EF_FAILURE_LOCAL], 3); /* others hold it still */
    CHECK_EQUAL(ef_health_forget(s, 1), 0);
    CHECK_EQUAL(ef_health_used(s), 2);
    ef_health_release(s, one, 3);
    CHECK_EQUAL(ef_health_used(s), 1);
    one = ef_health_hold(s, 7, 2);
    CHECK(one != NULL && one->failures[EF_FAILURE_LOCAL] == 0);
    drop(s, 8);
}

static uint64_t next(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Keys come and go; every one is found as long as it is held, and only then. */
static void test_index(void) {
    enum { KEYS = 96, ROOM = 64 };
    ef_health *s = make(ROOM);
    ef_health_record *held[KEYS] = {0};
    uint64_t random = 88172645463325252u;
    uint32_t used = 0, refused = 0;
    for (int step = 0; step < 20000; step++) {
        const uint64_t key = next(&random) % KEYS;
        const uint64_t name = (key % 5) + (key << 32 | 1); /* many have one home */
        if (held[key] != NULL) {
            CHECK(ef_health_hold(s, name, 0) == held[key]);
            ef_health_release(s, held[key], 0);
            held[key] = NULL;
            used--;
        } else {
            held[key] = ef_health_hold(s, name, 0);
            CHECK((held[key] == NULL) == (used == ROOM));
            if (held[key] != NULL) {
                CHECK_EQUAL(held[key]->key, name);
                held[key]->ejections = 1; /* a new one must have none of it */
                used++;
            } else {
                refused++;
            }
        }
        CHECK_EQUAL(ef_health_used(s), used);
    }
    CHECK(refused > 0);
    drop(s, ROOM);
}

/* A process that is killed with the lock leaves it, and a half made record, to the next one. */
static void test_killed_with_lock(void) {
    ef_health *s = make(8);
    ef_health_record *kept = ef_health_hold(s, 3, 0);
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            ef_health_record *half = ef_health_hold(s, 5 + (uint64_t)i, 1);
            half->shares[1].count[EF_SHARE_HELD] = 0; /* as if it was killed in the middle */
            pthread_mutex_t *lock = (pthread_mutex_t *)(void *)((uint8_t *)s + 8 * sizeof(uint32_t));
            pthread_mutex_lock(lock);
            kill(getpid(), SIGKILL);
        }
        CHECK(child > 0 && waitpid(child, NULL, 0) == child);
        CHECK_EQUAL(ef_health_forget(s, 1), 0);
        CHECK_EQUAL(ef_health_used(s), 1);
        CHECK(ef_health_hold(s, 3, 0) == kept);
    }
    for (uint64_t key = 10; key < 17; key++) /* nothing is lost */
        CHECK(ef_health_hold(s, key, 0) != NULL);
    CHECK(ef_health_hold(s, 17, 0) == NULL);
    drop(s, 8);
}

typedef struct field {
    uint32_t in, most_in, taken, refused_free;
} field;

/* Worker processes take and give back; one of them is killed while it has some. */
static void test_shares(void) {
    enum { MOST = 5, ROUNDS = 30000 };
    ef_health *s = make(4);
    field *f = shared(sizeof *f);
    pid_t workers[SEATS];
    ef_health_record *record = ef_health_hold(s, 1, 0);
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        workers[seat] = fork();
        if (workers[seat] != 0) continue;
        ef_health_record *mine = ef_health_hold(s, 1, seat);
        uint64_t random = seat + 1;
        uint32_t held = 0;
        for (int i = 0; i < ROUNDS; i++) {
            if (held < 3 && next(&random) % 2) {
                if (!ef_share_take(mine, SEATS, seat, EF_SHARE_REQUESTS, MOST)) continue;
                const uint32_t in = __atomic_add_fetch(&f->in, 1, __ATOMIC_SEQ_CST);
                if (in > __atomic_load_n(&f->most_in, __ATOMIC_SEQ_CST))
                    __atomic_store_n(&f->most_in, in, __ATOMIC_SEQ_CST);
                __atomic_add_fetch(&f->taken, 1, __ATOMIC_SEQ_CST);
                held++;
            } else if (held) {
                __atomic_sub_fetch(&f->in, 1, __ATOMIC_SEQ_CST);
                __atomic_store_n(&mine->shares[seat].count[EF_SHARE_REQUESTS], --held, __ATOMIC_RELEASE);
            }
        }
        if (seat == 0) { /* with all that it can have */
            while (ef_share_take(mine, SEATS, seat, EF_SHARE_REQUESTS, MOST))
                ;
            kill(getpid(), SIGKILL);
        }
        _exit(0);
    }
    for (uint32_t seat = 0; seat < SEATS; seat++)
        CHECK(workers[seat] > 0 && waitpid(workers[seat], NULL, 0) == workers[seat]);
    CHECK(f->taken > 100);
    CHECK(f->most_in > 0 && f->most_in <= MOST);
    CHECK(ef_share_sum(record, SEATS, EF_SHARE_REQUESTS) > 0);
    for (uint32_t seat = 0; seat < SEATS; seat++)
        CHECK_EQUAL(ef_health_forget(s, seat), 0);
    record = ef_health_hold(s, 1, 0);
    CHECK_EQUAL(ef_share_sum(record, SEATS, EF_SHARE_REQUESTS), 0);
    for (int i = 0; i < MOST; i++) /* nobody else comes: all of them are to be had */
        CHECK(ef_share_take(record, SEATS, 0, EF_SHARE_REQUESTS, MOST));
    CHECK(!ef_share_take(record, SEATS, 1, EF_SHARE_REQUESTS, MOST));
    CHECK(!ef_share_take(record, SEATS, 1, EF_SHARE_PENDING, 0));
    munmap(f, sizeof *f);
    drop(s, 4);
}

enum { ENDPOINTS = 8 };

static ef_health_record *hold_all(ef_health *s, uint32_t seat, ef_health_record **endpoints) {
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        endpoints[i] = ef_health_hold(s, 100 + i, seat);
    return ef_health_hold(s, 99, seat);
}

static void test_ejections(void) {
    ef_health *s = make(16);
    ef_health_record *endpoints[ENDPOINTS], *cluster = hold_all(s, 0, endpoints);
    ef_ejection how = {.now_ms = 1000, .base_ms = 100, .max_ms = 250, .most = 2};
    const uint32_t version = ef_health_version(cluster);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 1);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 2);
    ef_health_succeed(endpoints[3], EF_FAILURE_LOCAL);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 1);
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_version(cluster) != version);
    CHECK_EQUAL(endpoints[3]->failures[EF_FAILURE_LOCAL], 0);
    CHECK(ef_health_is_out(endpoints[3], 1099) && !ef_health_is_out(endpoints[3], 1100));
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how)); /* it is out already */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 4, &how));
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 5, &how)); /* two are out */
    how.now_ms = 1100; /* both are back; the second time is twice as long, the third the longest there is */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_is_out(endpoints[3], 1299) && !ef_health_is_out(endpoints[3], 1300));
    how.now_ms = 1300;
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_is_out(endpoints[3], 1549) && !ef_health_is_out(endpoints[3], 1550));
    how.now_ms = 1300 + 2 * how.max_ms + 1; /* forgiven */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK_EQUAL(endpoints[3]->ejections, 1);
    how.now_ms = 10001;
    how.sweep_ms = 1000; /* nobody looks before the next sweep */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 0, &how));
    CHECK(ef_health_is_out(endpoints[0], 10999) && !ef_health_is_out(endpoints[0], 11000));
    how.most = 0;
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 1, &how));
    drop(s, 16);
}

/* However many come at once, no more than may be are out. */
static void test_ejections_at_once(void) {
    ef_health *s = make(16);
    ef_health_record *endpoints[ENDPOINTS], *cluster = hold_all(s, 0, endpoints);
    pid_t workers[SEATS];
    uint32_t *above = shared(sizeof *above * 2);
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        workers[seat] = fork();
        if (workers[seat] != 0) continue;
        ef_health_record *mine[ENDPOINTS], *own = hold_all(s, seat, mine);
        uint64_t random = seat + 1;
        for (uint64_t now = 1; now < 20000; now++) {
            const ef_ejection how = {.now_ms = now, .base_ms = 1000000, .max_ms = 1000000, .most = 3};
            const uint32_t at = (uint32_t)(next(&random) % ENDPOINTS);
            if (!ef_health_eject(own, mine, ENDPOINTS, at, &how)) {
                continue;
            }
            if (__atomic_add_fetch(&above[1], 1, __ATOMIC_SEQ_CST) > 3) above[0] = 1;
            __atomic_sub_fetch(&above[1], 1, __ATOMIC_SEQ_CST);
            __atomic_store_n(&mine[at]->until_ms, 0, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    for (uint32_t seat = 0; seat < SEATS; seat++)
        CHECK(workers[seat] > 0 && waitpid(workers[seat], NULL, 0) == workers[seat]);
    CHECK_EQUAL(above[0], 0);
    CHECK(ef_health_version(cluster) > 100);
    munmap(above, sizeof *above * 2);
    drop(s, 16);
}

int main(void) {
    test_bounds();
    test_holders();
    test_index();
    test_killed_with_lock();
    test_shares();
    test_ejections();
    test_ejections_at_once();
    return FINISH();
}
