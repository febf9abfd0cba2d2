/* require.h - what a fuzz target asserts with, and how it hands exact-size copies to the code under test. */
#ifndef EF_FUZZ_REQUIRE_H
#define EF_FUZZ_REQUIRE_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* A copy of exactly len bytes on the heap: AddressSanitizer sees a read of one too many. The caller frees it. */
static inline uint8_t *exact_copy(const uint8_t *data, size_t len) {
    uint8_t *copy = calloc(1, len > 0 ? len : 1);
    if (copy == NULL) abort();
    if (len > 0) memcpy(copy, data, len);
    return copy;
}

/* A number that depends on every byte of the input: where to split it. */
static inline size_t fuzz_number(const uint8_t *data, size_t len) {
    uint64_t x = 1469598103934665603u;
    for (size_t i = 0; i < len; i++)
        x = (x ^ data[i]) * 1099511628211u;
    return (size_t)(x >> 17);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
#endif
