/* handshakes: new TLS 1.3 connections, one request on each; whole handshakes, or resumed ones.
 *
 *   handshakes --port P [--connections 64] [--seconds 4] [--resume]
 *
 * Closed loop: every slot opens its next connection when the answer is whole and the server has ended the last one ("Connection: close").
 * --resume: each offers the newest ticket that its slot was given; one that is not resumed then is an error, but for a slot's first.
 * Without it none offers any, and one that says it was resumed is an error.
 *
 * Prints one JSON object in the shape of load.c. Anything but a whole 200 answer with Content-Length counts as an error. The floor of what a
 * client costs is this program's affair: read the proxy's CPU, not the requests/s (bench/README.md). */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "channel.h"
#include "histogram.h"

#define MAX_SLOTS  4096
#define HEAD_BYTES 4096
#define GRACE_NS   3000000000u

static const char request[] =
    "GET /get HTTP/1.1\r\nHost: www-0.example.com\r\nUser-Agent: edgefast-bench/1.0 (closed loop)\r\n"
    "Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\n"
    "Accept-Language: en-US,en;q=0.5\r\nCookie: session=0123456789abcdef0123456789abcdef\r\nConnection: close\r\n\r\n";

struct slot {
    struct channel channel;
    bool open, sent, offered;
    uint64_t start_ns;
    size_t have;
    SSL_SESSION *ticket;
    char answer[HEAD_BYTES];
};

static struct slot slots[MAX_SLOTS];
static struct histogram latency;
static uint64_t done, errors, resumed, stop_ns;
static unsigned port, count = 64, open_count;
static bool resume;
static SSL_CTX *context;
static int epfd;

static int keep_ticket(SSL *tls, SSL_SESSION *session) {
    struct slot *s = SSL_get_app_data(tls);
    SSL_SESSION_free(s->ticket);
    s->ticket = session;
    return 1;
}

static void open_slot(struct slot *s) {
    int fd = wire_connect(port);
    struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = s};
    if (fd < 0) wire_die("connect");
    s->channel = channel_open(fd, context, false);
    SSL_set_app_data(s->channel.tls, s);
    SSL_set_tlsext_host_name(s->channel.tls, "www-0.example.com");
    s->offered = resume && s->ticket && SSL_set_session(s->channel.tls, s->ticket);
    s->open = true;
    s->sent = false;
    s->have = 0;
    s->start_ns = wire_now_ns();
    open_count++;
    epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
}

/* A whole 200 answer, and the handshake that was asked for. */
static bool is_good(struct slot *s) {
    const char *end = wire_head_end(s->answer, s->have);
    const char *length = end ? wire_header(s->answer, end, "content-length:", 15, NULL) : NULL;
    bool reused = SSL_session_reused(s->channel.tls);
    resumed += reused;
    return length && wire_number(s->answer + 9) == 200 && s->have - (size_t)(end - s->answer) == wire_number(length) &&
           reused == s->offered;
}

static void end_slot(struct slot *s, bool good) {
    if (good) {
        done++;
        histogram_add(&latency, wire_now_ns() - s->start_ns);
    } else {
        errors++;
    }
    channel_close(&s->channel);
    s->open = false;
    open_count--;
    if (wire_now_ns() < stop_ns) open_slot(s);
}

static void step(struct slot *s, uint32_t events) {
    if (!s->sent) {
        if (events & EPOLLOUT) { /* connected: from now on only what comes is waited for */
            struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
            epoll_ctl(epfd, EPOLL_CTL_MOD, s->channel.fd, &ev);
        }
        ssize_t n = channel_write(&s->channel, request, sizeof request - 1);
        if (n < 0 && errno == EAGAIN) return;
        if (n != (ssize_t)sizeof request - 1) {
            end_slot(s, false);
            return;
        }
        s->sent = true;
    }
    for (;;) {
        ssize_t n = s->have < HEAD_BYTES ? channel_read(&s->channel, s->answer + s->have, HEAD_BYTES - s->have) : 0;
        if (n > 0) {
            s->have += (size_t)n;
        } else {
            if (n < 0 && errno == EAGAIN) return;
            end_slot(s, s->have && is_good(s)); /* some servers end without a close_notify */
            return;
        }
    }
}

static void read_options(int argc, char **argv, double *seconds) {
    static const struct option words[] = {
        {"port", 1, 0, 'p'}, {"connections", 1, 0, 'c'}, {"seconds", 1, 0, 's'}, {"resume", 0, 0, 'r'}, {0, 0, 0, 0}};
    int key;
    while ((key = getopt_long(argc, argv, "", words, NULL)) != -1) {
        if (key == 'p')
            port = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 'c')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 's')
            *seconds = strtod(optarg, NULL);
        else if (key == 'r')
            resume = true;
        else
            exit(2);
    }
    if (!port || !count || count > MAX_SLOTS) {
        fprintf(stderr, "handshakes: --port and 1..%d --connections are needed\n", MAX_SLOTS);
        exit(2);
    }
}

int main(int argc, char **argv) {
    struct epoll_event events[256];
    double seconds = 4;
    read_options(argc, argv, &seconds);
    signal(SIGPIPE, SIG_IGN);
    context = channel_clients();
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_ticket);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    uint64_t start = wire_now_ns();
    stop_ns = start + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < count; i++)
        open_slot(&slots[i]);
    while (open_count && wire_now_ns() < stop_ns + GRACE_NS) {
        int n = epoll_wait(epfd, events, 256, 50);
        for (int i = 0; i < n; i++)
            step(events[i].data.ptr, events[i].events);
    }
    errors += open_count;
    printf(
        "{\"requests\": %llu, \"errors\": %llu, \"resumed\": %llu, \"seconds\": %.6f, \"unsent\": 0, \"latency_us\": ",
        (unsigned long long)done, (unsigned long long)errors, (unsigned long long)resumed, seconds);
    printf("{\"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f}}\n", (double)histogram_quantile(&latency, 0.5) / 1e3,
           (double)histogram_quantile(&latency, 0.99) / 1e3, (double)histogram_quantile(&latency, 0.999) / 1e3);
    return 0;
}
