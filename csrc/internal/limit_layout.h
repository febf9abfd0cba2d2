/* limit_layout.h - what the bytes of a counter segment are, and the only ways to touch them. Private to csrc/limit*.c.
 *
 * A slot's two words are one value: read apart, changed together by swap. `state` is the end in its high half, the count
 * in its low half.
 *   tag 0, state 0           never used
 *   tag 0, state s > 0       emptied; s is the stamp: an even version of the bucket
 *   tag t, a multiple of 4   a counter, its last window fixed; or a blank
 *   tag t + LASTS            the same counter, its last window sliding: the end is a window later
 *   tag t + SECOND           what the counter admitted in the window before, when that matters
 */
#ifndef EF_LIMIT_LAYOUT_H
#define EF_LIMIT_LAYOUT_H
#include "../limit.h"

__extension__ typedef unsigned __int128 ef_u128;

typedef union ef_limit_slot {
    ef_u128 whole;
    struct {
        uint64_t tag, state;
    };
} ef_limit_slot;

/* One cache line, then the slots. pending.tag: the tag that is to be inserted, 0 none. pending.state: version << 6 | slot;
 * the version is odd while something is pending. */
typedef struct ef_limit_bucket {
    ef_limit_slot pending;
    uint64_t floor; /* seconds: the latest end that was evicted here */
    uint64_t reserved_[5];
    ef_limit_slot slots[EF_LIMIT_SLOTS];
} ef_limit_bucket;

/* Words, because several may write at once: `check` says whether they belong together, and to which tag. */
typedef struct ef_limit_name {
    uint64_t check;
    uint64_t meta; /* unit | key_len << 32 | kept << 48 */
    uint64_t reserved_;
    uint64_t words[EF_LIMIT_NAME / 8];
} ef_limit_name;

struct ef_limit {
    uint32_t magic, buckets;
    uint8_t seed[EF_LIMIT_SEED];
    uint64_t epoch_ms;
    uint8_t reserved_[992]; /* a bucket never lies in two pages */
    ef_limit_bucket bucket[];
};

_Static_assert(sizeof(ef_limit_slot) == 16 && _Alignof(ef_limit_slot) == 16, "a slot is what one swap changes");
_Static_assert(sizeof(ef_limit_bucket) == 1024, "ef_limit_bucket layout");
_Static_assert(offsetof(ef_limit_bucket, slots) == 64, "the header has a cache line of its own");
_Static_assert(EF_LIMIT_SLOTS <= 64, "a slot's number has 6 bits");
_Static_assert(sizeof(ef_limit_name) == 192, "ef_limit_name layout");
_Static_assert(offsetof(struct ef_limit, bucket) == 1024, "ef_limit layout");

#define EF_LIMIT_SECOND 1u
#define EF_LIMIT_LASTS  2u

/* The end of the time that is handled: ends have 32 bits. */
#define EF_LIMIT_TIME_END 0xffffffffu

#ifndef EF_LIMIT_STEP /* a test stops or kills a worker here: right before it looks at, or changes, what is shared */
#define EF_LIMIT_STEP(at) ((void)(at))
#endif

static inline uint64_t ef_limit_load(const uint64_t *word) {
    EF_LIMIT_STEP(word);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* cmpxchg16b: in every x86-64 processor since 2006. clang forgets it where it inlines. */
#if defined(__x86_64__)
#define EF_LIMIT_SWAPS __attribute__((target("cx16"), noinline, unused))
#else
#define EF_LIMIT_SWAPS __attribute__((unused))
#endif

/* 1: it was `seen`, and is `next` now. */
EF_LIMIT_SWAPS static int ef_limit_swap(ef_limit_slot *at, ef_limit_slot seen, ef_limit_slot next) {
    EF_LIMIT_STEP(at);
    return __sync_bool_compare_and_swap(&at->whole, seen.whole, next.whole);
}

static inline ef_limit_slot ef_limit_pair(uint64_t tag, uint64_t state) {
    ef_limit_slot slot;
    slot.tag = tag;
    slot.state = state;
    return slot;
}

static inline uint32_t ef_limit_end(uint64_t state) { return (uint32_t)(state >> 32); }
static inline uint32_t ef_limit_count(uint64_t state) { return (uint32_t)state; }
static inline uint64_t ef_limit_state(uint64_t end, uint32_t count) { return end << 32 | count; }

static inline ef_limit_name *ef_limit_names(const ef_limit *s) {
    return (ef_limit_name *)(uintptr_t)(s->bucket + s->buckets);
}
#endif
