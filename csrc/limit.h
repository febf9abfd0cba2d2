/* limit.h - counters of rate limits in memory that all workers of a machine share: exact, bounded, nearly free.
 *
 *   +--------+---------------------------------------------------+-------------------------------------+
 *   | header | buckets[n], 1 KiB each                            | names[60 n], 192 bytes each         |
 *   +--------+---------------------------------------------------+-------------------------------------+
 *     bucket: | pending insertion, version, floor | 60 slots of 16 bytes: key's tag | end, count |
 *
 * A key is hashed once (SipHash-1-3 with the segment's seed) to a bucket, to the slot its search starts at, and to a tag
 * of 62 bits. Keys are told apart by the tag alone: with the default size full, two of all live counters share one
 * with a chance of 1 in 2^27 (then they count together). A search ends at the first slot that was never used.
 *
 * Everything changes by compare-and-swap of 16 bytes; nobody ever waits for anybody. A worker that is killed at any
 * instruction leaves at most: an empty slot (taken by the next insertion), an announced insertion (completed by the next
 * one in that bucket), a counter without a name, or admissions that were counted and never used. It never blocks others
 * and nothing is admitted twice.
 *
 * Time. A segment has a clock of its own (ef_limit_now): CLOCK_BOOTTIME, which all processes of a machine share and nobody can
 * set, moved once so that it was the wall clock's when the segment was made. The wall clock may be set ahead or back
 * afterwards; no window notices. An older time is then never a step, only one that was read earlier.
 *
 * Windows. A fixed counter is one slot: the end of its window (seconds since 1970, u32) and what was admitted in it. It
 * only moves forward: a time that was read in an older window counts in the stored one. A sliding counter has a second slot
 * with what was admitted in the window before; both keep an end that lets nobody evict them while they matter.
 * A slot may be evicted when its end has passed by the clock of the one who evicts; the bucket's floor, the latest end
 * that was ever evicted there, is raised first, and no counter that comes later begins before it. So a (key, window)
 * never admits more than its limit, however long a worker was held up after it had read the time.
 *
 * Why nothing goes wrong (all of it is walked through at random, with deaths, by tests/test_limit_schedules.c)
 *  1. No 16-byte value ever comes back to a place it was in, so a swap that succeeds saw nothing change in between:
 *     - the header's version grows with every change of the header: odd while an insertion is announced;
 *     - (window, count) of a key only grows, while in a slot and from one slot to its next (the floor);
 *     - an emptied slot is stamped with the version of an idle header that was read after the slot's last content. The
 *       insertion that had put this content there was over by then, so the stamp is larger than any before it there.
 *  2. A key has at most one slot. Only an announced insertion turns an empty slot into a counter. Announcing is a swap
 *     of the header from the idle version that was read before the bucket was searched in vain: so nothing was inserted
 *     since. Whoever meets an announcement completes it. A latecomer expects a stamp that is gone; to read that stamp he
 *     has to find the same announcement before and after.
 *  3. A new slot is blank: count 0, and an end one second after the time or the floor, whichever is later. That end
 *     counts as a time that was read, so rule 1 holds, and keeps the slot from being evicted at once.
 *  4. A verdict is given only after the swap of the counter's slot (with itself, when nothing was admitted).
 *  5. A sliding counter enters window w only after (end of w, count of w - 1) stands in its second slot, which only grows;
 *     the swap of the first then proves that this count was the last. Who finds a second slot ahead of the first
 *     knows that w has begun for somebody and goes along.
 *
 * Cost (bench/bench_limit.c): 45 ns for a counter whose 2 cache lines are near, half of that for the hash of a key of 100
 * bytes; 250 ns for a new one; what memory takes comes on top. Memory: 209 bytes a slot, taken as pages are touched.
 * A bucket whose 60 slots all belong to windows that have not ended has no room. With random keys and some thousand buckets
 * the first is refused when 60 % of all slots are taken; of all that come up to 67 %, not 1 in 1000 (tests/test_limit_shares.c).
 * Leaf functions: no malloc, no system calls. A key is used with one unit. When it changes between fixed and sliding, its
 * count goes on; only the window before the change may weigh nothing.
 */
