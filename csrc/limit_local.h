/* limit_local.h - limits of one machine: token buckets, and requests in progress, in segments of limit.h without names.
 *
 * Token buckets (ef_bucket_*). A key has one slot. Its state is the time at which the bucket is full again (GCRA's theoretical
 * arrival time), in 2^-32 seconds, plus one second: so the end of the slot, its high half, has passed when the bucket is
 * full, and a full bucket needs no slot. A request moves that time on by one interval, if it is then at most burst intervals
 * away: nginx' limit_req with nodelay and a burst of burst - 1.
 *   The low bits 2 to 9 of a tag are those of the limit's name. Where all 60 slots of a set are in use, the bucket that is
 * full first, of the limit that has most of them in this set, is forgotten: clients of one limit do not push out those of others,
 * and a client that is refused keeps its bucket longer than clients that sent one request. Every request is counted, and
 * memory is bounded.
 *
 * Requests in progress (ef_held_*). A key has a slot for each worker, which that worker alone writes: bits 2 to 11 of the tag
 * are the worker's seat. The slot's state is a count, with an end that never comes while the count is not 0. A worker that takes one
 * adds it first, adds all slots of the key, and takes it back when the sum is too large: the limit is never exceeded. Slots of
 * eight seats are in one set, those of the next eight in another one. Requests of a dead worker are gone when its seat is
 * forgotten. A set without a free slot refuses: nothing is forgotten that is in progress.
 *
 * Insertion is that of limit.h (limit_slots.c): lock-free, and safe against death at any instruction. States may come back here,
 * which they never do in windows: a swap then succeeds on an equal state, which is as right as the first one.
 * Cost: that of limit.h; a request in progress reads up to 60 slots for eight workers.
 */
#ifndef EF_LIMIT_LOCAL_H
#define EF_LIMIT_LOCAL_H
#include "limit.h"
#define EF_LOCAL_SEATS   1024u
#define EF_LOCAL_SET     8u    /* seats whose slots are in one set */
#define EF_LOCAL_BUCKETS 2048u /* sets of requests in progress: 122,880 slots, 2 MB, taken as they are used */
#define EF_BUCKET_MAX    0x4000000000000000u /* of interval * burst, in 2^-32 seconds: 34 years */

/* Where a request in progress is counted. */
typedef struct ef_held {
    void *slot; /* NULL: nothing is held */
    uint64_t tag;
    uint32_t sum; /* requests of the key in progress, with this one; when refused, without */
} ef_held;

size_t ef_local_size(uint32_t buckets);
/* Make a segment in zeroed memory, aligned to 64 bytes. 0, or -1: too short, no buckets or too many. */
int ef_local_init(void *mem, size_t len, uint32_t buckets, const uint8_t seed[EF_LIMIT_SEED]);
int ef_local_check(const void *mem, size_t len); /* 0 when it is a segment, else -1 */

/* Time in 2^-32 seconds, of microseconds. */
static inline uint64_t ef_bucket_time(uint64_t us) { return ((us / 1000000) << 32) + ((us % 1000000) << 32) / 1000000; }
/* Take a token of the bucket `key`, whose limit is called by its first name_len bytes. interval: time of one token; burst: tokens of
 * a full bucket, at least 1. out: admitted 0 or 1; remaining tokens; reset_ms: refused, until there is one, else until the bucket is
 * full, at least 1. 0, or -1: numbers out of range. */
int ef_bucket_take(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval, uint32_t burst,
                   uint64_t now, ef_limit_result *out);
/* Put a token back: the request that took it was refused by another limit. A bucket that was forgotten stays so. */
void ef_bucket_give_back(ef_limit *s, const uint8_t *key, size_t key_len, size_t name_len, uint64_t interval);

/* One more request of `key` in progress at this seat of `seats`, if all seats then have at most `most`. 1; 0: as many are in progress;
 * -1: no room, or numbers out of range. out->slot is NULL unless 1. */
int ef_held_take(ef_limit *s, const uint8_t *key, size_t key_len, uint32_t seat, uint32_t seats, uint32_t most,
                 uint32_t now_s, ef_held *out);
void ef_held_release(ef_held *held, uint32_t now_s);
/* Forget all requests in progress of a seat, whose worker has ended. */
void ef_held_forget(ef_limit *s, uint32_t seat, uint32_t now_s);
#endif
