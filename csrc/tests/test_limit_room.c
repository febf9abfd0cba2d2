/* test_limit_room.c - how full a store of the default size gets with random keys: the promise in limit.h. */
#include <stdlib.h>
#include <sys/mman.h>

#include "../limit.h"
#include "check.h"

#define T0 1700000000000u

int main(void) {
    const uint32_t slots = EF_LIMIT_BUCKETS * EF_LIMIT_SLOTS;
    const size_t size = ef_limit_size(EF_LIMIT_BUCKETS);
    for (uint8_t round = 0; round < 3; round++) {
        const uint8_t seed[EF_LIMIT_SEED] = {round, 1, 2, 3};
        void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mem == MAP_FAILED) abort();
        CHECK_EQUAL(ef_limit_init(mem, size, EF_LIMIT_BUCKETS, seed), 0);
        uint32_t refused[100] = {0}, first = 0, stored = 0;
        for (uint32_t i = 0; i < slots * 7 / 10; i++) {
            ef_limit_result got;
            const int rc = ef_limit_take(mem, (const uint8_t *)&i, sizeof i, 1, 1, 60, 0, T0, &got);
            if (rc != 0 && first == 0) first = i;
            refused[i * 100ull / slots] += rc != 0;
            stored += rc == 0;
        }
        CHECK(first > slots * 55ull / 100);
        CHECK(refused[66] < slots / 100 / 1000 * 2); /* of slots / 100 new keys */
        uint64_t cursor = 0;
        ef_limit_entry entry;
        while (ef_limit_next(mem, &cursor, T0, &entry))
            stored -= entry.key_len == sizeof(uint32_t) && entry.current == 1;
        CHECK_EQUAL(stored, 0);
        printf("first %.3f; per mille at 60..69 %%:", (double)first / slots);
        for (int i = 60; i < 70; i++)
            printf(" %.2f", refused[i] * 1000.0 * 100 / slots);
        printf("\n");
        munmap(mem, size);
    }
    return FINISH();
}
