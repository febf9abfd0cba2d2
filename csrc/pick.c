/* pick.c - see pick.h. */
#include "pick.h"

#include <math.h>

#include "siphash.h"

int ef_pick_wrr(int64_t *current, const uint32_t *weight, uint32_t n) {
    int64_t total = 0;
    int best = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (weight[i] == 0) continue;
        current[i] += weight[i];
        total += weight[i];
        if (best < 0 || current[i] > current[best]) best = (int)i;
    }
    if (best >= 0) current[best] -= total;
    return best;
}

enum choice { HEALTHY_FRESH, FRESH, HEALTHY, ANY };

static int eligible(const ef_endpoint_load *load, uint32_t i, uint64_t tried, uint8_t heed, enum choice choice) {
    const int fresh = i >= 64 || (tried >> i & 1) == 0;
    const int healthy = (load[i].out & heed) == 0;
    return (fresh || choice == HEALTHY || choice == ANY) && (healthy || choice == FRESH || choice == ANY);
}

static uint32_t count_eligible(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed,
                               enum choice choice) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += (uint32_t)eligible(load, i, tried, heed, choice);
    return count;
}

/* The k-th eligible endpoint; k is below their count. */
static uint32_t find_eligible(const ef_endpoint_load *load, uint64_t tried, uint8_t heed, enum choice choice,
                              uint32_t k) {
    for (uint32_t i = 0;; i++) {
        if (eligible(load, i, tried, heed, choice) && k-- == 0) return i;
    }
}

static uint32_t scale(uint64_t rnd32, uint32_t n) { return (uint32_t)((rnd32 & 0xffffffffu) * n >> 32); }

/* Fewer requests in flight per weight; the first on a tie, which is the random one. */
static uint32_t less_loaded(const ef_endpoint_load *load, uint32_t a, uint32_t b) {
    const uint64_t cost_a = ((uint64_t)load[a].active + 1) * load[b].weight;
    const uint64_t cost_b = ((uint64_t)load[b].active + 1) * load[a].weight;
    return cost_b < cost_a ? b : a;
}

static enum choice relax(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, uint32_t *count) {
    if ((*count = count_eligible(load, n, tried, heed, HEALTHY_FRESH)) != 0) return HEALTHY_FRESH;
    const uint32_t healthy = count_eligible(load, n, tried, heed, HEALTHY);
    if (healthy != 0) { /* all of them were tried: rather one of them again than one known to be bad */
        *count = healthy;
        return HEALTHY;
    }
    if ((*count = count_eligible(load, n, tried, heed, FRESH)) != 0) return FRESH;
    *count = n;
    return ANY;
}

/* The finalizer of splitmix64: another random number out of one. */
static uint64_t remix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

int ef_pick_endpoint(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, uint64_t rnd) {
    if (n == 0) return -1;
    if (n == 1) return 0;
    uint32_t a = scale(rnd, n);
    uint32_t b = scale(rnd >> 32, n - 1);
    b += b >= a;
    if (eligible(load, a, tried, heed, HEALTHY_FRESH) && eligible(load, b, tried, heed, HEALTHY_FRESH)) {
        return (int)less_loaded(load, a, b);
    }
    rnd = remix(rnd); /* which values were refused depends on rnd: the second draw must not */
    uint32_t count;
    const enum choice choice = relax(load, n, tried, heed, &count);
    const uint32_t first = scale(rnd, count);
    a = find_eligible(load, tried, heed, choice, first);
    if (count == 1) return (int)a;
    uint32_t second = scale(rnd >> 32, count - 1);
    second += second >= first;
    b = find_eligible(load, tried, heed, choice, second);
    return (int)less_loaded(load, a, b);
}

/* What comes first in `relax`, as a number. */
static unsigned rank(const ef_endpoint_load *load, uint32_t i, uint64_t tried, uint8_t heed) {
    const unsigned stale = i < 64 && (tried >> i & 1) != 0;
    return (load[i].out & heed) != 0 ? 2 + stale : stale;
}

/* -ln of a number in (0, 1): the least of such numbers, each divided by its weight, is each one's as often as it weighs. */
static double cost(uint64_t draw) { return -log(((double)(draw >> 11) + 0.5) * 0x1p-53); }

