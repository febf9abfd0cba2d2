/* idle: holds many keep-alive connections open and silent, so that their memory can be read.
 *
 *   idle PORT COUNT
 *
 * Opens COUNT connections to 127.0.0.1:PORT, 64 at a time, gets one 200 answer on each, prints
 * {"open": N, "failed": M} and keeps them idle until standard input ends; then prints
 * {"alive": N}: how many the proxy still held. Must never send a second request: the bench reads
 * the memory of connections that have served and wait, as real clients' connections do.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>

#include "wire.h"

#define BATCH     64
#define ANSWER_MS 5000

static const char request[] =
    "GET /get HTTP/1.1\r\nHost: www-0.example.com\r\nUser-Agent: edgefast-bench/1.0 (idle)\r\n"
    "Accept: */*\r\nAccept-Encoding: gzip\r\nAccept-Language: en\r\nCookie: a=b\r\n\r\n";

/* Reads one answer (head and Content-Length body); 0 when it was a whole 200. */
static int read_answer(int fd) {
    char answer[8192];
    size_t have = 0;
    while (have < sizeof answer) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, ANSWER_MS) != 1) return -1;
        ssize_t n = read(fd, answer + have, sizeof answer - have);
        if (n <= 0) return -1;
        have += (size_t)n;
        const char *end = wire_head_end(answer, have);
        if (!end) continue;
        const char *length = wire_header(answer, end, "content-length:", 15, NULL);
        if (!length || wire_number(answer + 9) != 200) return -1;
        if (have - (size_t)(end - answer) >= wire_number(length)) return 0;
    }
    return -1;
}

static int open_one(unsigned port) {
    int fd = wire_connect(port);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (fd < 0) return -1;
    if (poll(&wait, 1, ANSWER_MS) == 1 && write(fd, request, sizeof request - 1) == (ssize_t)sizeof request - 1) {
        return fd;
    }
    close(fd);
    return -1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: idle PORT COUNT\n");
        return 2;
    }
    unsigned port = (unsigned)strtoul(argv[1], NULL, 10), total = (unsigned)strtoul(argv[2], NULL, 10);
    unsigned open_now = 0, failed = 0, alive = 0;
    int *fds = calloc(total + BATCH, sizeof *fds);
    if (!fds) wire_die("calloc");
    signal(SIGPIPE, SIG_IGN);
    while (open_now + failed < total) {
        int batch[BATCH];
        unsigned n = 0;
        for (; n < BATCH && open_now + failed + n < total; n++)
            batch[n] = open_one(port);
        for (unsigned i = 0; i < n; i++) {
            if (batch[i] >= 0 && read_answer(batch[i]) == 0) {
                fds[open_now++] = batch[i];
            } else {
                if (batch[i] >= 0) close(batch[i]);
                failed++;
            }
        }
    }
    printf("{\"open\": %u, \"failed\": %u}\n", open_now, failed);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    for (unsigned i = 0; i < open_now; i++) {
        alive += recv(fds[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
    }
    printf("{\"alive\": %u}\n", alive);
    return 0;
}
