/* clock.c - preloaded into a redis-server: its wall clock is STORE_CLOCK_MS milliseconds late or early.
 *
 * In: the environment. Out: gettimeofday and the real-time clock of the process, from its first instruction on. All other
 * clocks stay. (libfaketime cannot do this one: it calls an allocator that reads the clock.) */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift_ms;

__attribute__((constructor)) static void read_shift(void) {
    const char *text = getenv("STORE_CLOCK_MS");
    if (text) shift_ms = strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
    if (syscall(SYS_clock_gettime, id, ts) < 0) return -1;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        long ms = (long)ts->tv_nsec / 1000000 + shift_ms % 1000;
        ts->tv_sec += shift_ms / 1000 + (ms >= 1000) - (ms < 0);
        ts->tv_nsec += (shift_ms % 1000 + (ms < 0) * 1000 - (ms >= 1000) * 1000) * 1000000;
    }
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    (void)zone;
    struct timespec ts;
    if (clock_gettime(CLOCK_REALTIME, &ts) < 0) return -1;
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out) *out = ts.tv_sec;
    return ts.tv_sec;
}
