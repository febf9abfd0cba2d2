/* wire.h: the few socket and head helpers that origin, floor, load and idle share.
 *
 * In: file descriptors and (pointer, length) spans. Out: positions inside the caller's memory.
 * Must never allocate, and must never be linked into the product: these helpers read only
 * well-formed messages from peers the bench itself started.
 *
 * Returns: positions as pointers (NULL: not there), descriptors >= 0; a set-up failure ends the
 * program with a message, because a bench without its sockets has nothing to report.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Descriptors are used as array indices; the bench holds 10k idle connections at most. */
#define WIRE_MAX_FDS 65536

static inline _Noreturn void wire_die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline uint64_t wire_now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline struct sockaddr_in wire_loopback(unsigned port) {
    struct sockaddr_in addr;
    memset(&addr, 0, sizeof addr);
    addr.sin_family = AF_INET;
    addr.sin_port = htons((uint16_t)port);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

static inline void wire_set_nodelay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Listens on 127.0.0.1, with BENCH_LOOPBACKS on all of 127.0.0.0/8; *port 0 is replaced by the port the kernel chose. */
static inline int wire_listen(unsigned *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in addr = wire_loopback(*port);
    socklen_t len = sizeof addr;
    if (fd < 0) wire_die("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
#ifdef BENCH_LOOPBACKS
    addr.sin_addr.s_addr = htonl(INADDR_ANY);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3)) wire_die("SO_BINDTODEVICE");
#endif
    if (bind(fd, (struct sockaddr *)&addr, len) < 0) wire_die("bind");
    if (listen(fd, 4096) < 0) wire_die("listen");
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0) wire_die("getsockname");
    *port = ntohs(addr.sin_port);
    return fd;
}

/* Listens as above, in an epoll descriptor of its own (data.fd), and prints the port for whoever started this. */
static inline int wire_serve(unsigned *port, int *epfd) {
    int listener = wire_listen(port);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
    *epfd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(*epfd, EPOLL_CTL_ADD, listener, &ev);
    printf("%u\n", *port);
    fflush(stdout);
    return listener;
}

/* Starts a non-blocking connect to 127.0.0.1; -1 with errno when the kernel refuses at once. */
static inline int wire_connect(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in addr = wire_loopback(port);
    if (fd < 0) return -1;
    if (fd >= WIRE_MAX_FDS) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    wire_set_nodelay(fd);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0 && errno != EINPROGRESS) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* First byte after the blank line that ends a head, or NULL when it is not all there. */
static inline const char *wire_head_end(const char *head, size_t len) {
    const char *at = memmem(head, len, "\r\n\r\n", 4);
    return at ? at + 4 : NULL;
}

/* Value of a header in a complete head ("name" with its colon, lower case); NULL if absent.
 * *line is set to where the header's line starts. The value ends before the CR. */
static inline const char *wire_header(const char *head, const char *end, const char *name, size_t name_len,
                                      const char **line) {
    const char *at = memchr(head, '\n', (size_t)(end - head));
    while (at && at + 1 < end) {
        const char *start = at + 1;
        if ((*start | 0x20) == *name && (size_t)(end - start) > name_len && strncasecmp(start, name, name_len) == 0) {
            const char *value = start + name_len;
            while (*value == ' ')
                value++;
            if (line) *line = start;
            return value;
        }
        at = memchr(start, '\n', (size_t)(end - start));
    }
    return NULL;
}

/* Decimal digits up to the first other byte. */
static inline uint64_t wire_number(const char *digits) {
    uint64_t n = 0;
    while (*digits >= '0' && *digits <= '9')
        n = n * 10 + (uint64_t)(*digits++ - '0');
    return n;
}

/* splitmix64 step: a fast PRNG for request ids and random routes, never for secrets. */
static inline uint64_t wire_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
