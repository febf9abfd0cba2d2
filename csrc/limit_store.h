/* limit_store.h - which counters of rate limits may take room from which: the store that workers share, made of three segments.
 *
 *   +--------+--------------------------------+--------------------------------------+---------------------------+
 *   | header | names: a segment (limit.h)      | values: a segment                    | tokens: limit_local.h     |
 *   +--------+--------------------------------+--------------------------------------+---------------------------+
 *            | a counter for each limit that  | a counter for each value (of a       | token buckets of local    |
 *            | has one; for each other limit, | header, an address) that a limit     | limits                    |
 *            | how many values it has counted | with distinct values has seen        |                           |
 *            | in this window                 |                                      |                           |
 *
 * A counter's key is the name of its limit, and then its values, if the limit has any. Names come from the configuration and
 * nowhere else: no client makes one, so no client can fill `names`, and a limit without values always counts.
 *
 * `values` is shared by what limits with values there are in the table. Each may have its share of them begin in a window
 * and no more: half of all slots, divided by the number of these limits; half of that for sliding windows, whose counters live
 * for two. A value counts against the share when the first of its requests is admitted in a window, so all live counters of a
 * limit were counted in the present window (or the one before). However many values come for one limit, those of others find
 * their room: the other half of the slots keeps buckets from running over by chance, and bears limits that were added since.
 * A value without room is refused one (EF_STORE_SHARE); who has begun goes on to the end of the window.
 *
 * A store goes on from one release to the next: whatever changes its layout, or what its bytes mean, here or in limit.h, needs
 * another EF_STORE_MAGIC, by which the next process knows that it cannot use it. One with other room than the release would
 * make is not used either (ef_store_holds): it would go on with that room from process to process, for ever.
 *
 * Death anywhere: what limit.h says; a value that was counted against the share and never began is one less in this window.
 */
#ifndef EF_LIMIT_STORE_H
#define EF_LIMIT_STORE_H
#include "limit_local.h"
#define EF_STORE_MAGIC  0x324d5245u
#define EF_STORE_NAMES  4370u /* buckets: 262,200 limits, of the configuration; 54 MB, taken as they are used */
#define EF_STORE_VALUES 6000u /* buckets: 180,000 live values are half of the slots. 75 MB if all are there */
#define EF_STORE_TOKENS 3u   /* sets of tokens for as many buckets of values: 2,000 sets, 120,000 token buckets, 2 MB */
#define EF_STORE_FEW    4u   /* limits that the room is divided by before anybody has said how many there are */
#define EF_STORE_FULL   (-1) /* no slot, or a unit or time out of range */
#define EF_STORE_SHARE  (-2) /* the limit's share of values is used up in this window */

typedef struct ef_store ef_store;

size_t ef_store_size(uint32_t names, uint32_t values);
/* Make a store in zeroed memory, aligned to 64 bytes. epoch_ms: ef_limit_set_epoch. 0, or -1: too short, or too large. */
int ef_store_init(void *mem, size_t len, uint32_t names, uint32_t values, const uint8_t seed[EF_LIMIT_SEED],
                  uint64_t epoch_ms);
int ef_store_check(const void *mem, size_t len);                        /* 0 when it is a store, else -1 */
int ef_store_holds(const ef_store *s, uint32_t names, uint32_t values); /* 1 when it was made with so many buckets */
uint64_t ef_store_now(const ef_store *s, uint64_t boot_ms);
/* Say how many limits have values, whenever that changes. Windows that have begun go on by what was said before. */
void ef_store_set_limits(ef_store *s, uint32_t limits);
/* Values that one limit may begin in a window. At least 1. */
uint32_t ef_store_share(const ef_store *s, int sliding);
/* ef_limit_take of the counter `key`, whose limit is called by its first name_len bytes. 0, or one of the two above. */
int ef_store_take(ef_store *s, const uint8_t *key, size_t key_len, size_t name_len, uint32_t n, uint32_t limit,
                  uint32_t unit, int sliding, uint64_t now_ms, ef_limit_result *out);
/* The segment of token buckets. */
ef_limit *ef_store_tokens(ef_store *s);
/* ef_limit_next over names and values. *is_name: the entry is of `names`. */
int ef_store_next(const ef_store *s, uint64_t *cursor, uint64_t now_ms, ef_limit_entry *out, int *is_name);
#endif
