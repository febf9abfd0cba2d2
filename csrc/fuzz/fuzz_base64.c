/* fuzz_base64.c - any bytes: what they are encoded to decodes to them however it is cut; what they decode to does not depend on cuts. */
#include "../base64.h"
#include "require.h"

/* Decode in two pieces; the bytes, or -1. */
static int64_t decode(const uint8_t *text, size_t len, size_t cut, uint8_t *out, int *whole) {
    ef_base64 state;
    memset(&state, 0, sizeof(state));
    uint8_t *first = exact_copy(text, cut);
    uint8_t *second = exact_copy(text + cut, len - cut);
    int64_t sum = ef_base64_decode(&state, first, cut, out);
    if (sum >= 0) {
        REQUIRE(sum <= (int64_t)EF_BASE64_BYTES(cut));
        const int64_t more = ef_base64_decode(&state, second, len - cut, out + sum);
        REQUIRE(more <= (int64_t)EF_BASE64_BYTES(len - cut));
        sum = more < 0 ? more : sum + more;
    }
    *whole = ef_base64_whole(&state);
    free(first);
    free(second);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t cut = size ? fuzz_number(data, size) % (size + 1) : 0;
    uint8_t *one = malloc(EF_BASE64_BYTES(size) + 6u);
    uint8_t *two = malloc(EF_BASE64_BYTES(size) + 6u);
    int whole = 0, again = 0;
    if (one == NULL || two == NULL) abort();
    const int64_t got = decode(data, size, size, one, &whole);
    REQUIRE(got == decode(data, size, cut, two, &again));
    if (got >= 0) {
        REQUIRE(whole == again && memcmp(one, two, (size_t)got) == 0);
        REQUIRE(!whole || (size_t)got >= size / 4);
    }
    free(one);
    free(two);
    const size_t chars = EF_BASE64_CHARS(size);
    uint8_t *text = malloc(chars ? chars : 1);
    one = malloc(EF_BASE64_BYTES(chars) + 6u);
    if (text == NULL || one == NULL) abort();
    uint8_t *copy = exact_copy(data, size);
    ef_base64_encode(copy, size, text);
    REQUIRE(decode(text, chars, chars ? fuzz_number(data, size) % (chars + 1) : 0, one, &whole) == (int64_t)size);
    REQUIRE(whole && memcmp(one, data, size) == 0);
    free(copy);
    free(one);
    free(text);
    return 0;
}
