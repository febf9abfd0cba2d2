/* test_limit_shares.c - how full a segment gets with random keys: the promise in limit.h. */
#include <stdlib.h>
#include <sys/mman.h>

#include "../limit.h"
#include "check.h"

#define T0      1700000000000u
#define BUCKETS 4370u

int main(void) {
    const uint32_t slots = BUCKETS * EF_LIMIT_SLOTS;
    const size_t size = ef_limit_size(BUCKETS);
    for (uint8_t round = 0; round < 3; round++) {
        const uint8_t seed[EF_LIMIT_SEED] = {round, 1, 2, 3};
        void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mem == MAP_FAILED) abort();
        CHECK_EQUAL(ef_limit_init(mem, size, BUCKETS, seed), 0);
        uint32_t refused = 0, first = slots, stored = 0;
        for (uint32_t i = 0; i < slots / 100 * 67; i++) {
            ef_limit_result got;
            if (ef_limit_take(mem, (const uint8_t *)&i, sizeof i, 1, 1, 60, 0, T0, &got) == 0) {
                stored++;
                continue;
            }
            refused++;
            if (i < first) first = i;
        }
        CHECK(first > slots / 100 * 57);
        CHECK(refused < slots / 100 * 67 / 1000);
        uint64_t cursor = 0;
        ef_limit_entry entry;
        while (ef_limit_next(mem, &cursor, T0, &entry))
            stored -= entry.key_len == sizeof(uint32_t) && entry.current == 1;
        CHECK_EQUAL(stored, 0);
        munmap(mem, size);
    }
    return FINISH();
}
