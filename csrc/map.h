/* map.h - open-addressing map from a 64-bit key to a 64-bit value, for a worker's indexes (hostnames, cluster names).
 * Power of two, linear probing, backward-shift deletion, grows at 70 %. Key 0 is reserved (hashes map 0 to 1). Memory comes from
 * malloc: this is no leaf of the request path; lookups never allocate. 16 bytes a slot. */
#ifndef EF_MAP_H
#define EF_MAP_H
#include <stddef.h>
#include <stdint.h>
typedef struct ef_map {
    uint64_t *slots;
    size_t capacity, used;
} ef_map;
int ef_map_init(ef_map *m, size_t expected);
void ef_map_free(ef_map *m);
int ef_map_put(ef_map *m, uint64_t key, uint64_t value, uint64_t *old); /* 1 replaced (*old set), 0 new, -1 no memory */
int ef_map_get(const ef_map *m, uint64_t key, uint64_t *value);         /* 1 found, 0 not */
int ef_map_del(ef_map *m, uint64_t key, uint64_t *old);                 /* 1 removed, 0 not there */
void ef_map_prefetch(const ef_map *m,
                     uint64_t key); /* bring a key's slot near, for an ef_map_get that comes a little later */
int ef_map_next(const ef_map *m, size_t *cursor, uint64_t *key, uint64_t *value); /* 1 more, 0 end */
/* 64-bit hash of (seed, bytes); ASCII upper case folded when fold != 0. Never 0. Not cryptographic: where a stranger chooses
 * the bytes that are put in, seed it with a per-process random number and compare the bytes themselves after a hit. */
uint64_t ef_hash64(uint64_t seed, const uint8_t *data, size_t len, int fold);
#endif
