/* control.h - search for the first control byte: the end of a line, and the check that nothing hostile is in it, in one pass.
 *
 * In a valid line the first control byte other than HTAB is the CR of its CRLF, so one search finds the end of the line
 * and proves that no NUL, bare LF, bare CR or DEL precedes it (RFC 9110 5.5, RFC 9112 2.2).
 * SSE2 where the compiler has it, with a scalar twin (-DEF_NO_SIMD); the same tests run over both.
 */
#ifndef EF_INTERNAL_CONTROL_H
#define EF_INTERNAL_CONTROL_H
#include <stddef.h>
#include <stdint.h>

/* Tests count the bytes that the scan looks at, to prove that its cost is linear however the bytes arrive. */
#ifdef EF_COUNT_WORK
extern unsigned long ef_work_bytes;
#define EF_COUNT(n) (ef_work_bytes += (unsigned long)(n))
#else
#define EF_COUNT(n) ((void)0)
#endif

static inline int ef_is_control(uint8_t byte) { return (byte < 0x20 && byte != '\t') || byte == 0x7f; }

#if defined(__SSE2__) && !defined(EF_NO_SIMD)
#include <emmintrin.h>

/* Bit i is set when byte i of the 16 at p is a control byte. */
static inline unsigned ef_control_mask(const uint8_t *p) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes); /* unsigned bytes <= 0x1f */
    const __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    const __m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
    EF_COUNT(16);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, low), del));
}

/* Offset of the first control byte in [at, end), or end. Reads only [0, end). */
static inline size_t ef_find_control(const uint8_t *buf, size_t at, size_t end) {
    for (; at + 16 <= end; at += 16) {
        const unsigned mask = ef_control_mask(buf + at);
        if (mask != 0) return at + (unsigned)__builtin_ctz(mask);
    }
    if (at < end && end >= 16) { /* the last bytes, by a load that overlaps what was seen already */
        const unsigned mask = ef_control_mask(buf + end - 16) >> (16 - (end - at));
        return mask != 0 ? at + (unsigned)__builtin_ctz(mask) : end;
    }
    for (; at < end; at++) {
        EF_COUNT(1);
        if (ef_is_control(buf[at])) return at;
    }
    return end;
}
#else
static inline size_t ef_find_control(const uint8_t *buf, size_t at, size_t end) {
    for (; at < end; at++) {
        EF_COUNT(1);
        if (ef_is_control(buf[at])) return at;
    }
    return end;
}
#endif
#endif