#ifndef EF_LIMIT_H
#define EF_LIMIT_H
#include <stddef.h>
#include <stdint.h>
#define EF_LIMIT_MAGIC       0x314c4645u
#define EF_LIMIT_SEED        16          /* bytes of chance, a new one for each segment */
#define EF_LIMIT_SLOTS       60u         /* in a bucket: what is left of 1 KiB beside a cache line of header */
#define EF_LIMIT_MAX_BUCKETS (1u << 20)  /* 12 GiB: a ceiling for arithmetic, not a recommendation */
#define EF_LIMIT_NAME        168         /* bytes of a key that are kept for listing */
#define EF_LIMIT_MAX_UNIT    0x7fffffffu /* seconds; stored ends have 32 bits: the year 2106 */

typedef struct ef_limit ef_limit;
typedef struct ef_limit_result {
    uint32_t admitted;  /* of n */
    uint32_t remaining; /* that would still be admitted now */
    uint64_t reset_ms;  /* to the window's end; sliding with nothing remaining: until one more could pass. At least 1 */
    uint64_t window;    /* its start, seconds since 1970: what was admitted belongs to it */
} ef_limit_result;
/* A bound on how many counters begin a window together: what their common name, the first name_len bytes of their keys, has
 * admitted in `names`, another segment, when each of them takes one. See limit_store.h. */
typedef struct ef_limit_bound {
    ef_limit *names;
    size_t name_len;
    uint32_t most;
} ef_limit_bound;
typedef struct ef_limit_entry {
    uint64_t tag;      /* tells live counters apart */
    uint64_t window;   /* start of the stored window; meaningless when unit is 0 */
    uint32_t unit;     /* seconds; 0: the name is not known, because a worker died before it was written */
    uint32_t sliding;  /* 1: the window weighs on the next one */
    uint32_t current;  /* admitted in the window of now */
    uint32_t previous; /* sliding: admitted in the window before */
    uint32_t key_len;  /* of the whole key, at most 65535 */
    uint32_t kept;     /* bytes of it in key[] */
    uint8_t key[EF_LIMIT_NAME];
} ef_limit_entry;

size_t ef_limit_size(uint32_t buckets);
/* Make a segment in zeroed memory (a fresh memfd), aligned to 64 bytes. Only the header is written, so that the rest
 * takes no memory until used. 0, or -1: too short, no buckets or too many. */
int ef_limit_init(void *mem, size_t len, uint32_t buckets, const uint8_t seed[EF_LIMIT_SEED]);
int ef_limit_check(const void *mem, size_t len); /* 0 when it is a segment, else -1 */
/* Say once, before anybody counts, what to add to CLOCK_BOOTTIME, in milliseconds. 0 until then. */
void ef_limit_set_epoch(ef_limit *s, uint64_t epoch_ms);
/* The segment's time when CLOCK_BOOTTIME reads boot_ms. */
uint64_t ef_limit_now(const ef_limit *s, uint64_t boot_ms);
/* Admit up to n requests of a counter, limit in each window of unit seconds. now_ms: ef_limit_now.
 * Nothing admitted: nothing changed (n = 0 only reads). 0, or -1: no room, or unit or time out of range. */
int ef_limit_take(ef_limit *s, const uint8_t *key, size_t key_len, uint32_t n, uint32_t limit, uint32_t unit,
                  int sliding, uint64_t now_ms, ef_limit_result *out);
/* The same, bounded: one that nothing is admitted of in its window yet takes one of its name first. -2: there is none left
 * until out->reset_ms are over; out->admitted is 0. A worker that is killed in between has taken one for nobody. */
int ef_limit_take_bounded(ef_limit *s, const ef_limit_bound *bound, const uint8_t *key, size_t key_len, uint32_t n,
                          uint32_t limit, uint32_t unit, int sliding, uint64_t now_ms, ef_limit_result *out);
/* Walk the counters that are live at now_ms; *cursor starts at 0. 1 more, 0 end. The segment may be mapped read-only.
 * A counter that comes or goes during the walk may be missed. */
int ef_limit_next(const ef_limit *s, uint64_t *cursor, uint64_t now_ms, ef_limit_entry *out);
#endif
