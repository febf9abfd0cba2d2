/* clock.c - preloaded into a test's child process: the clocks go on as they do, and can be moved forward.
 *
 * In: clock_shift(milliseconds). Out: every clock_gettime, gettimeofday and time of the process is that much later. It must never go back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

typedef int (*read_clock)(clockid_t, struct timespec *);

static long shifted; /* milliseconds */

void clock_shift(long ms);
void clock_shift(long ms) { shifted += ms; }

int clock_gettime(clockid_t id, struct timespec *ts) {
    static read_clock real;
    if (real == NULL) *(void **)(&real) = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(id, ts);
    if (result == 0) {
        ts->tv_sec += shifted / 1000;
        ts->tv_nsec += shifted % 1000 * 1000000;
        if (ts->tv_nsec >= 1000000000) {
            ts->tv_sec += 1;
            ts->tv_nsec -= 1000000000;
        }
    }
    return result;
}

/* As TLS libraries ask. */
time_t time(time_t *to) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    struct timespec now = {0};
    (void)zone;
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return result;
}
