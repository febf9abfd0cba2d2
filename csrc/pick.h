/* pick.h - choosing: smooth weighted round robin over a rule's backends; over a cluster's endpoints least-request of two, by a key,
 * in turn, or by chance. Pure arithmetic on caller's arrays. */
#ifndef EF_PICK_H
#define EF_PICK_H
#include <stddef.h>
#include <stdint.h>
/* Smooth weighted round robin (the nginx algorithm): current[i] += weight[i]; pick the largest; subtract the total. -1: total is 0.*/
int ef_pick_wrr(int64_t *current, const uint32_t *weight, uint32_t n);
typedef struct ef_endpoint_load {
    uint32_t active;
    uint32_t weight;
    uint8_t out; /* bits: why it is left out. Who chooses says which of them it heeds */
    uint8_t reserved_[7];
} ef_endpoint_load;
/* Power of two choices among endpoints that are not out (all, when every one is: panic) and not in the `tried` bit set (first 64);
 * out is one for any of the bits of `heed`; rnd is a fresh 64-bit random. Returns the index, -1 when n == 0. Weighted: compares active+1 over weight (weight 0 comes last).
 * When all healthy ones were tried, one of them again rather than one that is out; when all are out, an untried one if any.
 * Cost: constant while few are out or tried; else one pass over the array. */
int ef_pick_endpoint(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, uint64_t rnd);
/* Rendezvous (Thaler, Ravishankar 1998): of the same eligible endpoints as above the one that a key has drawn, `ids` being what
 * endpoints are told apart by wherever they stand: the same in every process. A key moves only when its endpoint goes, or to one that
 * comes; past its endpoint it goes where it would go without it. Weighted: as many keys per weight (weight 0 comes last).
 * Returns the index, -1 when n == 0. Cost: one pass over the array; three times as much where weights differ. */
int ef_pick_hashed(const ef_endpoint_load *load, const uint64_t *ids, uint32_t n, uint64_t tried, uint8_t heed,
                   uint64_t key);
/* What requests and endpoints are hashed to for it: the same in every process, on every machine, in every release. */
uint64_t ef_pick_key(const uint8_t *data, size_t len);
/* Smooth weighted round robin over the same eligible endpoints: in `turns` each one's place, which others' eligibility does not
 * change, so that one that comes back has nothing to catch up with (weight 0 comes last). Returns the index, -1 when n == 0.
 * Cost: two passes over the array at most. */
int ef_pick_turn(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t tried, uint8_t heed);
/* Places to begin with, by chance: many workers do not begin with one endpoint. Anew where a weight or the set has changed. */
void ef_pick_begin_turns(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t random[2]);
/* One of the same eligible endpoints by chance, as often as it weighs (weight 0 comes last); rnd is a fresh 64-bit random.
 * Returns the index, -1 when n == 0. Cost: two passes over the array. */
int ef_pick_random(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, uint64_t rnd);
uint64_t ef_random(uint64_t state[2]); /* xoroshiro128+ */
#endif
