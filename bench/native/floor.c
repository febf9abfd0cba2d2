/* floor: the least that a proxy must do; every bench row is printed as a ratio to it.
 *
 *   floor PORT ORIGIN_PORT      PORT 0: the kernel chooses; prints "PORT\n" and serves until killed
 *   floor-tls PORT ORIGIN_PORT CERTIFICATE KEY      the same source compiled with TLS towards clients
 *
 * One thread, epoll, keep-alive on both sides. Per request: read the client, write the origin,
 * read the origin, write the client. It finds the end of a head, reads method, Host, Connection
 * and Content-Length, adds the same headers as the measured proxies, and relays bodies with
 * backpressure. Idle connections own no buffer.
 *
 * Not a proxy to use: no routing, no timeouts, no logs, no chunked messages (answered by
 * closing, which the generator counts as an error), no check of what it relays.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "channel.h"

#define SCRATCH_BYTES      (512u << 10) /* one read of a long body: 128 KiB cost half as much again */
#define MAX_HEAD           (32u << 10)
#define MAX_ADDED          512
#define MAX_IDLE_UPSTREAMS 1024

enum phase { HEAD, BODY };

struct side {
    int fd;
    struct channel channel;
    uint32_t events;
    bool is_client, close_after;
    enum phase phase;
    uint64_t left;     /* body bytes still to be read from this side */
    struct side *peer; /* the other side of the request in flight, else NULL */
    char *kept;        /* partial head, or pipelined input waiting for its turn */
    size_t kept_len;
    char *pending; /* bytes that this side would not take yet */
    size_t pending_len;
    uint64_t sent_ns; /* upstream: when the request went out */
    char address[INET_ADDRSTRLEN];
};

static struct side *sides[WIRE_MAX_FDS];
static struct side *idle[MAX_IDLE_UPSTREAMS];
static unsigned idle_count, origin_port;
static char scratch[SCRATCH_BYTES + MAX_HEAD], out[SCRATCH_BYTES + MAX_HEAD + MAX_ADDED];
static uint64_t random_state;
static int epfd;
static SSL_CTX *context; /* of clients' side; NULL: no TLS */
#ifdef BENCH_TLS
#define SCHEME "https"
#else
#define SCHEME "http"
#endif

static void serve_client(struct side *c, const char *data, size_t len);

static struct side *add_side(int fd, bool is_client) {
    struct side *s = calloc(1, sizeof *s);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (!s) wire_die("calloc");
    s->fd = fd;
    s->channel = channel_open(fd, is_client ? context : NULL, true);
    s->is_client = is_client;
    s->events = EPOLLIN;
    sides[fd] = s;
    epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
    return s;
}

static void close_side(struct side *s) {
    struct side *peer = s->peer;
    if (!s->is_client) {
        for (unsigned i = 0; i < idle_count; i++) {
            if (idle[i] == s) idle[i--] = idle[--idle_count];
        }
    }
    sides[s->fd] = NULL;
    channel_close(&s->channel);
    free(s->kept);
    free(s->pending);
    free(s);
    if (peer) {
        peer->peer = NULL;
        close_side(peer);
    }
}

static void watch(struct side *s, uint32_t events) {
    struct epoll_event ev = {.events = events, .data.fd = s->fd};
    if (s->events == events) return;
    s->events = events;
    epoll_ctl(epfd, EPOLL_CTL_MOD, s->fd, &ev);
}

static void keep(struct side *s, const char *data, size_t len) {
    free(s->kept);
    s->kept = len ? malloc(len) : NULL;
    s->kept_len = len;
    if (len && !s->kept) wire_die("malloc");
    if (len) memcpy(s->kept, data, len);
}

/* Writes to s; what does not fit is kept and `from` is not read until it has left. */
static bool send_to(struct side *s, struct side *from, const char *data, size_t len) {
    ssize_t n = channel_write(&s->channel, data, len);
    if (n < 0 && errno != EAGAIN) return false;
    size_t done = n < 0 ? 0 : (size_t)n;
    if (done == len) return true;
    s->pending_len = len - done;
    s->pending = malloc(s->pending_len);
    if (!s->pending) wire_die("malloc");
    memcpy(s->pending, data + done, s->pending_len);
    watch(s, EPOLLOUT);
    watch(from, 0);
    return true;
}

