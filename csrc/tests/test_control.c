/* test_control.c - the search for control bytes, SIMD and scalar: every byte, every offset, every length, at guard pages. */
#include "../internal/control.h"

#include "check.h"
#include "guard.h"

#define LONGEST 70u

static size_t find_slowly(const uint8_t *buf, size_t at, size_t end) {
    while (at < end && (buf[at] > 0x1f || buf[at] == '\t') && buf[at] != 0x7f)
        at++;
    return at;
}

static void test_every_byte(void) {
    uint8_t bytes[40];
    for (int byte = 0; byte < 256; byte++) {
        for (size_t place = 0; place < sizeof(bytes); place++) {
            memset(bytes, 'x', sizeof(bytes));
            bytes[place] = (uint8_t)byte;
            const uint8_t *buf = guard_end(bytes, sizeof(bytes));
            CHECK_EQUAL(ef_find_control(buf, 0, sizeof(bytes)), find_slowly(buf, 0, sizeof(bytes)));
        }
    }
}

/* Bytes outside of [at, end) are control bytes: they must not be found. */
static void test_every_window(void) {
    uint8_t bytes[LONGEST];
    for (size_t len = 0; len <= LONGEST; len++) {
        for (size_t at = 0; at <= len; at++) {
            memset(bytes, '\n', sizeof(bytes));
            memset(bytes + at, 0xe4, len - at);
            for (size_t place = at; place <= len; place++) {
                if (place < len) bytes[place] = '\r';
                if (place > at) bytes[place - 1] = '\t';
                CHECK_EQUAL(ef_find_control(guard_end(bytes, len), at, len), place);
                CHECK_EQUAL(ef_find_control(guard_start(bytes, sizeof(bytes)), at, len), place);
            }
        }
    }
}

int main(void) {
    test_every_byte();
    test_every_window();
    return FINISH();
}
