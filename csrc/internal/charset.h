/* charset.h - byte classes of the HTTP and URI grammars. Tables, because the request path asks once per byte.
 *
 * Internal to csrc: headers in this folder are not bound to Python nor seen by the Cython core.
 */
#ifndef EF_INTERNAL_CHARSET_H
#define EF_INTERNAL_CHARSET_H
#include <stddef.h>
#include <stdint.h>

/* The ASCII-lower-cased byte when it may stand in a token (RFC 9110 5.6.2), else 0. */
extern const uint8_t ef_token_lower[256];

#define EF_CLASS_PATH       1u /* may stand in the path of a request target: VCHAR without #?<>"{}|\^` */
#define EF_CLASS_QUERY      2u /* the same and '?' */
#define EF_CLASS_UNRESERVED 4u /* RFC 3986 2.3: ALPHA DIGIT - . _ ~ */
#define EF_CLASS_DIGIT      8u
#define EF_CLASS_HEX        16u
#define EF_CLASS_PARAMETER  32u  /* ';': parameters of a path segment begin there */
#define EF_CLASS_RAW        64u  /* '|': EF_RAW_ALLOW lets it into path and query */
#define EF_CLASS_RAW_QUERY  128u /* {}^\"`: EF_RAW_ALLOW lets them into the query */
extern const uint8_t ef_byte_class[256];

static inline int ef_is(uint8_t byte, unsigned class_bits) { return (ef_byte_class[byte] & class_bits) != 0; }

static inline uint8_t ef_lower(uint8_t byte) {
    return (uint8_t)(byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
}

/* Value of a byte of EF_CLASS_HEX. */
static inline unsigned ef_hex_value(uint8_t byte) {
    return byte <= '9' ? byte - (unsigned)'0' : (byte | 32u) - 'a' + 10u;
}

/* `bytes` equals the lower-case text of the same length, ASCII case-insensitively. */
static inline int ef_equals_lower(const uint8_t *bytes, const char *lower, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (ef_lower(bytes[i]) != (uint8_t)lower[i]) return 0;
    return 1;
}
#endif
