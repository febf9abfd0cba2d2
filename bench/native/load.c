/* load: the HTTP/1.1 generator of the bench. One thread, epoll, no allocation after start.
 *
 *   load --port P [--connections 64] [--seconds 4] [--requests N] [--rate R] [--close]
 *        [--hosts K] [--paths K] [--suffix /bytes/N] [--body N] [--users K] [--refusals] [--rotate]
 *        [--header "Name: value"] [--encoding NAME]
 *
 * Closed loop (no --rate): every connection sends its next request when an answer is complete.
 * Open loop (--rate R): request i is due at start + i / R, whether or not a connection is free;
 *   its latency counts from when it was due, so a stall is charged to every request it delayed
 *   (no coordinated omission). What was due and never sent is reported as "unsent".
 * --close: a new connection for each request ("Connection: close", then end of file).
 * --hosts K: Host is www-<i>.example.com, i random below K (default 1). --paths K: the path is
 *   /route-<i>/get, i random below K (default: /get). --body N: POST with Content-Length N.
 * --users K: a header X-User-Id: user-<i>, i random below K.
 * --rotate: with --rate, the connection that has waited longest is next, so that none idles until it is closed.
 * --header: one line more. --encoding: the only one that is accepted; an answer in chunks is one then.
 * --refusals: a 429 with an empty chunked body is an answer, not an error; counted as "refused" too.
 *
 * Stops at --seconds or after --requests, whichever comes first; waits 3 s for the last answers.
 * Prints one JSON object. Anything but a whole 200 answer with Content-Length counts as an error.
 * Long answer bodies are dropped inside the kernel (MSG_TRUNC): content is the probe's business.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#include "chunked.h"
#include "histogram.h"
#include "options.h"
#include "request.h"
#include "wire.h"

#define MAX_CONNS  4096
#define HEAD_BYTES 4096 /* an answer's head must fit */
#define GRACE_NS   3000000000u

enum state { CONNECTING, READY, SENDING, ANSWER_HEAD, ANSWER_BODY, DRAINING, DEAD };

struct conn {
    int fd;
    enum state state;
    bool close_after;
    uint32_t events;
    uint64_t start_ns, body_left;
    size_t sent, have;
    char *request;
    size_t request_len;
    struct chunked chunked;
    char answer[HEAD_BYTES];
};

static struct {
    uint64_t issued, done, refused, bytes;
    uint64_t connect_errors, io_errors, status_errors, framing_errors, timeouts;
    unsigned wrong_status; /* the last one that is a status error */
    unsigned last_status;
} count;

static struct conn conns[MAX_CONNS];
static unsigned ready[MAX_CONNS], ready_count, open_count;
static struct histogram latency;
static uint64_t random_state, stop_ns;
static int epfd;

static void watch(struct conn *c, uint32_t events, int op) {
    struct epoll_event ev = {.events = events, .data.u32 = (uint32_t)(c - conns)};
    if (op == EPOLL_CTL_MOD && c->events == events) return;
    c->events = events;
    epoll_ctl(epfd, op, c->fd, &ev);
}

static void open_conn(struct conn *c) {
    if (opt.close) c->start_ns = wire_now_ns(); /* a new connection is part of the request */
    c->fd = wire_connect(opt.port);
    c->have = 0;
    if (c->fd < 0) {
        count.connect_errors++;
        c->state = DEAD;
        open_count--;
        return;
    }
    c->state = CONNECTING;
    watch(c, EPOLLOUT, EPOLL_CTL_ADD);
}

static bool may_issue(uint64_t now) { return count.issued < opt.requests && now < stop_ns; }

/* Ends a connection after an error; another takes its place as long as the run lasts. */
static void fail(struct conn *c, uint64_t *counter) {
    (*counter)++;
    close(c->fd);
    if (count.connect_errors > 1000 || !may_issue(wire_now_ns())) {
        c->state = DEAD;
        open_count--;
        return;
    }
    open_conn(c);
}

static void write_request(struct conn *c) { c->request_len = request_write(c->request, &random_state); }

static void push_request(struct conn *c) {
    ssize_t n = write(c->fd, c->request + c->sent, c->request_len - c->sent);
    if (n < 0 && errno != EAGAIN) {
        fail(c, &count.io_errors);
        return;
    }
    if (n > 0) c->sent += (size_t)n;
    if (c->sent == c->request_len) {
        c->state = ANSWER_HEAD;
        c->have = 0;
        watch(c, EPOLLIN, EPOLL_CTL_MOD);
    } else {
        c->state = SENDING;
        watch(c, EPOLLOUT, EPOLL_CTL_MOD);
    }
}

static void start_request(struct conn *c, uint64_t due_ns) {
    count.issued++;
    if (!opt.close) c->start_ns = due_ns;
    c->sent = 0;
    write_request(c);
    push_request(c);
}

