/* name.h - header names, several bytes at a time: where a name ends, and the hash that a span keeps of it.
 *
 * The hash is a filter in front of a comparison, no more: it is not keyed, equal names of any case have equal hashes, and so may others.
 * Setting bit 5 makes letters lower-case; of what else a token may have it maps '^' to '~' alone.
 * SSE2 where the compiler has it, with a scalar twin (-DEF_NO_SIMD); the same tests run over both.
 */
#ifndef EF_INTERNAL_NAME_H
#define EF_INTERNAL_NAME_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "charset.h"

#define EF_NAME_BIT5 0x2020202020202020u
#define EF_NAME_KEY  0x9E3779B97F4A7C15u

static inline uint64_t ef_name_mix(uint64_t state, uint64_t word) {
    const uint64_t mixed = (state ^ (word | EF_NAME_BIT5)) * EF_NAME_KEY;
    return mixed ^ mixed >> 32;
}

/* Reads only [name, name + len). Words overlap rather than end behind the name. */
static inline uint32_t ef_name_hash_of(const uint8_t *name, size_t len) {
    uint64_t hash = len * EF_NAME_KEY, word = 0;
    if (len >= 8) {
        for (size_t at = 0; at + 8 < len; at += 8) {
            memcpy(&word, name + at, 8);
            hash = ef_name_mix(hash, word);
        }
        memcpy(&word, name + len - 8, 8);
    } else if (len >= 4) {
        uint32_t low, high;
        memcpy(&low, name, 4);
        memcpy(&high, name + len - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (len != 0) {
        word = name[0] | (uint64_t)name[len >> 1] << 8 | (uint64_t)name[len - 1] << 16;
    }
    return (uint32_t)ef_name_mix(hash, word);
}

#if defined(__SSE2__) && !defined(EF_NO_SIMD)
#include <emmintrin.h>

/* Bit i is set when byte i of the 16 at p is a letter, a digit or '-': names have little else. */
static inline unsigned ef_name_mask(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
    const __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
    const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter);
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
    const __m128i is_dash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(is_letter, is_digit), is_dash));
}

/* The first of [at, end) that is no letter, digit or '-', or one before it. Two bytes that are neither stand at `end` (the line's CRLF). */
static inline size_t ef_skip_name(const uint8_t *buf, size_t at, size_t end) {
    while (at + 16 <= end + 2) {
        const unsigned others = ~ef_name_mask(buf + at) & 0xffffu;
        if (others != 0) return at + (unsigned)__builtin_ctz(others);
        at += 16;
    }
    return at;
}
#else
static inline size_t ef_skip_name(const uint8_t *buf, size_t at, size_t end) {
    (void)buf, (void)end;
    return at;
}
#endif

/* The end of the token that begins at `at`, at most `end`, where the line's CRLF stands. *underscores: it has some. */
static inline size_t ef_find_name_end(const uint8_t *buf, size_t at, size_t end, unsigned *underscores) {
    *underscores = 0;
    for (at = ef_skip_name(buf, at, end); at < end && ef_token_lower[buf[at]] != 0; at++)
        *underscores |= buf[at] == '_';
    return at;
}
#endif
