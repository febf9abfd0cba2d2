/* neighbour: empties the caches that cores share, as whoever else is on a machine of a cloud does.
 *
 *   neighbour MEGABYTES      prints "ready\n" and goes on until standard input ends or it is killed
 *
 * Writes one word in each cache line of so much memory, line after line in an order that no prefetcher knows, half of the time:
 * a neighbour that never slept would measure the scheduler. Must never share memory with what is measured. */
#define _GNU_SOURCE
#include <poll.h>

#include "wire.h"

#define LINE     64u
#define BURST_NS 2000000u /* works so long, then sleeps so long */

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: neighbour MEGABYTES\n");
        return 2;
    }
    uint64_t lines = (strtoull(argv[1], NULL, 10) << 20) / LINE, state = wire_now_ns();
    if (!lines) return 2;
    volatile uint64_t *memory = aligned_alloc(LINE, lines * LINE);
    if (!memory) wire_die("aligned_alloc");
    for (uint64_t i = 0; i < lines; i++)
        memory[i * (LINE / 8)] = i;
    printf("ready\n");
    fflush(stdout);
    struct pollfd end = {.fd = 0, .events = POLLIN};
    while (poll(&end, 1, BURST_NS / 1000000u) == 0) {
        for (uint64_t until = wire_now_ns() + BURST_NS; wire_now_ns() < until;) {
            for (unsigned i = 0; i < 256; i++)
                memory[wire_random(&state) % lines * (LINE / 8)]++;
        }
    }
    return 0;
}
