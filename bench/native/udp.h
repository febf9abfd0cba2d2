/* udp.h: sockets of datagrams on loopback, for origin_udp.c and load_udp.c.
 *
 * In: ports. Out: descriptors. Queues are as large as the kernel lets them be: a datagram that is lost is a proxy's affair then. */
#ifndef BENCH_UDP_H
#define BENCH_UDP_H

#include "wire.h"

#define UDP_QUEUE (8 << 20)

static inline int udp_socket(int flags) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0), size = UDP_QUEUE;
    if (fd < 0) wire_die("socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return fd;
}

/* Bound to 127.0.0.1; *port 0 is replaced by the port the kernel chose. */
static inline int udp_bind(unsigned *port) {
    struct sockaddr_in addr = wire_loopback(*port);
    socklen_t len = sizeof addr;
    int fd = udp_socket(0);
    if (bind(fd, (struct sockaddr *)&addr, len) < 0) wire_die("bind");
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0) wire_die("getsockname");
    *port = ntohs(addr.sin_port);
    return fd;
}

static inline int udp_connect(unsigned port) {
    struct sockaddr_in addr = wire_loopback(port);
    int fd = udp_socket(SOCK_NONBLOCK);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0) wire_die("connect");
    return fd;
}

#endif
