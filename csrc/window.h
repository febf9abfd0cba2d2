/* window.h - repeats as a part of what went to a cluster in an interval, of all workers of a proxy together.
 *
 *   an interval of the clock:  |--- before ---|--- now ---|
 *   the window:                        |==============|        what came before counts for the part that the window still has of it
 *
 * Each worker counts in its share of the cluster's record (health.h), plainly and alone: tries and repeats of this interval and of the one
 * before. The sum of all is looked at only by who wants to repeat: it adds its own first and takes it back when that is too much, so of
 * several who come at the same time none is let pass too many. Of another worker's interval that ends this very moment a part may be missed
 * or counted twice; a worker that dies takes what it had with it.
 * A window is two words of the clock's turns and six counts, EF_WINDOW_* in the share. Whoever counts in another interval begins anew.
 */
#ifndef EF_WINDOW_H
#define EF_WINDOW_H
#include "health.h"

#define EF_WINDOW_MAX_MS 3600000u /* an hour: the longest interval that there may be */

enum {
    EF_WINDOW_TURN = 7, /* which interval */
    EF_WINDOW_TRIES,
    EF_WINDOW_TRIES_BEFORE,
    EF_WINDOW_REPEATS,
    EF_WINDOW_REPEATS_BEFORE,
    EF_WINDOW_FLOOR_TURN, /* of the interval that has so many at least */
    EF_WINDOW_FLOOR,
    EF_WINDOW_FLOOR_BEFORE,
    EF_WINDOW_END
};

typedef struct ef_window {
    uint32_t percent;     /* of all tries that may be repeats; at most 100 */
    uint32_t interval_ms; /* 1 to EF_WINDOW_MAX_MS, as floor_ms */
    uint32_t floor;       /* so many repeats in floor_ms at least */
    uint32_t floor_ms;
} ef_window;

/* One more try of this seat's, a repeat or not. */
void ef_window_count(ef_health_record *record, uint32_t seat, const ef_window *how, uint64_t now_ms);
/* One more repeat, which is to be counted as a try when it is made; 1, or 0: there may be none. */
int ef_window_take(ef_health_record *record, uint32_t seats, uint32_t seat, const ef_window *how, uint64_t now_ms);
#endif