/* A connection has nothing to do: give it the next request, or let it wait for one. */
static void offer(struct conn *c, uint64_t now) {
    c->state = READY;
    if (opt.rate > 0)
        ready[ready_count++] = (unsigned)(c - conns);
    else if (may_issue(now))
        start_request(c, now);
}

static void on_answer(struct conn *c) {
    uint64_t now = wire_now_ns();
    histogram_add(&latency, now - c->start_ns);
    count.done++;
    if (opt.close) {
        c->state = DRAINING;
    } else if (c->close_after) {
        close(c->fd);
        open_conn(c); /* the proxy's limit of requests per connection: not an error */
    } else {
        offer(c, now);
    }
}

static void on_drained(struct conn *c) {
    close(c->fd);
    if (!may_issue(wire_now_ns())) {
        c->state = DEAD;
        open_count--;
        return;
    }
    open_conn(c);
}

/* A 429, from its first byte to the last chunk; false: more is to come, or it was wrong and is counted. */
static bool on_refusal(struct conn *c, const char *end) {
    static const char last[] = "0\r\n\r\n";
    size_t have = c->have - (size_t)(end - c->answer);
    const char *value = wire_header(c->answer, end, "transfer-encoding:", 18, NULL);
    if (!value || strncasecmp(value, "chunked\r", 8) != 0 || have > 5 || memcmp(end, last, have) != 0) {
        fail(c, &count.framing_errors);
        return false;
    }
    if (have < 5) return false;
    count.refused++;
    return true;
}

static void on_answer_head(struct conn *c) {
    ssize_t n = read(c->fd, c->answer + c->have, HEAD_BYTES - c->have);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN) fail(c, &count.io_errors);
        return;
    }
    c->have += (size_t)n;
    count.bytes += (uint64_t)n;
    const char *end = wire_head_end(c->answer, c->have);
    if (!end) {
        if (c->have == HEAD_BYTES) fail(c, &count.framing_errors);
        return;
    }
    count.last_status = (unsigned)wire_number(c->answer + 9);
    const char *value;
    c->body_left = 0;
    if (opt.refusals && count.last_status == 429) {
        if (!on_refusal(c, end)) return;
    } else if (count.last_status != 200) {
        count.wrong_status = count.last_status;
        fail(c, &count.status_errors);
        return;
    } else if (opt.encoding && (value = wire_header(c->answer, end, "transfer-encoding:", 18, NULL))) {
        c->chunked.have = 0;
        c->body_left = !chunked_ends(&c->chunked, end, c->have - (size_t)(end - c->answer)) ? CHUNKED : 0;
    } else {
        value = wire_header(c->answer, end, "content-length:", 15, NULL);
        uint64_t body = c->have - (size_t)(end - c->answer), size = value ? wire_number(value) : 0;
        if (!value || body > size) {
            fail(c, &count.framing_errors);
            return;
        }
        c->body_left = size - body;
    }
    value = wire_header(c->answer, end, "connection:", 11, NULL);
    c->close_after = value && strncasecmp(value, "close", 5) == 0;
    if (c->body_left)
        c->state = ANSWER_BODY;
    else
        on_answer(c);
}

static void on_answer_body(struct conn *c) {
    if (c->body_left == CHUNKED) {
        static char piece[1 << 16];
        ssize_t got = read(c->fd, piece, sizeof piece);
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN) fail(c, &count.io_errors);
        } else {
            count.bytes += (uint64_t)got;
            if (chunked_ends(&c->chunked, piece, (size_t)got)) on_answer(c);
        }
        return;
    }
    size_t want = c->body_left < (1u << 20) ? (size_t)c->body_left : 1u << 20;
    ssize_t n = recv(c->fd, NULL, want, MSG_TRUNC);
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN) fail(c, &count.io_errors);
        return;
    }
    count.bytes += (uint64_t)n;
    c->body_left -= (uint64_t)n;
    if (!c->body_left) on_answer(c);
}

/* The free connection for the next request of an open loop. */
static struct conn *take_ready(void) {
    unsigned at = opt.rotate ? 0 : ready_count - 1, index = ready[at];
    ready_count--;
    memmove(ready + at, ready + at + 1, (ready_count - at) * sizeof *ready);
    return &conns[index];
}

static void on_idle_event(struct conn *c) {
    for (unsigned i = 0; i < ready_count; i++) {
        if (ready[i] == (unsigned)(c - conns)) ready[i] = ready[--ready_count];
    }
    close(c->fd); /* the proxy closed a free connection: allowed */
    open_conn(c);
}

static void on_event(struct conn *c, uint32_t events) {
    char byte;
    switch (c->state) {
    case CONNECTING:
        if (events & (EPOLLERR | EPOLLHUP)) {
            fail(c, &count.connect_errors);
            break;
        }
        watch(c, EPOLLIN, EPOLL_CTL_MOD);
        offer(c, wire_now_ns());
        break;
    case READY:
        on_idle_event(c);
        break;
    case SENDING:
        push_request(c);
        break;
    case ANSWER_HEAD:
        on_answer_head(c);
        break;
    case ANSWER_BODY:
        on_answer_body(c);
        break;
    case DRAINING:
        if (read(c->fd, &byte, 1) == 0)
            on_drained(c);
        else if (errno != EAGAIN)
            fail(c, &count.io_errors);
        break;
    case DEAD:
        break;
    }
}

