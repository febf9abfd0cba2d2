/* test_health_races.c - worker processes that come at once: what is bounded is never exceeded, and what a dead one held is given back.
 *
 * health.c is compiled in once more, with a step where another process may come between a look and what is done for it (EF_HEALTH_STEP):
 * there a worker lets others go on.
 */
#include <sched.h>
#define EF_HEALTH_STEP()  sched_yield()
#define EF_HEALTH_SPINS   65536
#define EF_HEALTH_TRIES   1 /* that of those who meet one has it is not for trying again */
#define ef_health_size    stepped_size
#define ef_health_init    stepped_init
#define ef_health_check   stepped_check
#define ef_health_extent  stepped_extent
#define ef_health_seats   stepped_seats
#define ef_health_used    stepped_used
#define ef_health_hold    stepped_hold
#define ef_health_release stepped_release
#define ef_health_forget  stepped_forget
#define ef_health_eject   stepped_eject
#define ef_health_claim   stepped_claim
#define ef_health_resign  stepped_resign
#define ef_health_put     stepped_put
#define ef_health_want    stepped_want
#define ef_health_leave   stepped_leave
#define ef_share_sum      stepped_sum
#define ef_share_take     stepped_take
#include "../health.c"

#include <signal.h>
#include <unistd.h>

#include "health_segment.h"

typedef struct field {
    uint32_t in, most_in, taken;
} field;

/* Worker processes take and give back; one of them is killed while it has some. */
static void test_shares(void) {
    enum { MOST = 5, ROUNDS = 30000 };
    ef_health *s = make_health(4);
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
    reap(workers, (const int[SEATS]){SIGKILL});
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
    drop_health(s, 4);
}

/* All come for the last one at once, again and again: one of them has it, each time. */
static void test_the_last_one(void) {
    enum { ROUNDS = 20000 };
    ef_health *s = make_health(4);
    uint32_t *at = shared(sizeof *at * (SEATS + 1)); /* when each of them is; how often one had it */
    pid_t workers[SEATS];
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        workers[seat] = fork();
        if (workers[seat] != 0) continue;
        ef_health_record *record = ef_health_hold(s, 1, seat);
        for (uint32_t round = 1; round <= ROUNDS; round++) {
            meet(at, seat, 2 * round);
            const int got = ef_share_take(record, SEATS, seat, EF_SHARE_REQUESTS, 1);
            meet(at, seat, 2 * round + 1);
            __atomic_add_fetch(&at[SEATS], (uint32_t)got, __ATOMIC_SEQ_CST);
            __atomic_store_n(&record->shares[seat].count[EF_SHARE_REQUESTS], 0, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    reap(workers, NULL);
    CHECK_EQUAL(at[SEATS], ROUNDS);
    munmap(at, sizeof *at * (SEATS + 1));
    drop_health(s, 4);
}

/* Who was stopped with its turn keeps nobody from what there is, and a dead one has none. */
static void test_a_turn_that_is_kept(void) {
    ef_health *s = make_health(4);
    ef_health_record *record = ef_health_hold(s, 1, 0);
    ef_health_hold(s, 1, 1);
    record->taking = 2; /* seat 1's */
    CHECK(ef_share_take(record, SEATS, 0, EF_SHARE_REQUESTS, 1));
    CHECK(!ef_share_take(record, SEATS, 0, EF_SHARE_REQUESTS, 1));
    CHECK_EQUAL(record->taking, 2);
    CHECK_EQUAL(ef_health_forget(s, 1), 0);
    CHECK_EQUAL(record->taking, 0);
    CHECK(ef_share_take(record, SEATS, 0, EF_SHARE_REQUESTS, 2));
    CHECK_EQUAL(record->taking, 0);
    drop_health(s, 4);
}

/* Four workers leave what two users want: two connections, not eight. */
static void test_what_is_wanted(void) {
    enum { ROUNDS = 5000 };
    ef_health *s = make_health(4);
    uint32_t *left = shared(sizeof *left);
    pid_t workers[SEATS];
    ef_health_record *record = ef_health_hold(s, 1, 0);
    CHECK(!ef_health_leave(record));
    ef_health_want(record, ROUNDS);
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        workers[seat] = fork();
        if (workers[seat] != 0) continue;
        for (int i = 0; i < ROUNDS; i++)
            if (ef_health_leave(record)) __atomic_add_fetch(left, 1, __ATOMIC_SEQ_CST);
        _exit(0);
    }
    reap(workers, NULL);
    CHECK_EQUAL(*left, ROUNDS);
    CHECK(!ef_health_leave(record));
    munmap(left, sizeof *left);
    drop_health(s, 4);
}

/* However many come at once, no more than may be are out. */
static void test_ejections_at_once(void) {
    ef_health *s = make_health(16);
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
            sched_yield(); /* it stays out while others try */
            __atomic_sub_fetch(&above[1], 1, __ATOMIC_SEQ_CST);
            __atomic_store_n(&mine[at]->until_ms, 0, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    reap(workers, NULL);
    CHECK_EQUAL(above[0], 0);
    CHECK(ef_health_version(cluster) > 100);
    munmap(above, sizeof *above * 2);
    drop_health(s, 16);
}

int main(void) {
    test_shares();
    test_the_last_one();
    test_a_turn_that_is_kept();
    test_what_is_wanted();
    test_ejections_at_once();
    return FINISH();
}
