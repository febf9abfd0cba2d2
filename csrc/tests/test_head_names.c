/* test_head_names.c - numbers, names and texts: methods, errors, comma lists, hashes; byte classes against their grammars. */
#include <string.h>

#include "../head.h"
#include "../internal/charset.h"
#include "../internal/head_scan.h"
#include "check.h"
#include "guard.h"

static unsigned lookup(const char *name) { return ef_method_lookup((const uint8_t *)name, strlen(name)); }

static void test_methods(void) {
    for (unsigned i = 1; i < EF_M_COUNT; i++) {
        char other[32];
        CHECK(ef_method_name(i)[0] != 0);
        CHECK_EQUAL(lookup(ef_method_name(i)), i);
        snprintf(other, sizeof(other), "%sX", ef_method_name(i));
        CHECK_EQUAL(lookup(other), EF_M_UNKNOWN);
        snprintf(other, sizeof(other), "%s", ef_method_name(i));
        other[0] = (char)(other[0] | 0x20);
        CHECK_EQUAL(lookup(other), EF_M_UNKNOWN);
    }
    CHECK_EQUAL(lookup("M-SEARCH"), EF_M_MSEARCH);
    CHECK_EQUAL(lookup(""), EF_M_UNKNOWN);
    CHECK_EQUAL(lookup("PRI"), EF_M_UNKNOWN);
    CHECK(strcmp(ef_method_name(0), "") == 0);
    CHECK(strcmp(ef_method_name(EF_M_COUNT), "") == 0);
}

static void test_texts(void) {
    for (int i = 0; i < EF_E_COUNT; i++) {
        CHECK(ef_head_error_text(i) != NULL && ef_head_error_text(i)[0] != 0);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(ef_head_error_name(i), ef_head_error_name(j)) != 0);
    }
    CHECK(strcmp(ef_head_error_name(EF_E_MANY_CONTENT_LENGTHS), "many_content_lengths") == 0);
    CHECK(strcmp(ef_head_error_text(EF_E_COUNT), "unknown fault") == 0);
    CHECK(strcmp(ef_head_error_text(-1), "unknown fault") == 0);
    CHECK(strcmp(ef_head_error_name(EF_E_COUNT), "unknown") == 0);
}

static int has(const char *value, const char *token) {
    return ef_list_has((const uint8_t *)value, strlen(value), token);
}

static void test_lists(void) {
    CHECK(has("upgrade", "upgrade"));
    CHECK(has("a,\tUpGrade ,b", "upgrade"));
    CHECK(has(",,upgrade", "upgrade"));
    CHECK(!has("upgraded", "upgrade"));
    CHECK(!has("a upgrade", "upgrade"));
    CHECK(!has("", "upgrade"));
    CHECK(!has(",", "upgrade"));

    const char *list = " a ,,\tb,";
    size_t at = 0;
    size_t start;
    size_t end;
    char seen[32] = "";
    while (ef_list_next((const uint8_t *)list, strlen(list), &at, &start, &end)) {
        strcat(seen, "<");
        strncat(seen, list + start, end - start);
        strcat(seen, ">");
    }
    CHECK(strcmp(seen, "<a><><b><>") == 0);
}

static void test_hash(void) {
    /* Of any length: no byte behind the name is read, letters are of any case, each byte counts, and so does the length. */
    const char *lower = "x-edge-upstream-service-time", *mixed = "X-eDgE-UpStReAm-sErViCe-TiMe";
    uint32_t seen[29];
    for (size_t n = 0; n <= strlen(lower); n++) {
        seen[n] = ef_name_hash(guard_end(lower, n), n);
        CHECK_EQUAL(ef_name_hash(guard_end(mixed, n), n), seen[n]);
        for (size_t i = 0; i < n; i++) {
            char other[29];
            CHECK(seen[i] != seen[n]);
            memcpy(other, lower, n);
            other[i] = 'q';
            CHECK(ef_name_hash((const uint8_t *)other, n) != seen[n]);
        }
    }
}

static int is_one_of(int byte, const char *set) { return byte != 0 && strchr(set, byte) != NULL; }

static void test_classes(void) {
    for (int byte = 0; byte < 256; byte++) {
        const int digit = byte >= '0' && byte <= '9';
        const int lower = byte >= 'a' && byte <= 'z';
        const int upper = byte >= 'A' && byte <= 'Z';
        const int alnum = digit || lower || upper;
        const int token = alnum || is_one_of(byte, "!#$%&'*+-.^_`|~");
        const int target = byte > 0x20 && byte < 0x7f && !is_one_of(byte, "#<>\"{}|\\^`");
        const uint8_t b = (uint8_t)byte;
        CHECK_EQUAL(ef_token_lower[byte], token ? (upper ? byte + 32 : byte) : 0);
        CHECK_EQUAL(ef_is(b, EF_CLASS_QUERY), target);
        CHECK_EQUAL(ef_is(b, EF_CLASS_PATH), target && byte != '?');
        CHECK_EQUAL(ef_is(b, EF_CLASS_UNRESERVED), alnum || is_one_of(byte, "-._~"));
        CHECK_EQUAL(ef_is(b, EF_CLASS_DIGIT), digit);
        CHECK_EQUAL(ef_is(b, EF_CLASS_HEX), digit || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'));
        CHECK_EQUAL(ef_lower(b), upper ? byte + 32 : byte);
    }
    CHECK_EQUAL(ef_hex_value('0'), 0);
    CHECK_EQUAL(ef_hex_value('9'), 9);
    CHECK_EQUAL(ef_hex_value('a'), 10);
    CHECK_EQUAL(ef_hex_value('F'), 15);
}

int main(void) {
    test_methods();
    test_texts();
    test_lists();
    test_hash();
    test_classes();
    return FINISH();
}
