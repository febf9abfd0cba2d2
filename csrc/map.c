/* map.c - see map.h. */
#include "map.h"

#include <stdlib.h>
#include <string.h>

/* slots[2 * i] is a key (0: free), slots[2 * i + 1] its value. */

static size_t home_of(const ef_map *m, uint64_t key) {
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (m->capacity - 1);
}

static uint64_t *slot_of(const ef_map *m, uint64_t key) {
    for (size_t at = home_of(m, key);; at = (at + 1) & (m->capacity - 1)) {
        uint64_t *slot = m->slots + 2 * at;
        if (slot[0] == key || slot[0] == 0) return slot;
    }
}

int ef_map_init(ef_map *m, size_t expected) {
    size_t capacity = 8;
    while (capacity * 7 < expected * 10) {
        if (capacity > SIZE_MAX / 64) return -1;
        capacity *= 2;
    }
    m->slots = calloc(capacity, 16);
    m->capacity = m->slots != NULL ? capacity : 0;
    m->used = 0;
    return m->slots != NULL ? 0 : -1;
}

void ef_map_free(ef_map *m) {
    free(m->slots);
    memset(m, 0, sizeof *m);
}

static int grow(ef_map *m) {
    ef_map bigger;
    if (ef_map_init(&bigger, m->capacity) != 0) return -1; /* room for the old capacity: at least twice as many slots */
    for (size_t i = 0; i < m->capacity; i++) {
        const uint64_t *from = m->slots + 2 * i;
        if (from[0] != 0) memcpy(slot_of(&bigger, from[0]), from, 16);
    }
    bigger.used = m->used;
    free(m->slots);
    *m = bigger;
    return 0;
}

int ef_map_put(ef_map *m, uint64_t key, uint64_t value, uint64_t *old) {
    if (key == 0) key = 1;
    uint64_t *slot = m->capacity != 0 ? slot_of(m, key) : NULL;
    if (slot != NULL && slot[0] == key) {
        if (old != NULL) *old = slot[1];
        slot[1] = value;
        return 1;
    }
    if ((m->used + 1) * 10 > m->capacity * 7) {
        if (grow(m) != 0) return -1;
        slot = slot_of(m, key);
    }
    slot[0] = key;
    slot[1] = value;
    m->used++;
    return 0;
}

void ef_map_prefetch(const ef_map *m, uint64_t key) {
    if (m->capacity != 0) __builtin_prefetch(m->slots + 2 * home_of(m, key == 0 ? 1 : key));
}

int ef_map_get(const ef_map *m, uint64_t key, uint64_t *value) {
    if (m->used == 0) return 0;
    const uint64_t *slot = slot_of(m, key != 0 ? key : 1);
    if (slot[0] == 0) return 0;
    *value = slot[1];
    return 1;
}

int ef_map_del(ef_map *m, uint64_t key, uint64_t *old) {
    if (m->used == 0) return 0;
    uint64_t *slot = slot_of(m, key != 0 ? key : 1);
    if (slot[0] == 0) return 0;
    if (old != NULL) *old = slot[1];
    const size_t mask = m->capacity - 1;
    size_t hole = (size_t)(slot - m->slots) / 2;
    for (size_t at = (hole + 1) & mask; m->slots[2 * at] != 0; at = (at + 1) & mask) {
        const size_t home = home_of(m, m->slots[2 * at]);
        if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its home lies behind the hole: it stays */
        memcpy(m->slots + 2 * hole, m->slots + 2 * at, 16);
        hole = at;
    }
    m->slots[2 * hole] = 0;
    m->used--;
    return 1;
}

int ef_map_next(const ef_map *m, size_t *cursor, uint64_t *key, uint64_t *value) {
    for (; *cursor < m->capacity; ++*cursor) {
        const uint64_t *slot = m->slots + 2 * *cursor;
        if (slot[0] == 0) continue;
        *key = slot[0];
        *value = slot[1];
        ++*cursor;
        return 1;
    }
    return 0;
}

/* 8 bytes with every ASCII upper-case letter folded. */
static uint64_t fold_word(uint64_t word) {
    const uint64_t low = word & 0x7f7f7f7f7f7f7f7fu;
    const uint64_t from_a = low + 0x3f3f3f3f3f3f3f3fu;  /* bit 7: byte >= 'A' */
    const uint64_t above_z = low + 0x2525252525252525u; /* bit 7: byte > 'Z' */
    return word | ((from_a & ~above_z & ~word & 0x8080808080808080u) >> 2);
}

static uint64_t hash_mix(uint64_t state, uint64_t word) {
    __extension__ typedef unsigned __int128 ef_u128;
    const ef_u128 product = (ef_u128)(state ^ word) * 0xA0761D6478BD642Fu;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t ef_hash64(uint64_t seed, const uint8_t *data, size_t len, int fold) {
    uint64_t state = hash_mix(seed ^ 0xE7037ED1A0B428DBu, (uint64_t)len);
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, data + at, len - at < 8 ? len - at : 8);
        state = hash_mix(state, fold != 0 ? fold_word(word) : word);
    }
    state = hash_mix(state, 0x8EBC6AF09C88C6E3u);
    return state != 0 ? state : 1;
}
