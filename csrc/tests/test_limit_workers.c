/* test_limit_workers.c - real threads and real processes, some of them killed: what is admitted in every window.
 *
 * Time is made of requests: each one moves the shared clock a little, so nothing waits for a clock and every window sees
 * several times its limit. Clocks differ by up to a window. Held to: no (key, window) ever above its limit; every window
 * that refused anyone is used up to the last, except for what the killed had taken and could not report any more.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../limit.h"
#include "check.h"

#include <sys/mman.h>

#define WORKERS 4
#define MOST    512 /* keys */
#define WINDOWS 24
#define T0      1700000000u

typedef struct shared {
    uint64_t requests; /* made so far */
    uint64_t allowed;  /* as many may be made */
    /* Settings and results. */
    uint32_t keys, limit, per_window, sliding, buckets;
    uint64_t no_room;
    uint32_t admitted[MOST][WINDOWS + 4];
    uint32_t refused[MOST][WINDOWS + 4];
    _Alignas(64) uint8_t segment[];
} shared;

static shared *make(uint32_t buckets, uint32_t keys, uint32_t limit, uint32_t per_window, int sliding) {
    static const uint8_t seed[EF_LIMIT_SEED] = {3};
    const size_t size = sizeof(shared) + ef_limit_size(buckets);
    shared *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) abort();
    s->keys = keys;
    s->limit = limit;
    s->per_window = per_window;
    s->sliding = (uint32_t)sliding;
    s->buckets = buckets;
    s->allowed = UINT64_MAX;
    CHECK_EQUAL(ef_limit_init(s->segment, ef_limit_size(buckets), buckets, seed), 0);
    return s;
}

static void drop(shared *s) { munmap(s, sizeof(shared) + ef_limit_size(s->buckets)); }

/* A worker: asks until the clock has passed all windows. Half of all requests are of the first three keys. */
static void ask(shared *s, uint32_t number) {
    uint64_t random = number * 0x9E3779B97F4A7C15u + 1;
    for (;;) {
        const uint64_t request = __atomic_fetch_add(&s->requests, 1, __ATOMIC_RELAXED);
        if (request >= (uint64_t)s->per_window * WINDOWS) return;
        while (request >= __atomic_load_n(&s->allowed, __ATOMIC_RELAXED))
            sched_yield();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const uint32_t key = (uint32_t)(random >> 40) % (random & 1 || s->keys < 3 ? s->keys : 3);
        const uint64_t now_ms = T0 * 1000ull + request * 1000 / s->per_window + number % WORKERS * 300;
        ef_limit_result got;
        if (ef_limit_take((ef_limit *)(void *)s->segment, (const uint8_t *)&key, sizeof key, 1, s->limit, 1,
                          (int)s->sliding, now_ms, &got) != 0) {
            __atomic_fetch_add(&s->no_room, 1, __ATOMIC_RELAXED);
            continue;
        }
        const uint64_t window = got.window - T0;
        if (window >= WINDOWS + 4) abort();
        if (got.admitted > 0)
            __atomic_fetch_add(&s->admitted[key][window], 1, __ATOMIC_RELAXED);
        else
            __atomic_fetch_add(&s->refused[key][window], 1, __ATOMIC_RELAXED);
    }
}

static void check_counts(const shared *s, uint32_t deaths) {
    uint64_t missing = 0, refused = 0, admitted = 0;
    for (uint32_t key = 0; key < s->keys; key++)
        for (uint32_t window = 0; window < WINDOWS + 4; window++) {
            CHECK(s->admitted[key][window] <= s->limit);
            admitted += s->admitted[key][window];
            refused += s->refused[key][window];
            if (s->refused[key][window] > 0) missing += s->limit - s->admitted[key][window];
        }
    CHECK(admitted > 0 && refused > 0);
    if (!s->sliding) CHECK(missing <= deaths); /* a sliding window refuses for the one before, too */
}

/* And afterwards, whatever was left behind: every key is served, to the number. */
static void check_goes_on(shared *s) {
    for (uint32_t key = 0; key < s->keys && key < 50; key++) {
        ef_limit_result got;
        CHECK_EQUAL(ef_limit_take((ef_limit *)(void *)s->segment, (const uint8_t *)&key, sizeof key, s->limit + 1,
                                  s->limit, 1, (int)s->sliding, (T0 + 1000) * 1000ull, &got),
                    0);
        CHECK_EQUAL(got.admitted, s->limit);
    }
}

static pid_t fork_worker(shared *s, uint32_t number) {
    const pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        ask(s, number);
        _exit(0);
    }
    return pid;
}

/* Kill a worker whenever another part of all requests has been made, and start its successor. The others go on, but not
 * so far that they are done before the last is killed. */
static void test_processes(shared *s, uint32_t deaths) {
    pid_t pids[WORKERS];
    const uint64_t part = (uint64_t)s->per_window * WINDOWS / (deaths + 1);
    s->allowed = 2 * part;
    for (uint32_t i = 0; i < WORKERS; i++)
        pids[i] = fork_worker(s, i);
    for (uint32_t i = 0; i < deaths; i++) {
        const uint64_t when = part * (i + 1);
        while (__atomic_load_n(&s->requests, __ATOMIC_RELAXED) < when)
            sched_yield();
        int status;
        kill(pids[i % WORKERS], SIGKILL);
        CHECK_EQUAL(waitpid(pids[i % WORKERS], &status, 0), pids[i % WORKERS]);
        CHECK(WIFSIGNALED(status));
        __atomic_store_n(&s->allowed, i + 1 < deaths ? when + 2 * part : UINT64_MAX, __ATOMIC_RELAXED);
        pids[i % WORKERS] = fork_worker(s, WORKERS + i);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        int status;
        CHECK_EQUAL(waitpid(pids[i], &status, 0), pids[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    check_counts(s, deaths);
    check_goes_on(s);
    drop(s);
}

typedef struct thread {
    pthread_t id;
    uint32_t number;
    shared *shared;
} thread;

static void *run_thread(void *arg) {
    const thread *self = arg;
    ask(self->shared, self->number);
    return NULL;
}

static void test_threads(shared *s) {
    thread threads[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        threads[i] = (thread){.number = i, .shared = s};
        if (pthread_create(&threads[i].id, NULL, run_thread, threads + i) != 0) abort();
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i].id, NULL);
    check_counts(s, 0);
    check_goes_on(s);
    drop(s);
}

int main(void) {
    test_processes(make(1, 3, 100, 10000, 0), 40);
    test_processes(make(4, 200, 3, 4000, 0),
                   40); /* more slots than are in use at any time, fewer than in all windows */
    test_processes(make(1, 3, 100, 10000, 1), 40);
    test_processes(make(4, 90, 3, 10000, 1), 40);
    test_threads(make(1, 3, 100, 2000, 0));
    test_threads(make(2, 500, 3, 4000, 0)); /* too many: some find no room */
    test_threads(make(1, 30, 3, 2000, 1));
    return FINISH();
}
