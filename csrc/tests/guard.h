/* guard.h - memory between two PROT_NONE pages: a read of one byte too many or too few is a crash, not luck. */
#ifndef EF_TESTS_GUARD_H
#define EF_TESTS_GUARD_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_PAGE 65536u /* a multiple of every page size in use */
#define GUARD_ROOM (8u * GUARD_PAGE)

static uint8_t *guard_room(void) {
    static uint8_t *room;
    if (room == NULL) {
        uint8_t *all = mmap(NULL, GUARD_ROOM + 2 * GUARD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED || mprotect(all + GUARD_PAGE, GUARD_ROOM, PROT_READ | PROT_WRITE) != 0) {
            perror("guard pages");
            exit(1);
        }
        room = all + GUARD_PAGE;
    }
    return room;
}

/* A copy that ends right before a forbidden page. What stood there before is overwritten: one copy at a time. */
static inline const uint8_t *guard_end(const void *data, size_t len) {
    uint8_t *at = guard_room() + GUARD_ROOM - len;
    if (len > 0) memcpy(at, data, len);
    return at;
}

/* A copy that starts right behind a forbidden page. */
static inline const uint8_t *guard_start(const void *data, size_t len) {
    uint8_t *at = guard_room();
    if (len > 0) memcpy(at, data, len);
    return at;
}
#endif
