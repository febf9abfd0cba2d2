/* fuzz_h2_guard.c - any frames in any order and at any time: nothing wraps, and what a budget forgives has a bound.
 *
 * Input: five bytes per step: what, flags, length (two), milliseconds since the step before.
 */
#include "../h2_guard.h"

#include "require.h"

/* As bytes of a connection: in two pieces or byte by byte, the outcome is the same. */
static void feed_bytes(const uint8_t *data, size_t size) {
    ef_h2_guard whole, parts;
    ef_h2_guard_begin(&whole, 1, 0);
    ef_h2_guard_begin(&parts, 1, 0);
    uint8_t *copy = exact_copy(data, size);
    const int breach = ef_h2_guard_feed(&whole, copy, size, 0);
    int other = EF_H2_CALM;
    for (size_t i = 0; i < size && other == EF_H2_CALM; i++)
        other = ef_h2_guard_feed(&parts, copy + i, 1, 0);
    REQUIRE(breach == other && whole.received == parts.received && whole.payload == parts.payload);
    REQUIRE(whole.left == parts.left && whole.got == parts.got && whole.payload <= whole.received);
    REQUIRE(whole.error == parts.error && memcmp(whole.ended, parts.ended, sizeof(whole.ended)) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    feed_bytes(data, size);
    ef_h2_guard guard;
    int64_t now = 1000;
    uint64_t resets = 0, refused = 0;
    ef_h2_guard_begin(&guard, EF_DEFAULT_REQUEST_HEAD, now);
    for (size_t at = 0; at + 5 <= size; at += 5) {
        const unsigned what = data[at] & 15;
        const size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        int breach = EF_H2_CALM;
        now += data[at + 4];
        if (what < 10)
            breach = ef_h2_guard_frame(&guard, what, data[at + 1], length, now);
        else if (what == 10)
            breach = ef_h2_guard_stream(&guard, now);
        else if (what == 11)
            resets += (breach = ef_h2_guard_reset(&guard, now)) == EF_H2_CALM;
        else if (what == 12)
            refused += (breach = ef_h2_guard_refuse(&guard, now)) == EF_H2_CALM;
        else if (what == 13)
            ef_h2_guard_padding(&guard, length);
        else
            ef_h2_guard_sent(&guard, data[at] >> 4, data[at + 1], length, now);
        REQUIRE(breach >= EF_H2_CALM && breach < EF_H2_B_COUNT);
        REQUIRE(resets <= EF_H2_RESETS + (uint64_t)(now - 1000) * EF_H2_RESETS_RATE / 1000);
        REQUIRE(refused <= EF_H2_REFUSED + (uint64_t)(now - 1000) * EF_H2_REFUSED_RATE / 1000);
        REQUIRE(guard.acks <= EF_H2_ACKS + size);
        REQUIRE(guard.payload <= guard.received && guard.progress <= now && guard.resets.at <= now);
        if (breach != EF_H2_CALM) return 0;
        REQUIRE(guard.received / EF_H2_OVERHEAD <= guard.payload + guard.sent + EF_H2_OVERHEAD_FREE || what == 13);
    }
    return 0;
}
