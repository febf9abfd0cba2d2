/* limit_local.c - see limit_local.h. */
#include "limit_local.h"

#include <string.h>

#include "internal/limit_slots.h"
#include "siphash.h"

/* Each time round, another worker got something done; a segment that was written over must not hang its readers. */
#define MOST_TRIES 65536
#define SECOND     ((uint64_t)1 << 32)
#define GROUP_BITS 0x3fcu      /* of a tag: the limit's */
#define SEAT_BITS  0xffcu      /* of a tag: the worker's */
#define FAR        0xffffffffu /* the end of a slot that counts requests in progress */

_Static_assert(EF_LOCAL_SEATS << 2 == SEAT_BITS + 4, "a seat has 10 bits of a tag");

size_t ef_local_size(uint32_t buckets) { return sizeof(ef_limit) + (size_t)buckets * sizeof(ef_limit_bucket); }

static int is_size(uint32_t buckets, size_t len) {
    return buckets > 0 && buckets <= EF_LIMIT_MAX_BUCKETS && len >= ef_local_size(buckets);
}

int ef_local_init(void *mem, size_t len, uint32_t buckets, const uint8_t seed[EF_LIMIT_SEED]) {
    if (!is_size(buckets, len)) return -1;
    ef_limit *s = mem;
    s->buckets = buckets;
    memcpy(s->seed, seed, EF_LIMIT_SEED);
    __atomic_store_n(&s->magic, EF_LIMIT_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int ef_local_check(const void *mem, size_t len) {
    const ef_limit *s = mem;
    if (len < sizeof *s || __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != EF_LIMIT_MAGIC) return -1;
    return is_size(s->buckets, len) ? 0 : -1;
}

/* --- token buckets --- */

static ef_limit_place bucket_of(const ef_limit *s, const uint8_t *key, size_t len, size_t name_len) {
    const uint64_t group = ef_siphash13(s->seed, key, name_len < len ? name_len : len) & GROUP_BITS;
    const uint64_t tag = (ef_siphash13(s->seed, key, len) & ~(uint64_t)(GROUP_BITS | 3)) | group;
    ef_limit_place at = ef_limit_place_of(s, tag != 0 ? tag : SECOND);
    at.names = NULL;
    return at;
}

/* Take one from a bucket that is full again at `full`. */
static void judge(uint64_t full, uint64_t interval, uint32_t burst, uint64_t now, ef_limit_result *out) {
    const uint64_t used = full > now ? full - now : 0;
    const uint64_t most = interval * (burst - 1);
    out->window = 0;
    out->admitted = used <= most;
    const uint64_t then = out->admitted ? used + interval : used;
    out->remaining = out->admitted ? (uint32_t)((most + interval - then) / interval) : 0;
    const uint64_t left = out->admitted ? then : used - most;
    out->reset_ms = (left >> 32) * 1000 + ((left & (SECOND - 1)) * 1000 >> 32) + 1;
}

int ef_bucket_take(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval, uint32_t burst,
                   uint64_t now, ef_limit_result *out) {
    if (interval == 0 || burst == 0 || interval > EF_BUCKET_MAX / burst) return -1;
    if (now >= ((uint64_t)EF_LIMIT_TIME_END << 32) - EF_BUCKET_MAX - SECOND) return -1;
    const ef_limit_place at = bucket_of(s, key, key_len, name_len);
    const uint32_t now_s = (uint32_t)(now >> 32);
    for (int i = 0; i < MOST_TRIES; i++) {
        ef_limit_slot seen;
        ef_limit_slot *slot = ef_limit_find(&at, at.tag, &seen);
        if (slot == NULL) {
            if (ef_limit_insert(&at, at.tag, now_s) != 0) ef_limit_displace(&at, GROUP_BITS);
            continue;
        }
        const uint64_t stored = seen.state - SECOND;
        judge(stored, interval, burst, now, out);
        ef_limit_slot next = seen;
        if (out->admitted) next.state = (stored > now ? stored : now) + interval + SECOND;
        if (ef_limit_swap(slot, seen, next)) return 0;
    }
    return -1;
}

void ef_bucket_give_back(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval) {
    const ef_limit_place at = bucket_of(s, key, key_len, name_len);
    for (int i = 0; i < MOST_TRIES; i++) {
        ef_limit_slot seen;
        ef_limit_slot *slot = ef_limit_find(&at, at.tag, &seen);
        if (slot == NULL || seen.state < 2 * SECOND + interval) return;
        if (ef_limit_swap(slot, seen, ef_limit_pair(seen.tag, seen.state - interval))) return;
    }
}

/* --- requests in progress --- */

/* The set of eight seats of a key. Its tag is the key's: a seat's slot has the seat's bits besides. */
static ef_limit_place set_of(const ef_limit *s, uint64_t tag, uint32_t set) {
    ef_limit_place at = ef_limit_place_of(s, tag ^ (uint64_t)(set * 0x9e3779b1u) << 32);
    at.names = NULL;
    return at;
}

static uint64_t sum_of(const ef_limit *s, uint64_t tag, uint32_t seats) {
    uint64_t sum = 0;
    for (uint32_t set = 0; set * EF_LOCAL_SET < seats; set++) {
        const ef_limit_place at = set_of(s, tag, set);
        for (uint32_t i = 0, number = at.home; i < EF_LIMIT_SLOTS; i++) {
            const uint64_t found = ef_limit_load(&at.bucket->slots[number].tag);
            const uint64_t state = ef_limit_load(&at.bucket->slots[number].state);
            if ((found & ~(uint64_t)SEAT_BITS) == at.tag && found != 0) sum += ef_limit_count(state);
            if (state == 0) break; /* never used: no slot of the key is behind it */
            if (++number == EF_LIMIT_SLOTS) number = 0;
        }
    }
    return sum;
}

int ef_held_take(ef_limit *s, const uint8_t *key, size_t key_len, uint32_t seat, uint32_t seats, uint32_t most,
                 uint32_t now_s, ef_held *out) {
    *out = (ef_held){.slot = NULL};
    if (seat >= seats || seats > EF_LOCAL_SEATS) return -1;
    const uint64_t hash = ef_siphash13(s->seed, key, key_len) & ~(uint64_t)(SEAT_BITS | 3);
    const uint64_t key_tag = hash != 0 ? hash : SECOND;
    const ef_limit_place at = set_of(s, key_tag, seat / EF_LOCAL_SET);
    const uint64_t tag = at.tag | (uint64_t)seat << 2;
    for (int i = 0; i < MOST_TRIES; i++) {
        ef_limit_slot seen;
        ef_limit_slot *slot = ef_limit_find(&at, tag, &seen);
        if (slot == NULL) {
            if (ef_limit_insert(&at, tag, now_s) != 0) return -1;
            continue;
        }
        const uint32_t own = ef_limit_count(seen.state);
        const ef_limit_slot more = ef_limit_pair(tag, ef_limit_state(FAR, own + 1));
        if (!ef_limit_swap(slot, seen, more)) continue;
        const uint64_t sum = sum_of(s, key_tag, seats);
        if (sum <= most) {
            *out = (ef_held){.slot = slot, .tag = tag, .sum = (uint32_t)sum};
            return 1;
        }
        ef_held taken = {.slot = slot, .tag = tag};
        ef_held_release(&taken, now_s);
        /* Workers that took the last one at once have all returned it: try again while it is free. */
        const uint64_t others = sum_of(s, key_tag, seats);
        out->sum = (uint32_t)(others < UINT32_MAX ? others : UINT32_MAX);
        if (others >= most) return 0;
    }
    return 0;
}

void ef_held_release(ef_held *held, uint32_t now_s) {
    ef_limit_slot *slot = held->slot;
    if (slot == NULL) return;
    held->slot = NULL;
    for (int i = 0; i < MOST_TRIES; i++) {
        ef_limit_slot seen;
        seen.tag = ef_limit_load(&slot->tag);
        seen.state = ef_limit_load(&slot->state);
        const uint32_t count = ef_limit_count(seen.state);
        if (seen.tag != held->tag || count == 0) return; /* forgotten */
        const uint64_t left = count > 1 ? ef_limit_state(FAR, count - 1) : ef_limit_state(now_s != 0 ? now_s : 1, 0);
        if (ef_limit_swap(slot, seen, ef_limit_pair(seen.tag, left))) return;
    }
}

void ef_held_forget(ef_limit *s, uint32_t seat, uint32_t now_s) {
    for (uint32_t bucket = 0; bucket < s->buckets; bucket++) {
        for (uint32_t number = 0; number < EF_LIMIT_SLOTS; number++) {
            ef_limit_slot *slot = s->bucket[bucket].slots + number;
            ef_limit_slot seen;
            seen.tag = ef_limit_load(&slot->tag);
            seen.state = ef_limit_load(&slot->state);
            if (seen.tag == 0 || (seen.tag & SEAT_BITS) >> 2 != seat || ef_limit_count(seen.state) == 0) continue;
            ef_limit_swap(slot, seen, ef_limit_pair(seen.tag, ef_limit_state(now_s != 0 ? now_s : 1, 0)));
        }
    }
}
