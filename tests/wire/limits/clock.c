/* clock.c - preloaded into a redis-server: its wall clock is moved by as many milliseconds as the file STORE_CLOCK says now.
 *
 * In: the environment, and 8 bytes in the file. Out: gettimeofday, time and the real-time clock of the process. All other
 * clocks stay. (libfaketime cannot do this one: it calls an allocator that reads the clock.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shift;

__attribute__((constructor)) static void map_shift(void) {
    const char *path = getenv("STORE_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) shift = map;
    close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
    if (syscall(SYS_clock_gettime, id, ts) < 0) return -1;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        long ms = shift ? *shift : 0, ns = ts->tv_nsec + ms % 1000 * 1000000;
        ts->tv_sec += ms / 1000 + (ns >= 1000000000) - (ns < 0);
        ts->tv_nsec = ns + ((ns < 0) - (ns >= 1000000000)) * 1000000000;
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
