/* health.c - see health.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_mutex_clocklock */
#endif
#include "health.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#ifndef EF_HEALTH_STEP
#define EF_HEALTH_STEP() ((void)0) /* another process may come in between: tests let it (tests/test_health_races.c) */
#endif
#define LINE 64u
_Static_assert(sizeof(ef_health_record) == LINE && sizeof(ef_share) == LINE, "a cache line each");

struct ef_health {
    uint32_t magic, records, seats, index_mask;
    uint32_t used;  /* records that were ever given away */
    uint32_t free_; /* the first free one of these, plus one */
    uint32_t held;
    uint32_t prober;      /* the seat, plus one; 0: nobody */
    pthread_mutex_t lock; /* shared between processes, robust */
};

static size_t up(size_t n) { return (n + LINE - 1) / LINE * LINE; }

static uint32_t index_size(uint32_t records) {
    uint32_t size = 2;
    while (size < records * 2)
        size *= 2;
    return size;
}

static size_t record_size(uint32_t seats) { return sizeof(ef_health_record) + (size_t)seats * sizeof(ef_share); }

static size_t records_at(uint32_t records) {
    return up(sizeof(ef_health)) + up((size_t)index_size(records) * sizeof(uint32_t));
}

size_t ef_health_size(uint32_t records, uint32_t seats) {
    return records_at(records) + (size_t)records * record_size(seats);
}

static int in_range(uint32_t records, uint32_t seats) {
    return records > 0 && records <= EF_HEALTH_RECORDS && seats > 0 && seats <= EF_HEALTH_SEATS;
}

int ef_health_init(void *mem, size_t len, uint32_t records, uint32_t seats) {
    if (!in_range(records, seats) || len < ef_health_size(records, seats)) return -1;
    ef_health *s = mem;
    pthread_mutexattr_t how;
    if (pthread_mutexattr_init(&how)) return -1;
    const int made = pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED) == 0 &&
                     pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST) == 0 &&
                     pthread_mutex_init(&s->lock, &how) == 0;
    pthread_mutexattr_destroy(&how);
    if (!made) return -1;
    s->records = records;
    s->seats = seats;
    s->index_mask = index_size(records) - 1;
    s->magic = EF_HEALTH_MAGIC;
    return 0;
}

int ef_health_check(const void *mem, size_t len) {
    const ef_health *s = mem;
    if (len < sizeof *s || s->magic != EF_HEALTH_MAGIC || !in_range(s->records, s->seats)) return -1;
    return s->index_mask == index_size(s->records) - 1 && len >= ef_health_size(s->records, s->seats) ? 0 : -1;
}

size_t ef_health_extent(const ef_health *s) { return ef_health_size(s->records, s->seats); }

uint32_t ef_health_seats(const ef_health *s) { return s->seats; }

uint32_t ef_health_used(const ef_health *s) { return __atomic_load_n(&s->held, __ATOMIC_RELAXED); }

static uint32_t *index_of(ef_health *s) { return (uint32_t *)((uint8_t *)s + up(sizeof *s)); }

static ef_health_record *record_of(ef_health *s, uint32_t number) {
    return (ef_health_record *)((uint8_t *)s + records_at(s->records) + (size_t)number * record_size(s->seats));
}

/* Where a key's search begins; keys are hashes. */
static uint32_t home_of(const ef_health *s, uint64_t key) { return (uint32_t)(key ^ key >> 32) & s->index_mask; }

/* The place of a key in the index, or the empty one where it would be. */
static uint32_t place_of(ef_health *s, uint64_t key) {
    const uint32_t *index = index_of(s);
    uint32_t at = home_of(s, key);
    while (index[at] && record_of(s, index[at] - 1)->key != key)
        at = (at + 1) & s->index_mask;
    return at;
}

static void give_free(ef_health *s, uint32_t number) {
    ef_health_record *record = record_of(s, number);
    record->key = 0;
    record->holders = 0;
    record->version = s->free_;
    s->free_ = number + 1;
}

/* Close the gap in the index that a key leaves: whoever was pushed on by it moves back. */
static void close_gap(ef_health *s, uint32_t gap) {
    uint32_t *index = index_of(s);
    index[gap] = 0;
    for (uint32_t at = (gap + 1) & s->index_mask; index[at]; at = (at + 1) & s->index_mask) {
        const uint32_t home = home_of(s, record_of(s, index[at] - 1)->key);
        if (((at - home) & s->index_mask) < ((at - gap) & s->index_mask)) continue; /* its home is behind the gap */
        index[gap] = index[at];
        index[at] = 0;
        gap = at;
    }
}

