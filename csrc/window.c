#include "window.h"

/* Of clusters' records; EF_SHARE_LOST, which has the same place, is of endpoints' alone. */
_Static_assert((int)EF_WINDOW_TURN > (int)EF_SHARE_LEAVING, "what is counted of a cluster has a place of its own");
_Static_assert((int)EF_WINDOW_END <= (int)EF_SHARE_HELD, "a share has room for it");

static uint32_t get(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
static void put(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
static uint32_t turn_of(uint64_t now_ms, uint32_t interval_ms) { return (uint32_t)(now_ms / interval_ms); }

/* Counts of the interval that it is now; `pairs` of them, each with the one before behind it. Zero, or too old, is nothing. */
static void roll(uint32_t *turn, uint32_t *counts, uint32_t pairs, uint32_t now) {
    const uint32_t had = get(turn);
    if (had == now) return;
    for (uint32_t i = 0; i < pairs; i++) {
        put(&counts[2 * i + 1], had + 1 == now ? get(&counts[2 * i]) : 0);
        put(&counts[2 * i], 0);
    }
    put(turn, now);
}

/* What the window has of a count, in parts of its interval; of a seat that has not counted for a while what is left of it. */
static uint64_t weigh(uint32_t turn, const uint32_t *pair, uint32_t now, uint32_t left, uint32_t interval_ms) {
    if (turn == now) return (uint64_t)get(&pair[0]) * interval_ms + (uint64_t)get(&pair[1]) * left;
    return turn + 1 == now ? (uint64_t)get(&pair[0]) * left : 0;
}

static uint32_t left_of(uint64_t now_ms, uint32_t interval_ms) {
    return interval_ms - (uint32_t)(now_ms % interval_ms);
}

static int allows(const ef_health_record *record, uint32_t seats, const ef_window *how, uint64_t now_ms) {
    const uint32_t now = turn_of(now_ms, how->interval_ms), left = left_of(now_ms, how->interval_ms);
    const uint32_t floor_now = turn_of(now_ms, how->floor_ms), floor_left = left_of(now_ms, how->floor_ms);
    uint64_t tries = how->interval_ms, repeats = 0, floor = 0; /* the one that is asked for is a try as well */
    for (uint32_t i = 0; i < seats; i++) {
        const uint32_t *own = record->shares[i].count;
        const uint32_t turn = get(&own[EF_WINDOW_TURN]);
        tries += weigh(turn, &own[EF_WINDOW_TRIES], now, left, how->interval_ms);
        repeats += weigh(turn, &own[EF_WINDOW_REPEATS], now, left, how->interval_ms);
        floor += weigh(get(&own[EF_WINDOW_FLOOR_TURN]), &own[EF_WINDOW_FLOOR], floor_now, floor_left, how->floor_ms);
    }
    return floor <= (uint64_t)how->floor * how->floor_ms || repeats * 100 <= tries * how->percent;
}

void ef_window_count(ef_health_record *record, uint32_t seat, const ef_window *how, uint64_t now_ms) {
    uint32_t *own = record->shares[seat].count;
    roll(&own[EF_WINDOW_TURN], &own[EF_WINDOW_TRIES], 2, turn_of(now_ms, how->interval_ms));
    put(&own[EF_WINDOW_TRIES], get(&own[EF_WINDOW_TRIES]) + 1);
}

int ef_window_take(ef_health_record *record, uint32_t seats, uint32_t seat, const ef_window *how, uint64_t now_ms) {
    uint32_t *own = record->shares[seat].count;
    roll(&own[EF_WINDOW_TURN], &own[EF_WINDOW_TRIES], 2, turn_of(now_ms, how->interval_ms));
    roll(&own[EF_WINDOW_FLOOR_TURN], &own[EF_WINDOW_FLOOR], 1, turn_of(now_ms, how->floor_ms));
    const uint32_t repeats = get(&own[EF_WINDOW_REPEATS]), floor = get(&own[EF_WINDOW_FLOOR]);
    put(&own[EF_WINDOW_REPEATS], repeats + 1);
    put(&own[EF_WINDOW_FLOOR], floor + 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* whoever looks from here on sees it, or we see theirs */
    if (allows(record, seats, how, now_ms)) return 1;
    put(&own[EF_WINDOW_REPEATS], repeats);
    put(&own[EF_WINDOW_FLOOR], floor);
    return 0;
}
