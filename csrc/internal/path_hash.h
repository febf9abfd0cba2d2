/* path_hash.h - the rolling hash of request paths: one pass gives the hash of every '/' boundary. Private to table and route.
 *
 * Idea: 64x64->128 multiplication folds in up to 8 bytes at a time; a word never crosses a '/', so the state at the end
 * of a segment is exactly the hash of that prefix: hash("/a/b") is a state on the way to hash("/a/b/c").
 *
 *   /api/v1/users      words: "/api" "/v1" "/users"     boundaries: 4, 7, 13
 *
 * Not keyed: same input, same bytes. What makes that safe: clients cannot put paths into a table, equality is always
 * checked on the bytes, and a builder refuses tables with long probes. Reads only [path, path + len).
 * Cost: about 6 cycles per 8 bytes plus 4 per segment.
 */
#ifndef EF_PATH_HASH_H
#define EF_PATH_HASH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../limits.h"

#define EF_PATH_SEED 0x9E3779B97F4A7C15u /* the hash of the prefix "/", which is the empty path */
#define EF_PATH_KEY  0xD6E8FEB86659FD93u
#define EF_DEEPEST   63u /* depths that have a bit of their own in a depth set */

_Static_assert(EF_DEEPEST == EF_MAX_SEGMENTS - 1, "one bit per prefix depth");

static inline uint64_t ef_path_mix(uint64_t state, uint64_t word) {
    __extension__ typedef unsigned __int128 ef_u128;
    const ef_u128 product = (ef_u128)(state ^ word) * EF_PATH_KEY;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Up to 8 bytes from path + at, zero-padded, without a byte outside the path. */
static inline uint64_t ef_path_word(const uint8_t *path, size_t at, size_t len) {
    const size_t left = len - at;
    uint64_t word;
    if (left >= 8) {
        memcpy(&word, path + at, 8);
        return word;
    }
    if (len >= 8) { /* one load that ends with the path */
        memcpy(&word, path + len - 8, 8);
        return word >> (8 * (8 - left));
    }
    const uint8_t *p = path + at;
    if (left >= 4) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + left - 4, 4);
        return low | (uint64_t)high << (8 * (left - 4));
    }
    return p[0] | (uint64_t)p[left >> 1] << (8 * (left >> 1)) | (uint64_t)p[left - 1] << (8 * (left - 1));
}

typedef struct ef_path_walk {
    uint64_t hash;  /* of the whole path; meaningless when `whole` is 0 */
    uint32_t depth; /* segments, at most EF_DEEPEST */
    uint32_t n;     /* boundaries written */
    int whole;      /* 0: stopped early, nothing that was asked for lies further on */
} ef_path_walk;

/* Walk the path. Boundaries before its end whose depth is in the set `depths` go to hashes[]/ends[] (room for
 * EF_MAX_SEGMENTS each). Without need_whole the walk ends behind the deepest depth asked for. */
static inline ef_path_walk ef_path_walk_run(const uint8_t *path, size_t len, uint64_t depths, int need_whole,
                                            uint64_t *hashes, uint32_t *ends) {
    ef_path_walk walk = {EF_PATH_SEED, 0, 0, 1};
    size_t at = 0;
    uint32_t depth = 0;
    if (depths & 1 && len > 0) {
        hashes[0] = walk.hash;
        ends[0] = 0;
        walk.n = 1;
    }
    while (at < len) {
        uint64_t opening = 0xff; /* the byte that opens a segment does not end it */
        for (;;) {
            const uint64_t word = ef_path_word(path, at, len);
            const uint64_t diff = (word ^ 0x2f2f2f2f2f2f2f2fu) | opening;
            const uint64_t slash = (diff - 0x0101010101010101u) & ~diff & 0x8080808080808080u;
            if (slash != 0) { /* the lowest bit is exact, those above it need not be */
                const unsigned bits = (unsigned)__builtin_ctzll(slash) & ~7u;
                if (bits != 0) walk.hash = ef_path_mix(walk.hash, word & ((1ull << bits) - 1));
                at += bits >> 3;
                break;
            }
            walk.hash = ef_path_mix(walk.hash, word);
            if (len - at <= 8) {
                at = len;
                break;
            }
            at += 8;
            opening = 0;
        }
        depth += depth < EF_MAX_SEGMENTS;
        if (at == len) break;
        if (depth <= EF_DEEPEST) {
            if (depths >> depth & 1) {
                hashes[walk.n] = walk.hash;
                ends[walk.n] = (uint32_t)at;
                walk.n++;
            }
            if (!need_whole && depths >> depth <= 1) {
                walk.whole = 0;
                break;
            }
        } else if (!need_whole) {
            walk.whole = 0;
            break;
        }
    }
    walk.depth = depth;
    return walk;
}
#endif
