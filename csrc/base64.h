/* base64.h - Base64 (RFC 4648 4) of a stream, both ways: what gRPC-Web calls text.
 *
 * In: characters in any pieces, untrusted; or bytes. Out: bytes, or characters with padding. Padding may stand at the end of any
 * group, for a sender pads whenever it flushes; then another group may begin (github.com/grpc/grpc doc/PROTOCOL-WEB.md). Nothing
 * else is passed over: no space, no line end, no other alphabet, no bits that padding cuts off unless they are 0. So each group of
 * four is at least one byte.
 *
 * Ownership: the caller's memory. Returns >= 0, or EF_BASE64_MALFORMED. No state of its own but ef_base64, which begins as zeros.
 */
#ifndef EF_BASE64_H
#define EF_BASE64_H
#include <stddef.h>
#include <stdint.h>

#define EF_BASE64_MALFORMED (-1)

/* Bytes that n more characters become at most, whatever came before; and characters of n bytes. */
#define EF_BASE64_BYTES(n) (((n) + 3u) / 4u * 3u)
#define EF_BASE64_CHARS(n) (((n) + 2u) / 3u * 4u)

typedef struct ef_base64 {
    uint32_t bits; /* of the group that is not complete yet */
    uint8_t here;  /* its characters, padding among them */
    uint8_t pads;
    uint8_t reserved_[2];
} ef_base64;

/* Decode: `out` has room for EF_BASE64_BYTES(len). The bytes written. After EF_BASE64_MALFORMED nothing more is to be fed. */
int64_t ef_base64_decode(ef_base64 *state, const uint8_t *text, size_t len, uint8_t *out);

/* Nothing is missing of the last group. */
static inline int ef_base64_whole(const ef_base64 *state) { return state->here == 0; }

/* Encode whole, padded: `out` has room for EF_BASE64_CHARS(len), all of which are written. */
void ef_base64_encode(const uint8_t *data, size_t len, uint8_t *out);
#endif
