/* test_window_races.c - worker processes that come at once for the last repeat of an interval: no more than one of them has it.
 *
 * window.c is compiled in once more, with steps: whoever looks at a count lets others go on now and then.
 */
#include <sched.h>
#include <stdint.h>
#define ef_window_count stepped_count
#define ef_window_take  stepped_take
static void step(void);
#define __atomic_load_n(at, order) (step(), __atomic_load_n(at, order))
#include "../window.c"
#undef __atomic_load_n

#include <unistd.h>

#include "health_segment.h"

static uint64_t chance = 1;

static void step(void) {
    if (next(&chance) % 16 == 0) sched_yield();
}

/* Processes that come for the last one at the same time, again and again: at most one of them has it, each time. */
static void test_at_the_same_time(void) {
    enum { ROUNDS = 300 };
    ef_health *s = make_health(8);
    ef_health_record *r = NULL;
    for (uint32_t seat = 0; seat < SEATS; seat++)
        r = ef_health_hold(s, 7, seat);
    CHECK(r != NULL);
    const ef_window how = {.percent = 0, .interval_ms = 10, .floor = 1, .floor_ms = 10};
    uint32_t *at = shared(sizeof *at * SEATS), *had = shared(sizeof *had * (ROUNDS + 1));
    pid_t workers[SEATS];
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        workers[seat] = fork();
        if (workers[seat] != 0) continue;
        chance += seat;
        for (uint32_t round = 1; round <= ROUNDS; round++) {
            meet(at, seat, round);
            if (ef_window_take(r, SEATS, seat, &how, 100u * round)) /* when all of the round before is past */
                __atomic_add_fetch(&had[round], 1, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    reap(workers, NULL);
    uint32_t all = 0, most = 0;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        all += had[round];
        most = had[round] > most ? had[round] : most;
    }
    CHECK_EQUAL(most, 1);
    CHECK(all > ROUNDS / 100); /* those who see each other have none */
    munmap(at, sizeof *at * SEATS);
    munmap(had, sizeof *had * (ROUNDS + 1));
    drop_health(s, 8);
}

int main(void) {
    test_at_the_same_time();
    return FINISH();
}
