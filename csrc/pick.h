/* pick.h - choosing: smooth weighted round robin over a rule's backends; over a cluster's endpoints least-request of two, or by a key.
 * Pure arithmetic on caller's arrays. */
#ifndef EF_PICK_H
#define EF_PICK_H
#include <stddef.h>
#include <stdint.h>
/* Smooth weighted round robin (the nginx algorithm): current[i] += weight[i]; pick the largest; subtract the total. -1: total is 0.*/
int ef_pick_wrr(int64_t *current, const uint32_t *weight, uint32_t n);
typedef struct ef_endpoint_load {
    uint32_t active;
    uint32_t weight;
    uint8_t ejected;
    uint8_t reserved_[7];
} ef_endpoint_load;
/* Power of two choices among endpoints that are not ejected (all, when every one is: panic) and not in the `tried` bit set (first 64);
 * rnd is a fresh 64-bit random. Returns the index, -1 when n == 0. Weighted: compares active+1 over weight (weight 0 comes last).
 * When all healthy ones were tried, one of them again rather than an ejected one; when all are ejected, an untried one if any.
 * Cost: constant while few are ejected or tried; else one pass over the array. */
int ef_pick_endpoint(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint64_t rnd);
/* Rendezvous (Thaler, Ravishankar 1998): of the same eligible endpoints as above the one that a key has drawn, `ids` being what
 * endpoints are told apart by wherever they stand: the same in every process. A key moves only when its endpoint goes, or to one that
 * comes; past its endpoint it goes where it would go without it. Weighted: as many keys per weight (weight 0 comes last).
 * Returns the index, -1 when n == 0. Cost: one pass over the array; three times as much where weights differ. */
int ef_pick_hashed(const ef_endpoint_load *load, const uint64_t *ids, uint32_t n, uint64_t tried, uint64_t key);
uint64_t ef_random(uint64_t state[2]); /* xoroshiro128+ */
#endif
