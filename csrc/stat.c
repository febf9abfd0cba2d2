/* stat.c - see stat.h. */
#include "stat.h"

#include <string.h>

#include "map.h"

_Static_assert(sizeof(ef_stat) == 64 + 8 * EF_STAT_GLOBALS, "ef_stat layout: 64-byte header, then the global cells");
_Static_assert(offsetof(ef_stat, globals) == 64, "ef_stat layout");
_Static_assert(sizeof(ef_stat_row) == EF_STAT_LABEL + 8 * EF_STAT_CELLS, "ef_stat_row layout");

/* Behind the rows: an open-addressing index from label hash to row number, at most half full. It belongs to the writer and
 * is only a shortcut: a row that a dying writer published without it is met again by its successor as a second row of the
 * same label, which readers add up anyway. */
static uint32_t index_capacity(uint32_t max_rows) {
    uint32_t capacity = 2;
    while (capacity < 0x80000000u && capacity / 2 < max_rows)
        capacity *= 2;
    return capacity;
}

static uint32_t *index_of(ef_stat *s) { return (uint32_t *)(void *)(s->rows + s->max_rows); }

size_t ef_stat_size(uint32_t max_rows) {
    if (max_rows == 0) max_rows = 1;
    const size_t size = sizeof(ef_stat) + (size_t)max_rows * sizeof(ef_stat_row) + (size_t)index_capacity(max_rows) * 4;
    return (size + 63) & ~(size_t)63;
}

int ef_stat_init(void *mem, size_t len, uint32_t max_rows) {
    if (max_rows == 0 || max_rows > EF_STAT_MAX_ROWS || len < ef_stat_size(max_rows)) return -1;
    memset(mem, 0, ef_stat_size(max_rows));
    ef_stat *s = mem;
    s->max_rows = max_rows;
    s->used_rows = 1; /* the overflow row, with an empty label */
    __atomic_store_n(&s->magic, EF_STAT_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int ef_stat_check(const void *mem, size_t len) {
    const ef_stat *s = mem;
    if (len < sizeof *s || __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != EF_STAT_MAGIC) return -1;
    if (s->max_rows == 0 || s->max_rows > EF_STAT_MAX_ROWS || len < ef_stat_size(s->max_rows)) return -1;
    const uint64_t used = __atomic_load_n(&s->used_rows, __ATOMIC_ACQUIRE);
    if (used < 1 || used > s->max_rows) return -1;
    const uint32_t *index = (const uint32_t *)(const void *)(s->rows + s->max_rows);
    for (uint32_t i = 0; i < index_capacity(s->max_rows); i++) {
        if (index[i] >= used) return -1; /* what a dying writer left must not lead its successor astray */
    }
    return 0;
}

ef_stat_row *ef_stat_get(ef_stat *s, const uint8_t *label, size_t len) {
    if (len > sizeof s->rows[0].label - 1) {
        len = sizeof s->rows[0].label - 1;
        while (len > 0 && (label[len] & 0xC0) == 0x80)
            len--; /* never half a UTF-8 character */
    }
    const uint64_t hash = ef_hash64(0, label, len, 0);
    uint32_t *index = index_of(s);
    const uint32_t mask = index_capacity(s->max_rows) - 1;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    for (; index[at] != 0; at = (at + 1) & mask) {
        ef_stat_row *row = s->rows + index[at];
        if (row->hash == hash && memcmp(row->label, label, len) == 0 && row->label[len] == 0) return row;
    }
    const uint64_t used = s->used_rows; /* only this worker writes it */
    if (used >= s->max_rows) return s->rows;
    ef_stat_row *row = s->rows + used;
    memset(row, 0, sizeof *row);
    row->hash = hash;
    memcpy(row->label, label, len);
    __atomic_store_n(&s->used_rows, used + 1, __ATOMIC_RELEASE);
    index[at] = (uint32_t)used;
    return row;
}

unsigned ef_stat_bucket(uint64_t microseconds) {
    static const uint32_t bounds[15] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                        50000, 100000, 250000, 500000, 1000000, 2500000, 10000000};
    unsigned bucket = 0;
    while (bucket < 15 && microseconds > bounds[bucket])
        bucket++;
    return bucket;
}