/* Somebody was killed in the middle of a change: what the records say holds. */
static void mend(ef_health *s) {
    memset(index_of(s), 0, ((size_t)s->index_mask + 1) * sizeof(uint32_t));
    s->free_ = s->held = 0;
    if (s->used > s->records) s->used = s->records;
    for (uint32_t i = s->used; i-- > 0;) {
        ef_health_record *record = record_of(s, i);
        record->holders = 0;
        for (uint32_t seat = 0; seat < s->seats; seat++)
            record->holders += record->shares[seat].count[EF_SHARE_HELD];
        uint32_t *place = record->key && record->holders ? &index_of(s)[place_of(s, record->key)] : NULL;
        if (place != NULL && *place == 0) {
            *place = i + 1;
            s->held++;
        } else {
            give_free(s, i);
        }
    }
}

static int lock(ef_health *s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)EF_HEALTH_LOCK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const int got = pthread_mutex_clocklock(&s->lock, CLOCK_MONOTONIC, &until);
    if (got == EOWNERDEAD) {
        pthread_mutex_consistent(&s->lock);
        mend(s);
        return 0;
    }
    return got;
}

static void unlock(ef_health *s) { pthread_mutex_unlock(&s->lock); }

static ef_health_record *make(ef_health *s, uint64_t key, uint32_t place) {
    uint32_t number;
    if (s->free_) {
        number = s->free_ - 1;
        s->free_ = record_of(s, number)->version;
    } else if (s->used < s->records) {
        number = s->used++;
    } else {
        return NULL;
    }
    ef_health_record *record = record_of(s, number);
    memset(record, 0, record_size(s->seats));
    record->key = key;
    index_of(s)[place] = number + 1;
    s->held++;
    return record;
}

ef_health_record *ef_health_hold(ef_health *s, uint64_t key, uint32_t seat) {
    if (key == 0 || seat >= s->seats || lock(s)) return NULL;
    const uint32_t place = place_of(s, key);
    const uint32_t number = index_of(s)[place];
    ef_health_record *record = number ? record_of(s, number - 1) : make(s, key, place);
    if (record != NULL && !record->shares[seat].count[EF_SHARE_HELD]) {
        record->shares[seat].count[EF_SHARE_HELD] = 1;
        record->holders++;
    }
    unlock(s);
    return record;
}

static void leave(ef_health *s, ef_health_record *record, uint32_t seat) {
    memset(&record->shares[seat], 0, sizeof(ef_share));
    if (--record->holders) return;
    const uint32_t place = place_of(s, record->key);
    const uint32_t number = index_of(s)[place];
    if (number == 0 || record_of(s, number - 1) != record) return;
    close_gap(s, place);
    give_free(s, number - 1);
    s->held--;
}

void ef_health_release(ef_health *s, ef_health_record *record, uint32_t seat) {
    if (lock(s)) return; /* the agent forgets it with the seat */
    if (record->shares[seat].count[EF_SHARE_HELD]) leave(s, record, seat);
    unlock(s);
}

