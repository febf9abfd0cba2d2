/* test_limit_schedules.c - workers stopped and killed between any two looks at shared memory, in many thousand orders.
 *
 * The store is compiled in once more, with a step before each load and swap (EF_LIMIT_STEP). Workers are coroutines; at a
 * step a random one may go on, or the running one may die for ever. The one bucket is full but for a few slots, clocks
 * differ by some windows: so counters are evicted and come back all the time. Held to:
 *   - no (key, window) admits more than its limit; no two windows of a sliding key more than it together (all clocks
 *     read the start of a window, where all of the one before counts);
 *   - where nobody died, a request that was refused found the limit used up to the last;
 *   - a key never has two slots; nobody is ever stuck, whoever died where.
 */
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static void step(const void *at);
#define EF_LIMIT_STEP(at)     step(at)
#define ef_limit_size         stepped_size
#define ef_limit_init         stepped_init
#define ef_limit_check        stepped_check
#define ef_limit_set_epoch    stepped_set_epoch
#define ef_limit_now          stepped_now
#define ef_limit_take_bounded stepped_take_bounded
#define ef_limit_take         stepped_take
#define ef_limit_next         stepped_next
#define ef_limit_place_of     stepped_place_of
#define ef_limit_locate       stepped_locate
#define ef_limit_find         stepped_find
#define ef_limit_insert       stepped_insert
#define ef_limit_displace     stepped_displace
#define ef_limit_put_name     stepped_put_name
#include "../limit.c"
#include "../limit_list.c"
#include "../limit_slots.c"

#include "check.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(at, len) ((void)(at), (void)(len))
#endif

#define WORKERS     4
#define TAKES       20 /* by each worker */
#define KEYS        4
#define LIMIT       3
#define WINDOWS     128
#define MOST_DEATHS 12
#define STACK       (256u * 1024u)
#define T0          1700000000u /* seconds, a multiple of 1, 2 and 5 */
#ifndef ROUNDS
#define ROUNDS 1000
#endif

typedef struct worker {
    ucontext_t context;
    int alive, done;
    uint32_t skew;    /* windows that its clock is ahead */
    uint32_t held_up; /* turns that it misses */
} worker;

static worker workers[WORKERS];
static char stacks[WORKERS][STACK];
static ucontext_t scheduler;
static worker *running;
static uint64_t random_state = 1;

/* Of one round. */
static ef_limit *store;
static uint32_t keys, unit, windows_passed, switch_one_in, death_one_in, deaths, refused_rooms;
enum kind { FIXED, SLIDING, SWITCHING };
static enum kind kinds[KEYS];
static uint32_t admitted[KEYS][WINDOWS];
static int was_refused[KEYS][WINDOWS];
/* Of all rounds: proof that the interesting things happen. */
static unsigned long evictions, refusals, no_rooms, deaths_pending, rolls;

static uint32_t chance(uint32_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * below >> 32);
}

/* Slots that are taken for good are passed by: nothing can happen there. */
static int is_dull(const void *at) {
    const ef_limit_slot *slots = store->bucket[0].slots;
    if (at < (const void *)slots || at >= (const void *)(slots + EF_LIMIT_SLOTS)) return 0;
    const size_t number = (size_t)((const char *)at - (const char *)slots) / sizeof *slots;
    return slots[number].tag != 0 && ef_limit_end(slots[number].state) > T0 + 1000;
}

static void step(const void *at) {
    if (running == NULL || is_dull(at) || chance(switch_one_in) != 0) return;
    worker *self = running;
    /* One that is held up for long comes back to a bucket in which much has happened. */
    if (chance(12) == 0) self->held_up = chance(chance(3) == 0 ? 1500 : 60);
    if (death_one_in > 0 && deaths < MOST_DEATHS && chance(death_one_in) == 0) {
        self->alive = 0;
        deaths++;
        deaths_pending += store->bucket[0].pending.tag != 0;
    }
    swapcontext(&self->context, &scheduler);
}

static void key_of(int key, char *text) { memcpy(text, "key 0", 6), text[4] = (char)('0' + key); }

static void work(void) {
    worker *self = running;
    for (int i = 0; i < TAKES; i++) {
        const int key = (int)chance(keys);
        char text[8];
        ef_limit_result got;
        key_of(key, text);
        const uint32_t n = 1 + chance(2);
        const int sliding = kinds[key] == SWITCHING ? (int)chance(2) : kinds[key] == SLIDING;
        const uint64_t now_s = T0 + (uint64_t)(windows_passed + self->skew) * unit;
        if (ef_limit_take(store, (const uint8_t *)text, 5, n, LIMIT, unit, sliding, now_s * 1000, &got) != 0) {
            refused_rooms++;
        } else {
            const uint64_t window = (got.window - T0) / unit;
            if (CHECK(window < WINDOWS)) {
                admitted[key][window] += got.admitted;
                was_refused[key][window] |= got.admitted < n;
                refusals += got.admitted < n;
            }
        }
        if (chance(4) == 0) windows_passed++;
    }
    self->alive = 0;
    self->done = 1;
    swapcontext(&self->context, &scheduler);
}

