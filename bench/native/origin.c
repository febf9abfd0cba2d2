/* origin: the backend behind every measured proxy. One thread, epoll, HTTP/1.1 keep-alive.
 *
 *   origin [PORT]      0 or nothing: the kernel chooses; prints "PORT\n" and serves until killed
 *
 *   any path           200, 128-byte body
 *   .../bytes/N        200, N bytes with Content-Length, from a static buffer
 *   ...?echo           200, the request head as it arrived (for the correctness probe)
 *   POST/PUT           body (Content-Length or chunked) read to its end, then answered as above
 *
 * Pipelining-safe: answers leave in order, and nothing is parsed while a long answer is being
 * sent. Body byte i is ALPHABET[i % 64], so a reader can check any range. Knows no errors: a
 * message that it cannot read closes the connection, which the generator counts.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "wire.h"

#define ALPHABET      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define SMALL_BODY    128
#define STATIC_BYTES  (1u << 20)
#define SCRATCH_BYTES (256u << 10)
#define MAX_HEAD      (32u << 10) /* more than any proxy here can make of our requests */
#define INLINE_BODY   (8u << 10)  /* up to here a body is copied beside its head: one write */

enum body_state { NO_BODY, BODY_LENGTH, CHUNK_SIZE, CHUNK_EXT, CHUNK_DATA, CHUNK_CRLF, TRAILER };

struct conn {
    int fd;
    uint32_t events;
    enum body_state body;
    bool close_after, waiting_answer, echo, head_only;
    uint64_t body_left;       /* request body or chunk bytes still to come */
    uint64_t line_len;        /* bytes in the current trailer line */
    uint64_t answer_size;     /* body size of the answer being prepared */
    uint64_t sent, send_left; /* static body bytes sent / still to send */
    char *kept;               /* unparsed input, or NULL */
    size_t kept_len;
    char *pending; /* unsent copied output, or NULL */
    size_t pending_len;
    char *echo_head;
    size_t echo_len;
};

static struct conn *conns[WIRE_MAX_FDS];
static char static_body[STATIC_BYTES];
static char scratch[SCRATCH_BYTES + MAX_HEAD];
static char out[SCRATCH_BYTES];
static size_t out_len;
static int epfd;

static void close_conn(struct conn *c) {
    conns[c->fd] = NULL;
    close(c->fd);
    free(c->kept);
    free(c->pending);
    free(c->echo_head);
    free(c);
}

static void watch(struct conn *c, uint32_t events) {
    struct epoll_event ev = {.events = events, .data.fd = c->fd};
    if (c->events == events) return;
    c->events = events;
    epoll_ctl(epfd, EPOLL_CTL_MOD, c->fd, &ev);
}

static void *copy_span(const char *from, size_t len) {
    char *copy = malloc(len);
    if (!copy) wire_die("malloc");
    memcpy(copy, from, len);
    return copy;
}

/* Writes `out`, then the static body. 0: all gone, 1: must wait for EPOLLOUT, -1: peer gone. */
static int flush_output(struct conn *c) {
    const char *from = c->pending ? c->pending : out;
    size_t len = c->pending ? c->pending_len : out_len, done = 0;
    while (done < len || c->send_left) {
        size_t chunk = c->send_left < STATIC_BYTES - 64 ? (size_t)c->send_left : STATIC_BYTES - 64;
        struct iovec iov[2] = {{(void *)(uintptr_t)(from + done), len - done}, {static_body + (c->sent & 63), chunk}};
        ssize_t n = c->send_left ? writev(c->fd, iov, 2) : write(c->fd, from + done, len - done);
        if (n < 0) {
            if (errno != EAGAIN) return -1;
            if (done < len) {
                char *rest = copy_span(from + done, len - done);
                free(c->pending);
                c->pending = rest;
                c->pending_len = len - done;
            } else {
                free(c->pending);
                c->pending = NULL;
            }
            out_len = 0;
            return 1;
        }
        size_t head = (size_t)n < len - done ? (size_t)n : len - done;
        done += head;
        c->sent += (size_t)n - head;
        c->send_left -= (size_t)n - head;
    }
    free(c->pending);
    c->pending = NULL;
    out_len = 0;
    return 0;
}

/* Appends the answer to `out`; a long body is left in send_left. */
static void append_answer(struct conn *c) {
    uint64_t size = c->echo ? c->echo_len : c->answer_size;
    out_len += (size_t)snprintf(out + out_len, 256,
                                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
                                "%llu\r\n%s\r\n",
                                (unsigned long long)size, c->close_after ? "Connection: close\r\n" : "");
    c->waiting_answer = false;
    if (c->head_only) {
        size = 0;
    } else if (c->echo) {
        memcpy(out + out_len, c->echo_head, c->echo_len);
        out_len += c->echo_len;
    } else if (size <= INLINE_BODY) {
        memcpy(out + out_len, static_body, (size_t)size);
        out_len += (size_t)size;
    } else {
        c->sent = 0;
        c->send_left = size;
    }
    free(c->echo_head);
    c->echo_head = NULL;
}

