/* test_base64.c - Base64 of streams: RFC 4648's vectors, every split, padding in the middle, what is refused. */
#include "../base64.h"

#include <string.h>

#include "check.h"
#include "guard.h"

/* Decode in pieces of `step`; the bytes, or -1. */
static int64_t decode(const char *text, size_t step, uint8_t *out, int *whole) {
    ef_base64 state;
    int64_t sum = 0;
    const size_t len = strlen(text);
    memset(&state, 0, sizeof(state));
    for (size_t at = 0; at < len; at += step) {
        const size_t n = len - at < step ? len - at : step;
        const int64_t got = ef_base64_decode(&state, guard_end(text + at, n), n, out + sum);
        if (got < 0) return got;
        CHECK(got <= (int64_t)EF_BASE64_BYTES(n));
        sum += got;
    }
    *whole = ef_base64_whole(&state);
    return sum;
}

static void check_decodes(const char *text, const char *bytes, int is_whole) {
    uint8_t out[64];
    int whole = 0;
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        const int64_t got = decode(text, step, out, &whole);
        CHECK_EQUAL(got, (int64_t)strlen(bytes));
        CHECK_EQUAL(memcmp(out, bytes, strlen(bytes)), 0);
        CHECK_EQUAL(whole, is_whole);
    }
}

static void test_decode(void) {
    check_decodes("Zg==", "f", 1);
    check_decodes("Zm8=", "fo", 1);
    check_decodes("Zm9v", "foo", 1);
    check_decodes("Zm9vYmFy", "foobar", 1);
    check_decodes("+/+/", "\xfb\xff\xbf", 1);
    check_decodes("Zg==Zm8=Zm9v", "ffofoo", 1);
    check_decodes("Zm9vY", "foo", 0);
    check_decodes("Zg=", "", 0);
    check_decodes("Zm9vZ", "foo", 0);
}

static void test_refused(void) {
    uint8_t out[64];
    int whole;
    const char *texts[] = {"=",    "Z=",   "Zg=A", "Zg== ", "Zm9v\r\n", "Zm 9v",   "Zm-v",
                           "Zm_v", "Zh==", "Zm9=", "====",  "Zg===",    "Zm9v\x80"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t step = 1; step < 6; step++)
            CHECK_EQUAL(decode(texts[i], step, out, &whole), EF_BASE64_MALFORMED);
}

static void test_encode(void) {
    const char *pairs[][2] = {{"f", "Zg=="},          {"fo", "Zm8="},           {"foo", "Zm9v"},
                              {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}, {"fooba", "Zm9vYmE="}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint8_t out[64] = {0};
        const size_t len = strlen(pairs[i][0]);
        ef_base64_encode(guard_end(pairs[i][0], len), len, out);
        CHECK_EQUAL(EF_BASE64_CHARS(len), strlen(pairs[i][1]));
        CHECK_EQUAL(memcmp(out, pairs[i][1], strlen(pairs[i][1])), 0);
    }
}

int main(void) {
    test_decode();
    test_refused();
    test_encode();
    return FINISH();
}
