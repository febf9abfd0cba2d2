/* limit.c - see limit.h: the segment, and the verdict of fixed and sliding windows. Rules 4 and 5 of limit.h. */
#include "limit.h"

#include <string.h>

#include "internal/limit_slots.h"

/* Each time round, somebody else got something done; a segment that was written over must not hang its readers. */
#define MOST_TRIES 65536

enum outcome { DONE = 0, NO_ROOM = -1, NONE_LEFT = -2, AGAIN = 1 };

typedef struct question {
    ef_limit_place at;
    const uint8_t *key;
    size_t key_len;
    uint32_t n, limit, unit;
    int sliding;
    uint64_t now_ms;
    uint32_t now_s;
    const ef_limit_bound *bound; /* NULL: none, or it has taken its one */
} question;

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

size_t ef_limit_size(uint32_t buckets) {
    return sizeof(ef_limit) + (size_t)buckets * (sizeof(ef_limit_bucket) + EF_LIMIT_SLOTS * sizeof(ef_limit_name));
}

static int is_size(uint32_t buckets, size_t len) {
    return buckets > 0 && buckets <= EF_LIMIT_MAX_BUCKETS && len >= ef_limit_size(buckets);
}

int ef_limit_init(void *mem, size_t len, uint32_t buckets, const uint8_t seed[EF_LIMIT_SEED]) {
    if (!is_size(buckets, len)) return -1;
    ef_limit *s = mem;
    s->buckets = buckets;
    memcpy(s->seed, seed, EF_LIMIT_SEED);
    __atomic_store_n(&s->magic, EF_LIMIT_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int ef_limit_check(const void *mem, size_t len) {
    const ef_limit *s = mem;
    if (len < sizeof *s || __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != EF_LIMIT_MAGIC) return -1;
    return is_size(s->buckets, len) ? 0 : -1;
}

void ef_limit_set_epoch(ef_limit *s, uint64_t epoch_ms) { s->epoch_ms = epoch_ms; }

uint64_t ef_limit_now(const ef_limit *s, uint64_t boot_ms) { return s->epoch_ms + boot_ms; }

/* How long until one more could pass, in milliseconds: weight falls below `room` + 1 when
 * previous * (unit - elapsed) < (room + 1) * unit. Only for a full sliding window with a limit above 0. */
static uint64_t ms_until_room(uint64_t current, uint64_t previous, uint64_t elapsed, uint64_t limit, uint64_t unit) {
    if (current < limit) /* then previous > 0: the window before is in the way */
        return unit - (uint64_t)(((ef_u128)(limit - current) * unit + previous - 1) / previous) + 1 - elapsed;
    return unit - elapsed + unit - (uint64_t)(((ef_u128)limit * unit + current - 1) / current) + 1;
}

static void judge(const question *q, uint64_t window, uint32_t current, uint32_t previous, ef_limit_result *out) {
    const uint64_t unit = (uint64_t)q->unit * 1000;
    const uint64_t start = window * unit;
    const uint64_t elapsed = q->now_ms > start ? q->now_ms - start : 0; /* 0: it had not begun when the time was read */
    const uint64_t weight = (uint64_t)((ef_u128)previous * (unit - elapsed) / unit);
    const uint64_t used = weight + current;
    const uint32_t room = used < q->limit ? (uint32_t)(q->limit - used) : 0;
    out->admitted = q->n < room ? q->n : room;
    out->remaining = room - out->admitted;
    out->window = window * q->unit;
    out->reset_ms = q->sliding && out->remaining == 0 && q->limit > 0
                        ? ms_until_room((uint64_t)current + out->admitted, previous, elapsed, q->limit, unit)
                        : unit - elapsed;
}

static uint64_t stored_window(const question *q, ef_limit_slot seen) {
    const uint64_t last = (ef_limit_end(seen.state) - 1) / q->unit;
    return (seen.tag & EF_LIMIT_LASTS) != 0 && last > 0 ? last - 1 : last;
}

/* `slot` holds `seen`, and what was decided about it is in `out`: count it, or prove that it still held. */
static int settle(const question *q, ef_limit_slot *slot, ef_limit_slot seen, uint64_t window, uint32_t current,
                  const ef_limit_result *out) {
    ef_limit_slot next = seen;
    if (out->admitted > 0) {
        /* What was sliding in this window stays so to its end: then the window can weigh on the next. */
        const uint64_t lasts = window == stored_window(q, seen) ? seen.tag & EF_LIMIT_LASTS : 0;
        next.tag = q->at.tag | (q->sliding ? EF_LIMIT_LASTS : lasts);
        const uint64_t end = (window + (next.tag != q->at.tag ? 2 : 1)) * q->unit;
        if (end > EF_LIMIT_TIME_END) return NO_ROOM;
        next.state = ef_limit_state(end, current + out->admitted);
        if (ef_limit_count(seen.state) == 0) ef_limit_put_name(&q->at, slot, q->key, q->key_len, q->unit);
    }
    return ef_limit_swap(slot, seen, next) ? DONE : AGAIN;
}

/* Before the first is admitted in a window. Who comes again, because somebody was faster, has paid. */
static int pay(question *q, ef_limit_result *out) {
    if (q->bound == NULL) return DONE;
    ef_limit_result got;
    const ef_limit_bound *bound = q->bound;
    const int rc = ef_limit_take(bound->names, q->key, bound->name_len, 1, bound->most, q->unit, 0, q->now_ms, &got);
    if (rc != DONE) return rc;
    q->bound = NULL;
    if (got.admitted > 0) return DONE;
    *out = got;
    return NONE_LEFT;
}

/* A counter that nothing is stored of: the verdict, or a slot for it. */
static int begin(question *q, ef_limit_result *out) {
    /* It may have been here, and evicted: then before it was not found. */
    const uint64_t floor = ef_limit_load(&q->at.bucket->floor);
    judge(q, later(q->now_s, floor) / q->unit, 0, 0, out);
    if (out->admitted == 0) return DONE;
    const int rc = pay(q, out);
    if (rc != DONE) return rc;
    return ef_limit_insert(&q->at, q->at.tag, q->now_s) == 0 ? AGAIN : NO_ROOM;
}

static int take_fixed(question *q, ef_limit_result *out) {
    ef_limit_slot seen;
    ef_limit_slot *slot = ef_limit_find(&q->at, q->at.tag, &seen);
    if (slot == NULL) return begin(q, out);
    const uint64_t stored = stored_window(q, seen);
    const uint64_t window = later(q->now_s / q->unit, stored);
    const uint32_t current = window == stored ? ef_limit_count(seen.state) : 0;
    judge(q, window, current, 0, out);
    if (current == 0 && out->admitted > 0) {
        const int rc = pay(q, out);
        if (rc != DONE) return rc;
    }
    return settle(q, slot, seen, window, current, out);
}

/* Let the second slot say that window `end` / unit - 1 follows one with this count. */
static int put_previous(const question *q, ef_limit_slot *slot, ef_limit_slot seen, uint64_t end, uint32_t count) {
    if (end > EF_LIMIT_TIME_END) return NO_ROOM;
    if (slot == NULL) return ef_limit_insert(&q->at, q->at.tag | EF_LIMIT_SECOND, q->now_s) == 0 ? AGAIN : NO_ROOM;
    const ef_limit_slot next = ef_limit_pair(seen.tag, ef_limit_state(end, count));
    if (seen.state == next.state) return DONE;
    if (seen.state > next.state) return AGAIN; /* the first slot has moved on since it was read */
    return ef_limit_swap(slot, seen, next) ? DONE : AGAIN;
}

static int take_sliding(question *q, ef_limit_result *out) {
    ef_limit_slot seen, before;
    ef_limit_slot *slot = ef_limit_find(&q->at, q->at.tag, &seen);
    if (slot == NULL) return begin(q, out);
    ef_limit_slot *second = ef_limit_find(&q->at, q->at.tag | EF_LIMIT_SECOND, &before);
    if (second != NULL && !ef_limit_swap(second, before, before)) return AGAIN;

    const uint64_t stored = stored_window(q, seen);
    const uint64_t floor = ef_limit_load(&q->at.bucket->floor); /* the second slot may have been evicted */
    uint64_t window = later(later(q->now_s, floor) / q->unit, stored);
    if (second != NULL) window = later(window, (ef_limit_end(before.state) - 1) / q->unit);
    const uint64_t end = (window + 1) * q->unit;

    uint32_t current = 0, previous = 0;
    if (window == stored) {
        current = ef_limit_count(seen.state);
        if (second != NULL && ef_limit_end(before.state) == end) previous = ef_limit_count(before.state);
    } else if (window == stored + 1) {
        previous = ef_limit_count(seen.state);
    }
    judge(q, window, current, previous, out);
    if (current == 0 && out->admitted > 0) {
        const int rc = pay(q, out);
        if (rc != DONE) return rc;
    }
    if (window != stored && previous > 0 && out->admitted > 0) {
        if (!ef_limit_swap(slot, seen, seen)) return AGAIN;
        const int rc = put_previous(q, second, before, end, previous);
        if (rc != DONE) return rc;
    }
    return settle(q, slot, seen, window, current, out);
}

int ef_limit_take(ef_limit *s, const uint8_t *key, size_t key_len, uint32_t n, uint32_t limit, uint32_t unit,
                  int sliding, uint64_t now_ms, ef_limit_result *out) {
    return ef_limit_take_bounded(s, NULL, key, key_len, n, limit, unit, sliding, now_ms, out);
}

int ef_limit_take_bounded(ef_limit *s, const ef_limit_bound *bound, const uint8_t *key, size_t key_len, uint32_t n,
                          uint32_t limit, uint32_t unit, int sliding, uint64_t now_ms, ef_limit_result *out) {
    if (unit == 0 || unit > EF_LIMIT_MAX_UNIT || now_ms / 1000 + 2 * (uint64_t)unit >= EF_LIMIT_TIME_END) return -1;
    question q = {.at = ef_limit_locate(s, key, key_len), .key = key, .key_len = key_len, .n = n};
    q.limit = limit;
    q.unit = unit;
    q.sliding = sliding;
    q.now_ms = now_ms;
    q.now_s = (uint32_t)(now_ms / 1000);
    q.bound = bound;
    for (int i = 0; i < MOST_TRIES; i++) {
        const int rc = sliding ? take_sliding(&q, out) : take_fixed(&q, out);
        if (rc != AGAIN) return rc;
    }
    return -1;
}
