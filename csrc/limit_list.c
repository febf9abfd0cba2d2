/* limit_list.c - the names of counters, and a walk over those that are live. See limit.h. */
#include <string.h>

#include "internal/limit_slots.h"
#include "map.h"

_Static_assert(EF_LIMIT_NAME % 8 == 0 && EF_LIMIT_NAME <= 0xffff, "names are whole words, their length has 16 bits");

static uint64_t check_of(uint64_t tag, uint64_t meta, const uint8_t *text, size_t kept) {
    return ef_hash64(tag ^ meta, text, kept, 0);
}

void ef_limit_put_name(const ef_limit_place *at, const ef_limit_slot *slot, const uint8_t *key, size_t len,
                       uint32_t unit) {
    ef_limit_name *name = at->names + (slot - at->bucket->slots);
    const size_t kept = len < EF_LIMIT_NAME ? len : EF_LIMIT_NAME;
    const uint64_t meta = unit | (uint64_t)(len < 0xffff ? len : 0xffff) << 32 | (uint64_t)kept << 48;
    for (size_t i = 0; i * 8 < kept; i++) {
        uint64_t word = 0;
        EF_LIMIT_STEP(name);
        memcpy(&word, key + i * 8, kept - i * 8 < 8 ? kept - i * 8 : 8);
        __atomic_store_n(name->words + i, word, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&name->meta, meta, __ATOMIC_RELAXED);
    __atomic_store_n(&name->check, check_of(at->tag, meta, key, kept), __ATOMIC_RELAXED);
}

/* Fill in what the name says; all zero when it is not of this tag. */
static void read_name(const ef_limit_name *name, uint64_t tag, ef_limit_entry *out) {
    const uint64_t meta = __atomic_load_n(&name->meta, __ATOMIC_RELAXED);
    const uint64_t check = __atomic_load_n(&name->check, __ATOMIC_RELAXED);
    const uint32_t kept = (uint32_t)(meta >> 48);
    memset(out, 0, sizeof *out);
    out->tag = tag;
    if (kept > EF_LIMIT_NAME) return;
    for (size_t i = 0; i * 8 < kept; i++) {
        const uint64_t word = __atomic_load_n(name->words + i, __ATOMIC_RELAXED);
        memcpy(out->key + i * 8, &word, 8);
    }
    if (check_of(tag, meta, out->key, kept) != check) {
        memset(out->key, 0, sizeof out->key);
        return;
    }
    out->unit = (uint32_t)meta;
    out->key_len = (uint32_t)(meta >> 32) & 0xffff;
    out->kept = kept;
}

static void read_counts(const ef_limit *s, uint64_t state, uint64_t now_s, ef_limit_entry *out) {
    const uint64_t end = ef_limit_end(state);
    out->current = ef_limit_count(state);
    if (out->unit == 0) return;
    out->window = end - (out->sliding ? 2 : 1) * (uint64_t)out->unit;
    if (!out->sliding) return;
    if (now_s >= end - out->unit) {
        out->window = end - out->unit;
        out->previous = out->current;
        out->current = 0;
        return;
    }
    const ef_limit_place at = ef_limit_place_of(s, out->tag);
    ef_limit_slot before;
    if (ef_limit_find(&at, out->tag | EF_LIMIT_SECOND, &before) != NULL &&
        ef_limit_end(before.state) == end - out->unit)
        out->previous = ef_limit_count(before.state);
}

int ef_limit_next(const ef_limit *s, uint64_t *cursor, uint64_t now_ms, ef_limit_entry *out) {
    const uint64_t now_s = now_ms / 1000;
    while (*cursor < (uint64_t)s->buckets * EF_LIMIT_SLOTS) {
        const uint64_t number = (*cursor)++;
        const ef_limit_slot *slot = s->bucket[number / EF_LIMIT_SLOTS].slots + number % EF_LIMIT_SLOTS;
        const uint64_t tag = ef_limit_load(&slot->tag);
        if (tag == 0 || (tag & EF_LIMIT_SECOND) != 0) continue;
        const uint64_t state = ef_limit_load(&slot->state);
        if (ef_limit_load(&slot->tag) != tag) continue; /* evicted in between */
        if (ef_limit_count(state) == 0 || ef_limit_end(state) <= now_s) continue;
        read_name(ef_limit_names(s) + number, tag & ~(uint64_t)EF_LIMIT_LASTS, out);
        out->sliding = out->unit > 0 && (tag & EF_LIMIT_LASTS) != 0;
        read_counts(s, state, now_s, out);
        return 1;
    }
    return 0;
}