int ef_health_claim(ef_health *s, uint32_t seat) {
    uint32_t nobody = 0;
    return __atomic_compare_exchange_n(&s->prober, &nobody, seat + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
           nobody == seat + 1;
}

void ef_health_resign(ef_health *s, uint32_t seat) {
    uint32_t own = seat + 1;
    __atomic_compare_exchange_n(&s->prober, &own, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void ef_health_put(ef_health_record *cluster, ef_health_record *endpoint, uint64_t state) {
    __atomic_store_n(&endpoint->until_ms, state, __ATOMIC_RELEASE);
    __atomic_add_fetch(&cluster->version, 1, __ATOMIC_RELEASE);
}

int ef_health_forget(ef_health *s, uint32_t seat) {
    if (seat < s->seats) ef_health_resign(s, seat);
    if (seat >= s->seats || lock(s)) return -1;
    for (uint32_t i = 0; i < s->used; i++) {
        ef_health_record *record = record_of(s, i);
        uint32_t own = seat + 1;
        __atomic_compare_exchange_n(&record->taking, &own, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (record->key && record->shares[seat].count[EF_SHARE_HELD]) leave(s, record, seat);
    }
    unlock(s);
    return 0;
}

void ef_health_want(ef_health_record *cluster, uint32_t many) {
    __atomic_store_n(&cluster->wanted, many, __ATOMIC_RELAXED);
}

int ef_health_leave(ef_health_record *cluster) {
    uint32_t left = __atomic_load_n(&cluster->wanted, __ATOMIC_RELAXED);
    while (left)
        if (__atomic_compare_exchange_n(&cluster->wanted, &left, left - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

uint64_t ef_share_sum(const ef_health_record *record, uint32_t seats, uint32_t what) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < seats; i++)
        sum += __atomic_load_n(&record->shares[i].count[what], __ATOMIC_RELAXED);
    return sum;
}

/* Two who come for the last one would see each other, and neither have it: near the bound each waits for its turn, but not for somebody
 * who was stopped with it. Then they look again, and are refused when others are there still. */
#ifndef EF_HEALTH_TRIES
#define EF_HEALTH_SPINS 256
#define EF_HEALTH_TRIES 4
#endif

static int wait_turn(ef_health_record *record, uint32_t seat) {
    for (int i = 0; i < EF_HEALTH_SPINS; i++) {
        uint32_t nobody = 0;
        if (__atomic_load_n(&record->taking, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&record->taking, &nobody, seat + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return 1;
        EF_HEALTH_STEP();
    }
    return 0;
}

static int take(ef_health_record *record, uint32_t seats, uint32_t seat, uint32_t what, uint32_t most) {
    uint32_t *own = &record->shares[seat].count[what];
    const uint32_t had = __atomic_load_n(own, __ATOMIC_RELAXED);
    for (int i = 0; i < EF_HEALTH_TRIES; i++) {
        if (ef_share_sum(record, seats, what) >= most) return 0;
        EF_HEALTH_STEP();
        __atomic_store_n(own, had + 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* whoever looks from here on sees it, or we see theirs */
        EF_HEALTH_STEP();
        if (ef_share_sum(record, seats, what) <= most) return 1;
        __atomic_store_n(own, had, __ATOMIC_RELAXED);
    }
    return 0;
}

int ef_share_take(ef_health_record *record, uint32_t seats, uint32_t seat, uint32_t what, uint32_t most) {
    const uint64_t before = ef_share_sum(record, seats, what);
    if (before >= most) return 0;
    /* where there is room for one of each worker nobody meets anybody */
    const int turn = before + seats > most && seats > 1 && wait_turn(record, seat);
    const int got = take(record, seats, seat, what, most);
    if (turn) {
        uint32_t own = seat + 1;
        __atomic_compare_exchange_n(&record->taking, &own, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    return got;
}

static uint32_t count_out(ef_health_record *const *endpoints, uint32_t n, uint64_t now_ms) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < n; i++)
        out += (uint32_t)ef_health_is_out(endpoints[i], now_ms);
    return out;
}

int ef_health_eject(ef_health_record *cluster, ef_health_record *const *endpoints, uint32_t n, uint32_t at,
                    const ef_ejection *how) {
    ef_health_record *endpoint = endpoints[at];
    uint64_t before = __atomic_load_n(&endpoint->until_ms, __ATOMIC_RELAXED);
    if (before > how->now_ms || count_out(endpoints, n, how->now_ms) >= how->most) return 0;
    EF_HEALTH_STEP();
    const uint64_t last = __atomic_load_n(&endpoint->ejected_ms, __ATOMIC_RELAXED);
    uint32_t times = __atomic_load_n(&endpoint->ejections, __ATOMIC_RELAXED);
    if (how->now_ms - last > 2 * how->max_ms) times = 0; /* old sins are forgiven */
    uint64_t span = how->base_ms * (times + 1);
    if (span > how->max_ms) span = how->max_ms;
    uint64_t until = how->now_ms + (span ? span : 1);
    if (how->sweep_ms) until += (how->sweep_ms - until % how->sweep_ms) % how->sweep_ms;
    if (!__atomic_compare_exchange_n(&endpoint->until_ms, &before, until, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const int kept = count_out(endpoints, n, how->now_ms) <= how->most;
    if (kept) {
        __atomic_store_n(&endpoint->ejected_ms, how->now_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&endpoint->ejections, times + 1, __ATOMIC_RELAXED);
        for (uint32_t kind = 0; kind < EF_HEALTH_FAILURES; kind++)
            __atomic_store_n(&endpoint->failures[kind], 0, __ATOMIC_RELAXED);
    } else { /* others were ejected meanwhile */
        __atomic_store_n(&endpoint->until_ms, 0, __ATOMIC_SEQ_CST);
    }
    __atomic_add_fetch(&cluster->version, 1, __ATOMIC_RELEASE);
    return kept;
}