static struct side *take_upstream(void) {
    if (idle_count) return idle[--idle_count];
    int fd = wire_connect(origin_port);
    if (fd < 0) return NULL;
    return add_side(fd, false);
}

/* uuid4 as text, 36 bytes, from a PRNG. */
static char *append_uuid(char *to) {
    static const char hex[] = "0123456789abcdef";
    uint64_t word[2] = {wire_random(&random_state), wire_random(&random_state)};
    word[0] = (word[0] & 0xffffffffffff0fffu) | 0x4000u;
    word[1] = (word[1] & 0x3fffffffffffffffu) | 0x8000000000000000u;
    for (unsigned i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20) *to++ = '-';
        *to++ = hex[(word[i >> 4] >> (60 - 4 * (i & 15))) & 15];
    }
    return to;
}

static char *append(char *to, const char *text, size_t len) {
    memcpy(to, text, len);
    return to + len;
}
#define APPEND_TEXT(to, text) append((to), (text), sizeof(text) - 1)

/* A complete request head: rewritten into `out` with the body bytes that came with it. */
static void forward_request(struct side *c, const char *head, const char *end, size_t len) {
    const char *line = NULL, *value, *length = NULL;
    char *to = out;
    if (head[0] != 'G') {
        length = wire_header(head, end, "content-length:", 15, NULL);
        if (!length && wire_header(head, end, "transfer-encoding:", 18, NULL)) {
            close_side(c);
            return;
        }
    }
    if (!wire_header(head, end, "host:", 5, NULL)) {
        close_side(c);
        return;
    }
    value = wire_header(head, end, "connection:", 11, &line);
    c->close_after = value && strncasecmp(value, "close", 5) == 0;
    if (value) {
        const char *next = (const char *)memchr(value, '\n', (size_t)(end - value)) + 1;
        to = append(to, head, (size_t)(line - head));
        to = append(to, next, (size_t)(end - 2 - next));
    } else {
        to = append(to, head, (size_t)(end - 2 - head));
    }
    to = APPEND_TEXT(to, "x-forwarded-for: ");
    to = append(to, c->address, strlen(c->address));
    to = APPEND_TEXT(to, "\r\nx-forwarded-proto: " SCHEME "\r\nx-request-id: ");
    to = append_uuid(to);
    to = APPEND_TEXT(to, "\r\nx-edge-internal: true\r\nx-edge-expected-rq-timeout-ms: 15000\r\n\r\n");
    uint64_t size = length ? wire_number(length) : 0;
    size_t have = len - (size_t)(end - head), body = have < size ? have : (size_t)size;
    to = append(to, end, body);
    keep(c, end + body, have - body);
    c->left = size - body;
    c->phase = c->left ? BODY : HEAD;

    struct side *u = take_upstream();
    if (!u) {
        close_side(c);
        return;
    }
    u->peer = c;
    c->peer = u;
    u->phase = HEAD;
    u->sent_ns = wire_now_ns();
    if (!send_to(u, c, out, (size_t)(to - out))) close_side(c);
}

/* The answer has been handed to the client whole: both sides are free again. */
static void finish(struct side *u) {
    struct side *c = u->peer;
    u->peer = NULL;
    c->peer = NULL;
    if (c->left || u->pending || idle_count == MAX_IDLE_UPSTREAMS)
        close_side(u);
    else
        idle[idle_count++] = u;
    if (c->left || c->close_after) {
        close_side(c);
    } else if (c->kept) {
        size_t len = c->kept_len;
        memcpy(scratch, c->kept, len);
        keep(c, NULL, 0);
        serve_client(c, scratch, len);
    }
}

static void forward_response(struct side *u, const char *head, const char *end, size_t len) {
    struct side *c = u->peer;
    const char *length = wire_header(head, end, "content-length:", 15, NULL);
    if (!length) {
        close_side(u);
        return;
    }
    char *to = append(out, head, (size_t)(end - 2 - head));
    to = APPEND_TEXT(to, "server: floor\r\nx-edge-upstream-service-time: ");
    to += sprintf(to, "%u", (unsigned)((wire_now_ns() - u->sent_ns) / 1000000u));
    if (c->close_after) to = APPEND_TEXT(to, "\r\nconnection: close");
    to = APPEND_TEXT(to, "\r\n\r\n");
    size_t body = len - (size_t)(end - head);
    to = append(to, end, body);
    u->left = wire_number(length) - body;
    u->phase = u->left ? BODY : HEAD;
    if (!send_to(c, u, out, (size_t)(to - out)))
        close_side(u);
    else if (!u->left && !c->pending)
        finish(u);
}