/* One draw beats another. Equal weights need no logarithm: it is monotone. */
static int beats(uint64_t draw, uint32_t weight, uint64_t best, uint32_t best_weight) {
    if (weight == best_weight) return draw > best;
    if (weight == 0 || best_weight == 0) return best_weight == 0;
    return cost(draw) * best_weight < cost(best) * weight;
}

uint64_t ef_pick_key(const uint8_t *data, size_t len) {
    /* EF_SIPHASH_SEED bytes, and no secret: it only has to be everybody's */
    return ef_siphash13((const uint8_t *)"edgefast.hash/v1", data, len);
}

/* The same among endpoints that weigh the same and none of which is out or was tried, without a branch that depends on one of them;
 * -1: they are not like that. */
static int pick_hashed_alike(const ef_endpoint_load *load, const uint64_t *ids, uint32_t n, uint8_t heed,
                             uint64_t key) {
    const uint32_t weight = load[0].weight;
    uint32_t differ = 0, found = 0;
    uint64_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t draw = remix(ids[i] ^ key);
        differ |= (load[i].weight ^ weight) | (uint32_t)(load[i].out & heed);
        found = draw > best ? i : found;
        best = draw > best ? draw : best;
    }
    return differ != 0 ? -1 : (int)found;
}

int ef_pick_hashed(const ef_endpoint_load *load, const uint64_t *ids, uint32_t n, uint64_t tried, uint8_t heed,
                   uint64_t key) {
    int found = n != 0 && tried == 0 ? pick_hashed_alike(load, ids, n, heed, key) : -1;
    if (found >= 0) return found;
    unsigned best_rank = 4;
    uint64_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        const unsigned at = rank(load, i, tried, heed);
        if (at > best_rank) continue;
        const uint64_t draw = remix(ids[i] ^ key);
        if (at == best_rank && !beats(draw, load[i].weight, best, load[found].weight)) continue;
        found = (int)i;
        best_rank = at;
        best = draw;
    }
    return found;
}

/* The best rank that any endpoint has; as a rule the first one has it. */
static unsigned best_rank_of(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed) {
    unsigned best = 3;
    for (uint32_t i = 0; i < n && best != 0; i++) {
        const unsigned at = rank(load, i, tried, heed);
        if (at < best) best = at;
    }
    return best;
}

/* What all endpoints of a rank weigh; 0: nothing, then each weighs as much as any other. */
static uint64_t total_weight(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, unsigned best) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        if (rank(load, i, tried, heed) == best) total += load[i].weight;
    return total;
}

void ef_pick_begin_turns(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t random[2]) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += load[i].weight;
    for (uint32_t i = 0; i < n; i++)
        turns[i] = (int64_t)(ef_random(random) % (total != 0 ? total : n));
}

int ef_pick_turn(const ef_endpoint_load *load, int64_t *turns, uint32_t n, uint64_t tried, uint8_t heed) {
    const unsigned best = best_rank_of(load, n, tried, heed);
    int found = -1;
    for (uint32_t least = 0; found < 0 && least < 2; least++) { /* again where no weight is left: all are equal then */
        int64_t total = 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t weight = least != 0 ? 1 : load[i].weight;
            if (weight == 0 || rank(load, i, tried, heed) != best) continue;
            turns[i] += weight;
            total += weight;
            if (found < 0 || turns[i] > turns[found]) found = (int)i;
        }
        if (found >= 0) turns[found] -= total;
    }
    return found;
}

int ef_pick_random(const ef_endpoint_load *load, uint32_t n, uint64_t tried, uint8_t heed, uint64_t rnd) {
    if (n == 0) return -1;
    const unsigned best = best_rank_of(load, n, tried, heed);
    const uint64_t total = total_weight(load, n, tried, heed, best);
    uint64_t left = total != 0 ? rnd % total : 0;
    uint32_t count = 0;
    int found = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (rank(load, i, tried, heed) != best) continue;
        if (total == 0) { /* each of those so far with the same chance */
            rnd = remix(rnd);
            if (rnd % ++count == 0) found = (int)i;
        } else if (left < load[i].weight) {
            return (int)i;
        } else {
            left -= load[i].weight;
        }
    }
    return found;
}

uint64_t ef_random(uint64_t state[2]) {
    const uint64_t s0 = state[0];
    uint64_t s1 = state[1];
    const uint64_t result = s0 + s1;
    s1 ^= s0;
    state[0] = (s0 << 24 | s0 >> 40) ^ s1 ^ s1 << 16;
    state[1] = s1 << 37 | s1 >> 27;
    return result;
}
