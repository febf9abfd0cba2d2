/* limit_slots.c - which slot of a bucket is whose: search, eviction, insertion. Rules 1 to 3 of limit.h. */
#include "internal/limit_slots.h"

#include "siphash.h"

_Static_assert(EF_LIMIT_SEED == EF_SIPHASH_SEED, "a segment's seed is the hash's");

#define SLOT_BITS          6u
#define IS_PENDING(header) (((header).state >> SLOT_BITS & 1) != 0)

ef_limit_place ef_limit_place_of(const ef_limit *s, uint64_t tag) {
    const size_t number = (tag >> 32) * s->buckets >> 32;
    return (ef_limit_place){
        .bucket = (ef_limit_bucket *)(uintptr_t)(s->bucket + number),
        .names = ef_limit_names(s) + number * EF_LIMIT_SLOTS,
        .tag = tag,
        .home = (uint32_t)((tag & 0xffffffffu) * EF_LIMIT_SLOTS >> 32),
    };
}

ef_limit_place ef_limit_locate(const ef_limit *s, const uint8_t *key, size_t len) {
    const uint64_t tag = ef_siphash13(s->seed, key, len) & ~(uint64_t)3;
    return ef_limit_place_of(s, tag != 0 ? tag : 4);
}

ef_limit_slot *ef_limit_find(const ef_limit_place *at, uint64_t tag, ef_limit_slot *seen) {
    ef_limit_slot *slot = at->bucket->slots + at->home;
    for (uint32_t i = 0; i < EF_LIMIT_SLOTS; i++) {
        seen->tag = ef_limit_load(&slot->tag);
        seen->state = ef_limit_load(&slot->state);
        if ((seen->tag & ~(uint64_t)EF_LIMIT_LASTS) == tag) return slot;
        if (seen->state == 0) return NULL; /* never used */
        if (++slot == at->bucket->slots + EF_LIMIT_SLOTS) slot = at->bucket->slots;
    }
    return NULL;
}

/* The state first and last: it differs after every change, so both words are of one moment. */
static ef_limit_slot read_header(const ef_limit_bucket *bucket) {
    ef_limit_slot header;
    do {
        header.state = ef_limit_load(&bucket->pending.state);
        header.tag = ef_limit_load(&bucket->pending.tag);
    } while (ef_limit_load(&bucket->pending.state) != header.state);
    return header;
}

/* A blank's end is behind every end that the key had before, and a second away for who may be about to use it. */
static uint64_t blank(const ef_limit_bucket *bucket, uint32_t now_s) {
    const uint64_t floor = ef_limit_load(&bucket->floor);
    return ef_limit_state((floor > now_s ? floor : now_s) + 1, 0);
}

/* Do what the header announces, and withdraw it. Anyone may, any number at once. */
static void complete(ef_limit_bucket *bucket, ef_limit_slot header, uint32_t now_s) {
    ef_limit_slot *slot = bucket->slots + (header.state & ((1u << SLOT_BITS) - 1)) % EF_LIMIT_SLOTS;
    const uint64_t stamp = ef_limit_load(&slot->state);
    if (ef_limit_load(&slot->tag) == 0) {
        /* Still announced: so the slot had not been filled yet, and the stamp is the one it had when it was announced. */
        if (ef_limit_load(&bucket->pending.state) != header.state) return;
        ef_limit_swap(slot, ef_limit_pair(0, stamp), ef_limit_pair(header.tag, blank(bucket, now_s)));
    }
    const uint64_t version = (header.state >> SLOT_BITS) + 1;
    ef_limit_swap(&bucket->pending, header, ef_limit_pair(0, version << SLOT_BITS));
}

/* Make an ended slot an empty one. The header was idle, and this version, after the slot had been read. */
static int evict(ef_limit_bucket *bucket, ef_limit_slot *slot, ef_limit_slot seen, ef_limit_slot header) {
    const uint64_t end = ef_limit_end(seen.state);
    uint64_t floor = ef_limit_load(&bucket->floor);
    while (floor < end &&
           !__atomic_compare_exchange_n(&bucket->floor, &floor, end, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return ef_limit_swap(slot, seen, ef_limit_pair(0, header.state >> SLOT_BITS));
}

int ef_limit_insert(const ef_limit_place *at, uint64_t tag, uint32_t now_s) {
    ef_limit_bucket *bucket = at->bucket;
    const ef_limit_slot header = read_header(bucket);
    if (IS_PENDING(header)) {
        complete(bucket, header, now_s);
        return 0;
    }
    uint32_t place = EF_LIMIT_SLOTS; /* of the first slot on the way that may be taken */
    ef_limit_slot taken = ef_limit_pair(0, 0);
    for (uint32_t i = 0, number = at->home; i < EF_LIMIT_SLOTS; i++) {
        ef_limit_slot seen;
        seen.tag = ef_limit_load(&bucket->slots[number].tag);
        seen.state = ef_limit_load(&bucket->slots[number].state);
        if ((seen.tag & ~(uint64_t)EF_LIMIT_LASTS) == tag) return 0;
        if (place == EF_LIMIT_SLOTS && (seen.tag == 0 || ef_limit_end(seen.state) <= now_s)) {
            place = number;
            taken = seen;
            for (size_t line = 0; at->names != NULL && line < sizeof *at->names;
                 line += 64) /* most of the cost, if it is not near yet */
                __builtin_prefetch((const uint8_t *)(at->names + number) + line, 1);
        }
        if (seen.state == 0) break; /* never used: the tag is nowhere behind it */
        if (++number == EF_LIMIT_SLOTS) number = 0;
    }
    if (ef_limit_load(&bucket->pending.state) != header.state) return 0;
    if (place == EF_LIMIT_SLOTS) return -1;
    if (taken.tag != 0 && !evict(bucket, bucket->slots + place, taken, header)) return 0;
    const ef_limit_slot announced = ef_limit_pair(tag, ((header.state >> SLOT_BITS) + 1) << SLOT_BITS | place);
    if (ef_limit_swap(&bucket->pending, header, announced)) complete(bucket, announced, now_s);
    return 0;
}

void ef_limit_displace(const ef_limit_place *at, uint64_t group) {
    ef_limit_bucket *bucket = at->bucket;
    const ef_limit_slot header = read_header(bucket);
    if (IS_PENDING(header)) return; /* the insertion that follows completes it */
    ef_limit_slot seen[EF_LIMIT_SLOTS];
    uint8_t members[256] = {0};
    uint32_t place = EF_LIMIT_SLOTS;
    for (uint32_t i = 0; i < EF_LIMIT_SLOTS; i++) {
        seen[i].tag = ef_limit_load(&bucket->slots[i].tag);
        seen[i].state = ef_limit_load(&bucket->slots[i].state);
        if (seen[i].tag == 0) return; /* there is room by now */
        members[(seen[i].tag & group) >> 2 & 255]++;
    }
    for (uint32_t i = 0; i < EF_LIMIT_SLOTS; i++) {
        if (place == EF_LIMIT_SLOTS) place = i;
        const uint8_t most = members[(seen[place].tag & group) >> 2 & 255];
        const uint8_t here = members[(seen[i].tag & group) >> 2 & 255];
        if (here > most || (here == most && seen[i].state < seen[place].state)) place = i;
    }
    if (ef_limit_load(&bucket->pending.state) != header.state) return;
    ef_limit_swap(bucket->slots + place, seen[place], ef_limit_pair(0, header.state >> SLOT_BITS));
}