static unsigned in_flight(void) {
    unsigned n = 0;
    for (unsigned i = 0; i < opt.connections; i++) {
        n += conns[i].state == SENDING || conns[i].state == ANSWER_HEAD || conns[i].state == ANSWER_BODY;
    }
    return n;
}

/* Open loop: nothing is due before every connection is there. Returns the time of that. */
static uint64_t connect_all(void) {
    struct epoll_event events[512];
    uint64_t give_up = wire_now_ns() + GRACE_NS;
    while (ready_count < open_count && wire_now_ns() < give_up) {
        int n = epoll_wait(epfd, events, 512, 50);
        for (int i = 0; i < n; i++)
            on_event(&conns[events[i].data.u32], events[i].events);
    }
    return wire_now_ns();
}

/* Runs to the end; returns the requests that were due and never sent (open loop). */
static uint64_t run(void) {
    struct epoll_event events[512];
    uint64_t start_ns = stop_ns - (uint64_t)(opt.seconds * 1e9);
    double gap = opt.rate > 0 ? 1e9 / opt.rate : 0;
    uint64_t due_index = 0;
    for (;;) {
        uint64_t now = wire_now_ns();
        struct timespec wait = {.tv_nsec = 50000000};
        bool over = !may_issue(now);
        if (over && (now >= stop_ns + GRACE_NS || !open_count || !in_flight())) break;
        if (opt.rate > 0 && !over) {
            uint64_t due = start_ns + (uint64_t)((double)due_index * gap);
            while (due <= now && ready_count && count.issued < opt.requests) {
                start_request(take_ready(), due);
                due = start_ns + (uint64_t)((double)++due_index * gap);
            }
            uint64_t until = due > now ? due - now : 0;
            if (ready_count && until < 50000000) wait.tv_nsec = (long)until;
        }
        int n = epoll_pwait2(epfd, events, 512, &wait, NULL);
        for (int i = 0; i < n; i++)
            on_event(&conns[events[i].data.u32], events[i].events);
    }
    count.timeouts = in_flight();
    uint64_t end = wire_now_ns() < stop_ns ? wire_now_ns() : stop_ns;
    uint64_t due_total = opt.rate > 0 ? (uint64_t)((double)(end - start_ns) / gap) : 0;
    if (due_total > opt.requests) due_total = opt.requests;
    return due_total > due_index ? due_total - due_index : 0;
}

static void print_result(double seconds, uint64_t unsent) {
    uint64_t errors =
        count.connect_errors + count.io_errors + count.status_errors + count.framing_errors + count.timeouts;
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    static const char *names[] = {"p50", "p90", "p99", "p999"};
    printf("{\"requests\": %llu, \"refused\": %llu, \"errors\": %llu, \"seconds\": %.6f, \"bytes\": %llu, ",
           (unsigned long long)count.done, (unsigned long long)count.refused, (unsigned long long)errors, seconds,
           (unsigned long long)count.bytes);
    printf("\"unsent\": %llu, ", (unsigned long long)unsent);
    printf("\"error_kinds\": {\"connect\": %llu, \"io\": %llu, \"status\": %llu, \"framing\": %llu, "
           "\"timeout\": %llu, \"last_wrong_status\": %u}, \"last_status\": %u, \"latency_us\": {",
           (unsigned long long)count.connect_errors, (unsigned long long)count.io_errors,
           (unsigned long long)count.status_errors, (unsigned long long)count.framing_errors,
           (unsigned long long)count.timeouts, count.wrong_status, count.last_status);
    for (unsigned i = 0; i < 4; i++) {
        printf("\"%s\": %.1f, ", names[i], (double)histogram_quantile(&latency, quantiles[i]) / 1e3);
    }
    printf("\"max\": %.1f}}\n", (double)latency.max / 1e3);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* the open loop wakes on time, not 50 us later */
    epfd = epoll_create1(EPOLL_CLOEXEC);
    random_state = wire_now_ns();
    uint64_t start = wire_now_ns();
    stop_ns = start + (uint64_t)(opt.seconds * 1e9);
    open_count = opt.connections;
    for (unsigned i = 0; i < opt.connections; i++) {
        conns[i].request = malloc(2048 + MAX_HEADER + (size_t)opt.body);
        if (!conns[i].request) wire_die("malloc");
        open_conn(&conns[i]);
    }
    if (opt.rate > 0) start = connect_all();
    stop_ns = start + (uint64_t)(opt.seconds * 1e9);
    uint64_t unsent = run();
    uint64_t end = wire_now_ns();
    print_result((double)(end < stop_ns ? end - start : stop_ns - start) / 1e9, unsent);
    return 0;
}
