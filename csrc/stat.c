/* stat.c - see stat.h. */
#include "stat.h"

#include <string.h>

#include "map.h"

_Static_assert(sizeof(ef_stat) == 64 + 8 * EF_STAT_GLOBALS, "ef_stat layout: 64-byte header, then the global cells");
_Static_assert(offsetof(ef_stat, globals) == 64, "ef_stat layout");
_Static_assert(sizeof(ef_stat_row) == EF_STAT_LABEL + 8 * EF_STAT_CELLS, "ef_stat_row layout");

enum { LONGEST = EF_STAT_LABEL - 8 - 1, DIGEST = 1 + 16 /* "~" and 16 hex digits */, LONGEST_TAIL = 64 };

/* Behind the rows: an open-addressing index from label hash to row number, at most half full. It belongs to the writer, which
 * makes it anew when it comes (ef_stat_adopt): a predecessor may have died between a row and its place in the index. */
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

/* Where a label is in the index, or the empty place where it would be. */
static uint32_t place_of(ef_stat *s, uint64_t hash, const uint8_t *label, size_t len) {
    const uint32_t *index = index_of(s);
    const uint32_t mask = index_capacity(s->max_rows) - 1;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    for (; index[at] != 0; at = (at + 1) & mask) {
        const ef_stat_row *row = s->rows + index[at];
        if (row->hash == hash && memcmp(row->label, label, len) == 0 && row->label[len] == 0) break;
    }
    return at;
}

/* Take a place out of the index; those behind it move up, so that every search still ends at its row. */
static void close_place(ef_stat *s, uint32_t hole) {
    uint32_t *index = index_of(s);
    const uint32_t mask = index_capacity(s->max_rows) - 1;
    for (uint32_t at = (hole + 1) & mask; index[at] != 0; at = (at + 1) & mask) {
        const uint32_t home = (uint32_t)(s->rows[index[at]].hash >> 32) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            index[hole] = index[at];
            hole = at;
        }
    }
    index[hole] = 0;
}

static void free_row(ef_stat *s, ef_stat_row *row) {
    __atomic_store_n(&row->label[0], 0, __ATOMIC_RELEASE); /* for readers it is gone before its numbers are */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memset(row, 0, sizeof *row);
    s->free_rows++;
    s->next_free = (uint64_t)(row - s->rows);
}

static ef_stat_row *take_free_row(ef_stat *s) {
    const uint64_t first = s->next_free > 0 && s->next_free < s->used_rows ? s->next_free : 1;
    uint64_t at = first;
    do {
        if (s->rows[at].hash == 0) {
            s->free_rows--;
            s->next_free = at + 1;
            return s->rows + at;
        }
        if (++at >= s->used_rows) at = 1;
    } while (at != first);
    s->free_rows = 0;
    return NULL;
}

void ef_stat_adopt(ef_stat *s) {
    uint32_t *index = index_of(s);
    memset(index, 0, (size_t)index_capacity(s->max_rows) * sizeof *index);
    s->free_rows = s->next_free = 0;
    for (uint32_t i = 1; i < s->used_rows; i++) {
        ef_stat_row *row = s->rows + i;
        row->label[sizeof row->label - 1] = 0;
        const size_t len = strlen((const char *)row->label);
        row->cells[EF_STAT_HOLDERS] = 0;
        row->hash = len > 0 ? ef_hash64(0, row->label, len, 0) : 0;
        if (len == 0) {
            free_row(s, row);
            continue;
        }
        const uint32_t at = place_of(s, row->hash, row->label, len);
        if (index[at] == 0) {
            index[at] = i;
            continue;
        }
        for (int c = 0; c < EF_STAT_HOLDERS; c++)
            ef_stat_add(&s->rows[index[at]].cells[c], row->cells[c]);
        free_row(s, row);
    }
}

size_t ef_stat_label(uint8_t *out, const uint8_t *label, size_t len) {
    static const char digits[] = "0123456789abcdef";
    if (len <= LONGEST) {
        if (len > 0) memcpy(out, label, len);
        return len;
    }
    size_t tail = 0;
    while (tail < LONGEST_TAIL && label[len - 1 - tail] != '\t')
        tail++;
    tail = tail < LONGEST_TAIL ? tail + 1 : 0; /* with its tab */
    size_t head = LONGEST - DIGEST - tail;
    while (head > 0 && (label[head] & 0xC0) == 0x80)
        head--; /* never half a UTF-8 character */
    uint64_t digest = ef_hash64(0, label, len, 0);
    memcpy(out, label, head);
    out[head] = '~';
    for (size_t i = 0; i < 16; i++, digest <<= 4)
        out[head + 1 + i] = (uint8_t)digits[digest >> 60];
    memcpy(out + head + DIGEST, label + len - tail, tail);
    return head + DIGEST + tail;
}

ef_stat_row *ef_stat_hold(ef_stat *s, const uint8_t *label, size_t len) {
    uint8_t shorter[LONGEST];
    if (len == 0) return s->rows;
    if (len > LONGEST) {
        len = ef_stat_label(shorter, label, len);
        label = shorter;
    }
    const uint64_t hash = ef_hash64(0, label, len, 0);
    uint32_t *index = index_of(s);
    const uint32_t at = place_of(s, hash, label, len);
    if (index[at] != 0) {
        ef_stat_row *row = s->rows + index[at];
        ef_stat_add(&row->cells[EF_STAT_HOLDERS], 1);
        return row;
    }
    ef_stat_row *row = s->free_rows > 0 ? take_free_row(s) : NULL;
    const int reused = row != NULL;
    if (!reused) {
        if (s->used_rows >= s->max_rows) return s->rows;
        row = s->rows + s->used_rows; /* only this worker writes it */
        memset(row, 0, sizeof *row);
    }
    row->hash = hash;
    row->cells[EF_STAT_HOLDERS] = 1;
    memcpy(row->label + 1, label + 1, len - 1);
    __atomic_store_n(&row->label[0], label[0], __ATOMIC_RELEASE); /* now readers see a row, and a whole one */
    if (!reused) __atomic_store_n(&s->used_rows, s->used_rows + 1, __ATOMIC_RELEASE);
    index[at] = (uint32_t)(row - s->rows);
    return row;
}

void ef_stat_release(ef_stat_row *row) {
    if (row->hash != 0 && row->cells[EF_STAT_HOLDERS] > 0) ef_stat_sub(&row->cells[EF_STAT_HOLDERS], 1);
}

int ef_stat_forget(ef_stat *s, const uint8_t *label, size_t len) {
    if (len == 0 || len > LONGEST) return 0;
    const uint32_t at = place_of(s, ef_hash64(0, label, len, 0), label, len);
    const uint32_t number = index_of(s)[at];
    if (number == 0 || s->rows[number].cells[EF_STAT_HOLDERS] > 0) return 0;
    close_place(s, at);
    free_row(s, s->rows + number);
    return 1;
}

unsigned ef_stat_bucket(uint64_t microseconds) {
    static const uint32_t bounds[15] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                        50000, 100000, 250000, 500000, 1000000, 2500000, 10000000};
    unsigned bucket = 0;
    while (bucket < 15 && microseconds > bounds[bucket])
        bucket++;
    return bucket;
}
