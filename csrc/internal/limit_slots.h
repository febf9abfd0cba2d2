/* limit_slots.h - find and insert slots of a bucket (limit_slots.c), and their names (limit_list.c). Private to csrc/limit*.c. */
#ifndef EF_LIMIT_SLOTS_H
#define EF_LIMIT_SLOTS_H
#include "limit_layout.h"

/* Where a key lives. */
typedef struct ef_limit_place {
    ef_limit_bucket *bucket;
    ef_limit_name *names; /* of the bucket's slots; NULL: a segment without names */
    uint64_t tag;         /* a multiple of 4, never 0 */
    uint32_t home;        /* slot that the search starts at */
} ef_limit_place;

ef_limit_place ef_limit_locate(const ef_limit *s, const uint8_t *key, size_t len);
ef_limit_place ef_limit_place_of(const ef_limit *s, uint64_t tag);

/* The slot that has this tag (LASTS aside), or NULL. Its two words were read one after the other: only a swap proves them. */
ef_limit_slot *ef_limit_find(const ef_limit_place *at, uint64_t tag, ef_limit_slot *seen);

/* See to it that the tag, which was not found, gets a slot: 0 look again, -1 no slot is empty or has ended. */
int ef_limit_insert(const ef_limit_place *at, uint64_t tag, uint32_t now_s);

/* Make room in a set without an empty or ended slot: forget the counter that ends first, of the group that has most of them. A
 * group is the tags with the same bits `group`, of 2 to 9. The floor stays: the counter starts at 0 if its key comes again. */
void ef_limit_displace(const ef_limit_place *at, uint64_t group);

/* Write down what a counter is called, before it counts anything. */
void ef_limit_put_name(const ef_limit_place *at, const ef_limit_slot *slot, const uint8_t *key, size_t len,
                       uint32_t unit);
#endif