static void start(int id) {
    worker *w = workers + id;
    ASAN_UNPOISON_MEMORY_REGION(stacks[id], STACK); /* frames of one who died */
    getcontext(&w->context);
    w->context.uc_stack.ss_sp = stacks[id];
    w->context.uc_stack.ss_size = STACK;
    w->context.uc_link = NULL;
    makecontext(&w->context, work, 0);
    w->alive = 1;
    w->done = 0;
    w->skew = chance(3);
    w->held_up = 0;
}

/* No key has two slots, at any moment. */
static void check_slots(void) {
    uint64_t tags[EF_LIMIT_SLOTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < EF_LIMIT_SLOTS; i++) {
        const ef_limit_slot *slot = store->bucket[0].slots + i;
        if (slot->tag == 0 || is_dull(slot)) continue;
        const uint64_t tag = slot->tag & ~(uint64_t)EF_LIMIT_LASTS;
        for (uint32_t j = 0; j < n; j++)
            CHECK(tags[j] != tag);
        tags[n++] = tag;
    }
}

static void run_all(void) {
    for (;;) {
        worker *ready[WORKERS];
        uint32_t n = 0, alive = 0;
        for (int i = 0; i < WORKERS; i++) {
            if (!workers[i].alive && !workers[i].done) start(i); /* its successor */
            if (!workers[i].alive) continue;
            alive++;
            if (workers[i].held_up > 0)
                workers[i].held_up--;
            else
                ready[n++] = workers + i;
        }
        if (alive == 0) return;
        if (n == 0) continue; /* all are held up */
        running = ready[chance(n)];
        swapcontext(&scheduler, &running->context);
        running = NULL;
        check_slots();
    }
}

/* A bucket with `free_slots` that are not taken for good: some never used, some that end soon, or for some clocks only. */
static void fill(uint8_t *segment, uint32_t free_slots) {
    static const uint8_t seed[EF_LIMIT_SEED] = {7};
    const uint32_t never_used = chance(free_slots + 1);
    memset(segment, 0, ef_limit_size(1));
    ef_limit_init(segment, ef_limit_size(1), 1, seed);
    store = (ef_limit *)(void *)segment;
    for (uint32_t i = 0; i < EF_LIMIT_SLOTS - never_used; i++) {
        const int lasts = i < EF_LIMIT_SLOTS - free_slots;
        const uint64_t now_s = T0 + (uint64_t)chance(5) * unit - 2;
        ef_limit_result got;
        CHECK_EQUAL(ef_limit_take(store, (const uint8_t *)&i, 4, 1, 1, lasts ? 86400 : 1, 0, now_s * 1000, &got), 0);
    }
}

static void check_counts(void) {
    for (int key = 0; key < KEYS; key++)
        for (int w = 0; w < WINDOWS; w++) {
            CHECK(admitted[key][w] <= LIMIT);
            if (kinds[key] == SLIDING && w > 0) CHECK(admitted[key][w] + admitted[key][w - 1] <= LIMIT);
            if (kinds[key] == FIXED && deaths == 0 && was_refused[key][w]) CHECK_EQUAL(admitted[key][w], LIMIT);
        }
}

/* Whatever was left behind: everyone can go on. Time enough has passed for every slot to be free. */
static void check_nobody_is_stuck(void) {
    for (int key = 0; key < KEYS; key++) {
        char text[8];
        ef_limit_result got;
        key_of(key, text);
        const uint64_t now_ms = (T0 + 200000ull) * 1000;
        CHECK_EQUAL(ef_limit_take(store, (const uint8_t *)text, 5, 9, LIMIT, unit, kinds[key] == SLIDING, now_ms, &got),
                    0);
        CHECK_EQUAL(got.admitted, LIMIT);
    }
}

int main(void) {
    uint8_t *segment = aligned_alloc(64, ef_limit_size(1));
    if (segment == NULL) abort();
    for (int round = 0; round < ROUNDS; round++) {
        static const uint32_t units[] = {1, 2, 5}, switches[] = {1, 1, 2, 3, 6};
        running = NULL;
        unit = units[chance(3)];
        switch_one_in = switches[chance(5)];
        death_one_in = round % 2 ? 10 + chance(40) : 0;
        windows_passed = deaths = refused_rooms = 0;
        memset(admitted, 0, sizeof admitted);
        memset(was_refused, 0, sizeof was_refused);
        keys = 1 + chance(KEYS);
        fill(segment, 1 + chance(2 * keys));
        for (int key = 0; key < KEYS; key++)
            kinds[key] = (enum kind)chance(3);
        for (int i = 0; i < WORKERS; i++)
            start(i);
        run_all();
        check_counts();
        for (uint32_t i = 0; i < EF_LIMIT_SLOTS; i++)
            rolls += store->bucket[0].slots[i].tag & 1;
        evictions += store->bucket[0].floor >= T0;
        no_rooms += refused_rooms;
        check_nobody_is_stuck();
    }
    CHECK(evictions > ROUNDS / 4);
    CHECK(refusals > ROUNDS);
    CHECK(no_rooms > ROUNDS / 4);
    CHECK(rolls > ROUNDS / 4);
    CHECK(deaths_pending > ROUNDS / 100);
    free(segment);
    return FINISH();
}