static void serve_client(struct side *c, const char *data, size_t len) {
    if (c->phase == BODY) {
        struct side *u = c->peer;
        size_t body = len < c->left ? len : (size_t)c->left;
        keep(c, data + body, len - body);
        c->left -= body;
        if (!c->left) c->phase = HEAD;
        if (!send_to(u, c, data, body)) close_side(c);
        return;
    }
    const char *end = c->peer ? NULL : wire_head_end(data, len);
    if (end)
        forward_request(c, data, end, len);
    else if (len > MAX_HEAD)
        close_side(c);
    else
        keep(c, data, len);
}

static void serve_upstream(struct side *u, const char *data, size_t len) {
    if (!u->peer) {
        close_side(u); /* bytes that nobody asked for */
    } else if (u->phase == BODY) {
        u->left -= len < u->left ? len : u->left;
        if (!send_to(u->peer, u, data, len))
            close_side(u);
        else if (!u->left && !u->peer->pending)
            finish(u);
    } else {
        const char *end = wire_head_end(data, len);
        if (end)
            forward_response(u, data, end, len);
        else if (len > MAX_HEAD)
            close_side(u);
        else
            keep(u, data, len);
    }
}

static void on_writable(struct side *s) {
    ssize_t n = channel_write(&s->channel, s->pending, s->pending_len);
    if (n < 0) {
        if (errno != EAGAIN) close_side(s);
        return;
    }
    s->pending_len -= (size_t)n;
    if (s->pending_len) {
        memmove(s->pending, s->pending + n, s->pending_len);
        return;
    }
    free(s->pending);
    s->pending = NULL;
    watch(s, EPOLLIN);
    if (s->peer) watch(s->peer, EPOLLIN);
    /* A client owes us nothing before its answer has begun, so nothing left means: all sent. */
    if (s->is_client && s->peer && !s->peer->left) finish(s->peer);
}

static void on_readable(struct side *s, uint32_t events) {
    if (!(s->events & EPOLLIN)) { /* paused: only a hang-up may end it */
        if (events & (EPOLLHUP | EPOLLERR)) close_side(s);
        return;
    }
    size_t kept = s->kept_len;
    if (kept) memcpy(scratch, s->kept, kept);
    size_t room = sizeof scratch - kept;
    ssize_t n = channel_read(&s->channel, scratch + kept, room < SCRATCH_BYTES ? room : SCRATCH_BYTES);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN) close_side(s);
        return;
    }
    if (kept) keep(s, NULL, 0);
    if (s->is_client)
        serve_client(s, scratch, kept + (size_t)n);
    else
        serve_upstream(s, scratch, kept + (size_t)n);
}

static void accept_all(int listener) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int fd;
    while ((fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= WIRE_MAX_FDS) {
            close(fd);
            continue;
        }
        wire_set_nodelay(fd);
        struct side *c = add_side(fd, true);
        inet_ntop(AF_INET, &from.sin_addr, c->address, sizeof c->address);
    }
}

int main(int argc, char **argv) {
    struct epoll_event events[256];
#ifdef BENCH_TLS
    if (argc == 5) context = channel_servers(argv[3], argv[4]);
#endif
    if (argc != 3 && !context) {
        fprintf(stderr, "usage: floor PORT ORIGIN_PORT [CERTIFICATE KEY]\n");
        return 2;
    }
    unsigned port = (unsigned)strtoul(argv[1], NULL, 10);
    origin_port = (unsigned)strtoul(argv[2], NULL, 10);
    random_state = wire_now_ns();
    signal(SIGPIPE, SIG_IGN);
    int listener = wire_serve(&port, &epfd);
    for (;;) {
        int n = epoll_wait(epfd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_all(listener);
                continue;
            }
            struct side *s = sides[fd];
            if (!s) continue;
            if (events[i].events & EPOLLOUT)
                on_writable(s);
            else
                on_readable(s, events[i].events);
        }
    }
}
