/* origin-udp: a backend of datagrams. One thread; each datagram goes back as it came.
 *
 *   origin-udp [PORT]      0 or nothing: the kernel chooses; prints "PORT\n" and serves until killed
 */
#define _GNU_SOURCE
#include "udp.h"

#define BATCH 64
#define LARGE 2048 /* of what is longer the rest is lost, which the generator counts */

int main(int argc, char **argv) {
    static char room[BATCH][LARGE];
    static struct sockaddr_in from[BATCH];
    static struct iovec parts[BATCH];
    static struct mmsghdr messages[BATCH];
    unsigned port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    int fd = udp_bind(&port);
    printf("%u\n", port);
    fflush(stdout);
    for (;;) {
        for (unsigned i = 0; i < BATCH; i++) {
            parts[i] = (struct iovec){room[i], LARGE};
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = &from[i], .msg_namelen = sizeof from[i], .msg_iov = &parts[i], .msg_iovlen = 1};
        }
        int n = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < n; i++)
            parts[i].iov_len = messages[i].msg_len;
        for (int at = 0, sent; at < n; at += sent) {
            sent = sendmmsg(fd, messages + at, (unsigned)(n - at), 0);
            if (sent <= 0) break; /* nobody is there any more */
        }
    }
}
