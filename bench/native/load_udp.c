/* load-udp: datagrams and their answers in a closed loop. One thread, epoll, no allocation.
 *
 *   load-udp --port P [--connections 64] [--seconds 4] [--bytes 64]
 *
 * Every socket (a client of its own: a port) sends a datagram of --bytes with its number in front, and the next one when the answer is
 * there: the same bytes. What does not come within a second is lost; what comes and is not the answer that is awaited is wrong: both are
 * errors. Prints one JSON object in the shape of load.c.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "histogram.h"
#include "udp.h"

#define MAX_CLIENTS 4096
#define MOST_BYTES  1400
#define LOST_NS     1000000000u

struct client {
    int fd;
    uint64_t number, sent_ns;
};

static struct client clients[MAX_CLIENTS];
static struct histogram latency;
static uint64_t done, lost, wrong, refused, stop_ns;
static unsigned port, count = 64, size = 64;
static double seconds = 4;

static void ask(struct client *c) {
    char datagram[MOST_BYTES];
    memset(datagram, 'x', size);
    c->number++;
    memcpy(datagram, &c->number, sizeof c->number);
    c->sent_ns = wire_now_ns();
    if (send(c->fd, datagram, size, 0) != (ssize_t)size) refused++;
}

static void on_answer(struct client *c) {
    char datagram[MOST_BYTES + 1];
    uint64_t number = 0, now;
    ssize_t n = recv(c->fd, datagram, sizeof datagram, 0);
    if (n < 0) {
        if (errno == EAGAIN) return;
        refused++; /* told of by ICMP; the loss is counted when its time is over */
        return;
    }
    if (n >= (ssize_t)sizeof number) memcpy(&number, datagram, sizeof number);
    if (n != (ssize_t)size || number != c->number || (size > sizeof number && datagram[size - 1] != 'x')) {
        wrong++;
        return;
    }
    now = wire_now_ns();
    histogram_add(&latency, now - c->sent_ns);
    done++;
    c->sent_ns = 0;
    if (now < stop_ns) ask(c);
}

/* Whoever has waited too long asks again, while the run lasts; how many wait. */
static unsigned look_for_lost(uint64_t now) {
    unsigned waiting = 0;
    for (unsigned i = 0; i < count; i++) {
        struct client *c = &clients[i];
        if (c->sent_ns && now - c->sent_ns > LOST_NS) {
            lost++;
            c->sent_ns = 0;
            if (now < stop_ns) ask(c);
        }
        waiting += c->sent_ns != 0;
    }
    return waiting;
}

static void read_options(int argc, char **argv) {
    static const struct option words[] = {
        {"port", 1, 0, 'p'}, {"connections", 1, 0, 'c'}, {"seconds", 1, 0, 's'}, {"bytes", 1, 0, 'b'}, {0, 0, 0, 0}};
    int key;
    while ((key = getopt_long(argc, argv, "", words, NULL)) != -1) {
        if (key == 'p')
            port = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 'c')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 's')
            seconds = strtod(optarg, NULL);
        else if (key == 'b')
            size = (unsigned)strtoul(optarg, NULL, 10);
        else
            exit(2);
    }
    if (!port || !count || count > MAX_CLIENTS || size < sizeof(uint64_t) || size > MOST_BYTES) {
        fprintf(stderr, "load-udp: --port, 1..%d --connections and 8..%d --bytes are needed\n", MAX_CLIENTS,
                MOST_BYTES);
        exit(2);
    }
}

int main(int argc, char **argv) {
    struct epoll_event events[256];
    read_options(argc, argv);
    int epfd = epoll_create1(EPOLL_CLOEXEC);
    uint64_t start = wire_now_ns(), now = start, looked = start;
    stop_ns = start + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &clients[i]};
        clients[i].fd = udp_connect(port);
        epoll_ctl(epfd, EPOLL_CTL_ADD, clients[i].fd, &ev);
        ask(&clients[i]);
    }
    for (;;) {
        int n = epoll_wait(epfd, events, 256, 20);
        for (int i = 0; i < n; i++)
            on_answer(events[i].data.ptr);
        now = wire_now_ns();
        if (now - looked < 20000000u) continue;
        looked = now;
        if (!look_for_lost(now) && now >= stop_ns) break;
    }
    printf("{\"requests\": %llu, \"errors\": %llu, \"error_kinds\": {\"lost\": %llu, \"wrong\": %llu, \"refused\": "
           "%llu}, ",
           (unsigned long long)done, (unsigned long long)(lost + wrong + refused), (unsigned long long)lost,
           (unsigned long long)wrong, (unsigned long long)refused);
    printf("\"seconds\": %.6f, \"unsent\": 0, \"latency_us\": ", (double)(stop_ns - start) / 1e9);
    printf("{\"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f}}\n", (double)histogram_quantile(&latency, 0.5) / 1e3,
           (double)histogram_quantile(&latency, 0.99) / 1e3, (double)histogram_quantile(&latency, 0.999) / 1e3);
    return 0;
}
