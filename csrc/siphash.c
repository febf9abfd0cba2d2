/* siphash.c - see siphash.h. One round per word of 8 bytes, three to finish. */
#include "siphash.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are read as they lie in memory");

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t rotate(uint64_t word, unsigned bits) { return word << bits | word >> (64 - bits); }

static inline void stir(sip *s) {
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void absorb(sip *s, uint64_t word) {
    s->d ^= word;
    stir(s);
    s->a ^= word;
}

uint64_t ef_siphash13(const uint8_t seed[EF_SIPHASH_SEED], const uint8_t *data, size_t len) {
    uint64_t key[2], word;
    memcpy(key, seed, sizeof key);
    sip s = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
             key[1] ^ 0x7465646279746573u};
    size_t at = 0;
    for (; len - at >= 8; at += 8) {
        memcpy(&word, data + at, 8);
        absorb(&s, word);
    }
    word = (uint64_t)len << 56;
    for (unsigned shift = 0; at < len; at++, shift += 8)
        word |= (uint64_t)data[at] << shift;
    absorb(&s, word);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        stir(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
