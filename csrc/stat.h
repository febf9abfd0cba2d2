/* stat.h - counters in shared memory: one segment per worker, 8-byte cells written by that worker alone with relaxed atomic stores,
 * read by anyone (the agent) without locks. Self-describing: a row carries its label, so that a reader needs no index and a
 * successor of a dead worker goes on in the same segment.
 *
 *   +---------+--------------------+--------------------------------------------+-----------------------+
 *   | header  | global cells[192]  | rows[max_rows]: hash, label[184], cells[64]| index, the writer's   |
 *   +---------+--------------------+--------------------------------------------+-----------------------+
 * Row 0 is the overflow row, with an empty label: it takes everything once max_rows are in use (bounded series whatever
 * clients and configs do). Readers look at rows 0 .. used_rows, skip others without label, which are free, add up rows of equal
 * label, and read a label again after its cells: a row that has another one by then was given away in between.
 *
 * A row is held by whoever keeps a pointer to it, and counts its holders in its last cell. One that nobody holds keeps its
 * numbers, until it is told to forget them (ef_stat_forget): whose numbers are old, the reader knows.
 */
#ifndef EF_STAT_H
#define EF_STAT_H
#include <stddef.h>
#include <stdint.h>
#define EF_STAT_MAGIC    0x31544645u
#define EF_STAT_MAX_ROWS (1u << 20) /* 738 MB: a ceiling for arithmetic, not a recommendation */
#define EF_STAT_GLOBALS  192
#define EF_STAT_LABEL    192
#define EF_STAT_CELLS    64
#define EF_STAT_HOLDERS  (EF_STAT_CELLS - 1) /* the cell that counts who keeps a pointer to the row */
typedef struct ef_stat_row {
    uint64_t hash;
    uint8_t label[EF_STAT_LABEL - 8];
    uint64_t cells[EF_STAT_CELLS];
} ef_stat_row;
typedef struct ef_stat {
    uint32_t magic, max_rows;
    uint64_t used_rows;
    uint64_t free_rows; /* of these */
    uint64_t next_free; /* where to look for one first */
    uint64_t reserved_[4];
    uint64_t globals[EF_STAT_GLOBALS];
    ef_stat_row rows[];
} ef_stat;
size_t ef_stat_size(uint32_t max_rows);
int ef_stat_init(void *mem, size_t len, uint32_t max_rows); /* fresh segment; 0 or -1 (too short) */
int ef_stat_check(const void *mem, size_t len);             /* 0 when it is a segment */
/* What a writer does first: nobody holds a row any more, a second row of one label is added to the first. O(max_rows). */
void ef_stat_adopt(ef_stat *s);
/* Find or make the row of a label and hold it; never NULL: the overflow row when full. A label of more than 183 bytes is cut at a
 * character and goes on with "~", a digest of the whole and what comes after its last tab, if that is short. Constant time, but
 * for the search for a free row: not for the request path, keep the pointer. */
ef_stat_row *ef_stat_hold(ef_stat *s, const uint8_t *label, size_t len);
/* Write a label as it stands in a row, with room for EF_STAT_LABEL bytes; returns its length. What readers look rows up by. */
size_t ef_stat_label(uint8_t *out, const uint8_t *label, size_t len);
void ef_stat_release(ef_stat_row *row);
/* Free the row of a label as it is written in a row; 1, or 0 when there is none or somebody holds it. */
int ef_stat_forget(ef_stat *s, const uint8_t *label, size_t len);
static inline void ef_stat_add(uint64_t *cell, uint64_t n) {
    __atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}
static inline void ef_stat_sub(uint64_t *cell, uint64_t n) {
    __atomic_store_n(cell, __atomic_load_n(cell, __ATOMIC_RELAXED) - n, __ATOMIC_RELAXED);
}
/* Latency bucket of a duration in microseconds: 0..15, upper bounds 100us 250us 500us 1 2.5 5 10 25 50 100 250 500 ms 1 2.5 10 s, +Inf. */
unsigned ef_stat_bucket(uint64_t microseconds);
#endif
