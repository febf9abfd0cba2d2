/* idle: holds many keep-alive connections open and silent, so that their memory can be read.
 *
 *   idle PORT COUNT
 *   idle-tls PORT COUNT      the same source compiled with TLS; it checks no certificate
 *
 * Opens COUNT connections to 127.0.0.1:PORT, 64 at a time, gets one 200 answer on each, prints
 * {"open": N, "failed": M} and keeps them idle until standard input ends; then prints
 * {"alive": N}: how many the proxy still held. Must never send a second request: the bench reads
 * the memory of connections that have served and wait, as real clients' connections do.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "channel.h"

#define BATCH     64
#define ANSWER_MS 5000

static const char request[] =
    "GET /get HTTP/1.1\r\nHost: www-0.example.com\r\nUser-Agent: edgefast-bench/1.0 (idle)\r\n"
    "Accept: */*\r\nAccept-Encoding: gzip\r\nAccept-Language: en\r\nCookie: a=b\r\n\r\n";

/* Reads one answer (head and Content-Length body); 0 when it was a whole 200. */
static int read_answer(struct channel *c) {
    char answer[8192];
    size_t have = 0;
    while (have < sizeof answer) {
        struct pollfd wait = {.fd = c->fd, .events = POLLIN};
        ssize_t n = channel_read(c, answer + have, sizeof answer - have);
        if (n < 0 && errno == EAGAIN && poll(&wait, 1, ANSWER_MS) == 1) continue;
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

/* Sends the request; with TLS, after the handshake. */
static bool open_one(unsigned port, SSL_CTX *context, struct channel *c) {
    int fd = wire_connect(port);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (fd < 0) return false;
    *c = channel_open(fd, context, false);
    if (poll(&wait, 1, ANSWER_MS) == 1) {
        wait.events = POLLIN;
        do {
            ssize_t n = channel_write(c, request, sizeof request - 1);
            if (n == (ssize_t)sizeof request - 1) return true;
            if (n >= 0 || errno != EAGAIN) break;
        } while (poll(&wait, 1, ANSWER_MS) == 1);
    }
    channel_close(c);
    return false;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: idle PORT COUNT\n");
        return 2;
    }
    unsigned port = (unsigned)strtoul(argv[1], NULL, 10), total = (unsigned)strtoul(argv[2], NULL, 10);
    unsigned open_now = 0, failed = 0, alive = 0;
    struct channel *channels = calloc(total + BATCH, sizeof *channels);
    SSL_CTX *context = NULL;
    if (!channels) wire_die("calloc");
#ifdef BENCH_TLS
    context = channel_clients();
#endif
    signal(SIGPIPE, SIG_IGN);
    while (open_now + failed < total) {
        struct channel *batch = channels + open_now;
        unsigned n = 0, kept = 0;
        for (unsigned asked = 0; asked < BATCH && open_now + failed + n < total; asked++) {
            if (open_one(port, context, &batch[n]))
                n++;
            else
                failed++;
        }
        for (unsigned i = 0; i < n; i++) {
            struct channel c = batch[i];
            if (read_answer(&c) == 0) {
                batch[kept++] = c;
            } else {
                channel_close(&c);
                failed++;
            }
        }
        open_now += kept;
    }
    printf("{\"open\": %u, \"failed\": %u}\n", open_now, failed);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0)
        continue;
    for (unsigned i = 0; i < open_now; i++) {
        alive += recv(channels[i].fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
    }
    printf("{\"alive\": %u}\n", alive);
    return 0;
}
