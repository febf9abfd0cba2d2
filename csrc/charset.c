/* charset.c - byte classes of the HTTP and URI grammars as tables. In: a byte. Out: its class. Bytes of 0x80 and above are in
 * no class: both tables say 0 there. tests/test_charset.c derives every entry from the grammars again.
 */
#include "internal/charset.h"

/* clang-format off */
const uint8_t ef_token_lower[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, '!', 0, '#', '$', '%', '&', '\'', 0, 0, '*', '+', 0, '-', '.', 0,
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 0, 0, 0, 0, 0, 0,
    0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 0, 0, 0, '^', '_',
    '`', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 0, '|', 0, '~', 0,
};

/* Sums of EF_CLASS_*: 1 path, 2 query, 4 unreserved, 8 digit, 16 hex digit, 32 parameter, 64 raw in both, 128 raw in a query. */
const uint8_t ef_byte_class[256] = {
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
     0,  3,128,  0,  3,  3,  3,  3,  3,  3,  3,  3,  3,  7,  7,  3,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31,  3, 35,  0,  3,  0,  2,
     3, 23, 23, 23, 23, 23, 23,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  3,128,  3,128,  7,
   128, 23, 23, 23, 23, 23, 23,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,128, 64,128,  7,  0,
};
/* clang-format on */
