/* test_siphash.c - answers of other implementations (CPython's, a key of zeros), and no byte read outside the input. */
#include "../siphash.h"

#include <string.h>

#include "check.h"
#include "guard.h"

static void test_known(void) {
    static const uint8_t zeros[EF_SIPHASH_SEED];
    /* hash(bytes(range(n))) of CPython 3.11 with PYTHONHASHSEED=0 */
    static const struct {
        size_t len;
        int64_t hash;
    } known[] = {{1, 0x68a914128e01e473},   {2, 0x10bac45c41e3669},   {7, 0x2f098ab0c751325a},
                 {8, -0x152bee198141d116},  {9, 0x75927f9d95124362},  {15, -0xcf148da446e3616},
                 {16, -0x768de77bcc5a3a49}, {17, 0x4883c49a2c009c1d}, {31, 0x169739443111d49b},
                 {63, 0x385d3e39e5f37359},  {64, 0x75e05fd5bbc870c6}, {100, 0x1c6a66e1506e7908},
                 {255, 0x5dc1f93ea135eb43}};
    uint8_t bytes[256];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK_EQUAL(ef_siphash13(zeros, guard_end(bytes, known[i].len), known[i].len), known[i].hash);
        CHECK_EQUAL(ef_siphash13(zeros, guard_start(bytes, known[i].len), known[i].len), known[i].hash);
    }
}

static void test_seed(void) {
    uint8_t seed[EF_SIPHASH_SEED] = {0};
    const uint64_t hash = ef_siphash13(seed, (const uint8_t *)"key", 3);
    for (unsigned i = 0; i < sizeof seed; i++) {
        seed[i] = 1;
        CHECK(ef_siphash13(seed, (const uint8_t *)"key", 3) != hash);
        seed[i] = 0;
    }
}

int main(void) {
    test_known();
    test_seed();
    return FINISH();
}