static void on_head(struct conn *c, const char *head, const char *end) {
    const char *value, *line_end = memchr(head, '\r', (size_t)(end - head));
    size_t line = (size_t)(line_end - head);
    const char *bytes = memmem(head, line, "/bytes/", 7);
    c->waiting_answer = true;
    c->head_only = head[0] == 'H';
    c->answer_size = bytes ? wire_number(bytes + 7) : SMALL_BODY;
    c->echo = memmem(head, line, "?echo", 5) != NULL;
    if (c->echo) {
        c->echo_len = (size_t)(end - head);
        c->echo_head = copy_span(head, c->echo_len);
    }
    value = wire_header(head, end, "connection:", 11, NULL);
    c->close_after = value && strncasecmp(value, "close", 5) == 0;
    c->body = NO_BODY;
    if (head[0] == 'G') return; /* our GETs have no body: spare the two searches */
    value = wire_header(head, end, "content-length:", 15, NULL);
    if (value) {
        c->body_left = wire_number(value);
        c->body = c->body_left ? BODY_LENGTH : NO_BODY;
    } else if (wire_header(head, end, "transfer-encoding:", 18, NULL)) {
        c->body_left = 0;
        c->body = CHUNK_SIZE;
    }
}

/* Consumes request body bytes; returns the first byte not consumed. NULL: not a body. */
static const char *eat_body(struct conn *c, const char *p, const char *end) {
    while (p < end && c->body != NO_BODY) {
        if (c->body == BODY_LENGTH || c->body == CHUNK_DATA) {
            uint64_t n = (uint64_t)(end - p) < c->body_left ? (uint64_t)(end - p) : c->body_left;
            p += n;
            c->body_left -= n;
            if (c->body_left) return p;
            c->body = c->body == BODY_LENGTH ? NO_BODY : CHUNK_CRLF;
            continue;
        }
        char b = *p++;
        if (c->body == CHUNK_SIZE && b != '\n' && b != '\r' && b != ';') {
            int digit = b >= '0' && b <= '9' ? b - '0' : (b | 0x20) - 'a' + 10;
            if (digit < 0 || digit > 15 || c->body_left >> 40) return NULL;
            c->body_left = c->body_left * 16 + (uint64_t)digit;
        } else if (c->body == CHUNK_SIZE && b == ';') {
            c->body = CHUNK_EXT;
        } else if ((c->body == CHUNK_SIZE || c->body == CHUNK_EXT) && b == '\n') {
            c->body = c->body_left ? CHUNK_DATA : TRAILER;
            c->line_len = 0;
        } else if (c->body == CHUNK_CRLF && b == '\n') {
            c->body = CHUNK_SIZE;
            c->body_left = 0;
        } else if (c->body == TRAILER && b == '\n') {
            if (!c->line_len) c->body = NO_BODY;
            c->line_len = 0;
        } else if (c->body == TRAILER && b != '\r') {
            c->line_len++;
        }
    }
    return p;
}

/* Parses what is there, answers what is complete; -1 when the connection is to be closed. */
static int serve(struct conn *c, const char *p, const char *end) {
    bool stop = false;
    while (!stop) {
        if (c->body != NO_BODY) {
            p = eat_body(c, p, end);
            if (!p) return -1;
        }
        if (c->body == NO_BODY && c->waiting_answer) {
            append_answer(c);
            stop = c->send_left || c->close_after || out_len > SCRATCH_BYTES - MAX_HEAD - INLINE_BODY;
            continue;
        }
        const char *head_end = p < end && c->body == NO_BODY ? wire_head_end(p, (size_t)(end - p)) : NULL;
        if (!head_end) break;
        on_head(c, p, head_end);
        p = head_end;
    }
    free(c->kept);
    c->kept = NULL;
    c->kept_len = (size_t)(end - p);
    if (c->kept_len > MAX_HEAD && !stop) return -1;
    if (c->kept_len) c->kept = copy_span(p, c->kept_len);
    if (!out_len && !c->send_left) return 0;
    int rc = flush_output(c);
    if (rc < 0 || (rc == 0 && c->close_after)) return -1;
    watch(c, rc ? EPOLLOUT : EPOLLIN);
    return rc == 0 && stop ? 1 : 0;
}

/* Serves the kept input again as long as answers leave at once. */
static int serve_kept(struct conn *c) {
    int rc = 1;
    while (rc == 1 && c->kept) {
        size_t len = c->kept_len < sizeof scratch ? c->kept_len : sizeof scratch;
        memcpy(scratch, c->kept, len);
        rc = serve(c, scratch, scratch + len);
    }
    return rc;
}

static void on_event(struct conn *c, uint32_t events) {
    int rc = 0;
    if (events & EPOLLOUT) {
        rc = flush_output(c);
        if (rc == 0) {
            if (c->close_after) rc = -1;
            watch(c, EPOLLIN);
            if (rc == 0) rc = serve_kept(c);
        }
    } else {
        size_t kept = c->kept_len;
        if (kept) memcpy(scratch, c->kept, kept);
        ssize_t n = read(c->fd, scratch + kept, SCRATCH_BYTES);
        if (n <= 0) {
            rc = n < 0 && errno == EAGAIN ? 0 : -1;
        } else {
            rc = serve(c, scratch, scratch + kept + (size_t)n);
            if (rc == 1) rc = serve_kept(c);
        }
    }
    out_len = 0;
    if (rc < 0) close_conn(c);
}

static void accept_all(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (fd >= WIRE_MAX_FDS) {
            close(fd);
            continue;
        }
        struct conn *c = calloc(1, sizeof *c);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        if (!c) wire_die("calloc");
        c->fd = fd;
        c->events = EPOLLIN;
        wire_set_nodelay(fd);
        conns[fd] = c;
        epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
    }
}

int main(int argc, char **argv) {
    unsigned port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct epoll_event events[256];
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < STATIC_BYTES; i++)
        static_body[i] = ALPHABET[i & 63];
    int listener = wire_serve(&port, &epfd);
    for (;;) {
        int n = epoll_wait(epfd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(listener);
            else if (conns[fd])
                on_event(conns[fd], events[i].events);
        }
    }
}
