/* load-h2: the HTTP/2 generator of the bench, closed loop, prior knowledge. One thread, epoll, libnghttp2.
 *
 *   load-h2 --port P [--connections 8] [--streams 16] [--seconds 4] [--grpc] [--beside]
 *
 * Each connection keeps so many streams open: when an answer is complete, the next request begins. The requests are load's, of route 0.
 * --grpc: unary calls of /bench.Echo/Unary with an empty message; an answer is whole with grpc-status 0 alone.
 * --beside: two clients more, which are not counted: one asks for 10 MiB on each of 16 streams and reads nothing, the other takes an answer
 *   of 10 MiB at 640 KiB/s. "cut": how often they were ended.
 *
 * Stops at --seconds; waits 3 s for the last answers. Prints one JSON object in the shape of load's. An answer counts when :status is 200,
 * all of its 128 bytes (or its message) have come and its end is no reset; anything else is an error. A connection that the proxy ends while
 * nothing is open on it is made anew.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "h2_link.h"
#include "histogram.h"

#define MAX_CONNS    1024
#define MAX_STREAMS  256
#define SMALL_BODY   128
#define GRPC_BODY    21 /* the origin's message with its prefix */
#define GRACE_NS     3000000000u
#define READ_BYTES   (64u << 10)
#define SLOW_BYTES   (32u << 10) /* that the slow client takes every SLOW_MS */
#define SLOW_MS      50
#define LONG_PATH    "/get/bytes/10485760"
#define LONG_STREAMS 16

enum kind { COUNTED, STALLED, SLOW };

struct stream {
    struct conn *conn;
    uint64_t start_ns, received;
    bool open, ok, called; /* :status 200, grpc-status 0 */
};

struct conn {
    struct h2_link link;
    enum kind kind;
    bool there; /* the descriptor is open */
    uint32_t events;
    unsigned open;
    struct stream streams[MAX_STREAMS];
};

static struct {
    unsigned port, connections, streams;
    double seconds;
    bool grpc, beside;
} opt = {.connections = 8, .streams = 16, .seconds = 4};

static struct {
    uint64_t done, bytes, connect_errors, io_errors, status_errors, grpc_errors, framing_errors, timeouts, cut;
} count;

static struct conn conns[MAX_CONNS + 2];
static struct histogram latency;
static nghttp2_session_callbacks *callbacks;
static uint8_t scratch[READ_BYTES];
static uint64_t stop_ns;
static int epfd;

static ssize_t read_message(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                            nghttp2_data_source *source, void *user) {
    (void)session, (void)id, (void)room, (void)source, (void)user;
    memset(to, 0, 5); /* not compressed, no bytes */
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return 5;
}

#define COMMON                                                                                           \
    H2_FIELD(":scheme", "http"), H2_FIELD(":authority", "www-0.example.com"),                            \
        H2_FIELD("user-agent", "edgefast-bench/1.0 (closed loop)"),                                      \
        H2_FIELD("accept", "text/html,application/json;q=0.9,*/*;q=0.8"),                                \
        H2_FIELD("accept-encoding", "gzip, deflate, br"), H2_FIELD("accept-language", "en-US,en;q=0.5"), \
        H2_FIELD("cookie", "session=0123456789abcdef0123456789abcdef")

static void begin(struct conn *c, struct stream *s) {
    static const nghttp2_nv get[] = {H2_FIELD(":method", "GET"), H2_FIELD(":path", "/get"), COMMON};
    static const nghttp2_nv bulk[] = {H2_FIELD(":method", "GET"), H2_FIELD(":path", LONG_PATH), COMMON};
    static const nghttp2_nv call[] = {H2_FIELD(":method", "POST"), H2_FIELD(":path", "/bench.Echo/Unary"), COMMON,
                                      H2_FIELD("content-type", "application/grpc"), H2_FIELD("te", "trailers")};
    nghttp2_data_provider message = {.read_callback = read_message};
    bool calls = opt.grpc && c->kind == COUNTED;
    *s = (struct stream){.conn = c, .start_ns = wire_now_ns(), .open = true};
    int32_t id = calls ? nghttp2_submit_request(c->link.session, NULL, call, sizeof call / sizeof *call, &message, s)
                       : nghttp2_submit_request(c->link.session, NULL, c->kind == COUNTED ? get : bulk,
                                                sizeof get / sizeof *get, NULL, s);
    if (id < 0) {
        s->open = false;
        return;
    }
    c->open++;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *user) {
    struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)user;
    if (!s) return 0;
    if (h2_link_is(name, name_len, ":status")) s->ok = h2_link_is(value, value_len, "200");
    if (h2_link_is(name, name_len, "grpc-status")) s->called = h2_link_is(value, value_len, "0");
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *user) {
    struct stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)flags, (void)data, (void)user;
    if (s) s->received += n;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    struct conn *c = user;
    struct stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (!s || !s->open) return 0;
    s->open = false;
    c->open--;
    uint64_t now = wire_now_ns();
    if (c->kind != COUNTED) {
        count.cut += code != NGHTTP2_NO_ERROR;
    } else if (code != NGHTTP2_NO_ERROR) {
        count.io_errors++;
    } else if (!s->ok) {
        count.status_errors++;
    } else if (opt.grpc && !s->called) {
        count.grpc_errors++;
    } else if (s->received != (opt.grpc ? GRPC_BODY : SMALL_BODY)) {
        count.framing_errors++;
    } else {
        count.done++;
        histogram_add(&latency, now - s->start_ns);
    }
    if (now < stop_ns && nghttp2_session_check_request_allowed(session)) begin(c, s);
    return 0;
}

static void watch(struct conn *c, uint32_t events, int op) {
    struct epoll_event ev = {.events = events, .data.ptr = c};
    if (op == EPOLL_CTL_MOD && c->events == events) return;
    c->events = events;
    epoll_ctl(epfd, op, c->link.fd, &ev);
}

static void open_conn(struct conn *c) {
    static const nghttp2_settings_entry wide[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                  {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
    c->link = (struct h2_link){.fd = wire_connect(opt.port)};
    c->there = c->link.fd >= 0;
    c->open = 0;
    if (!c->there) {
        count.connect_errors++;
        return;
    }
    if (nghttp2_session_client_new(&c->link.session, callbacks, c)) wire_die("nghttp2_session_client_new");
    nghttp2_submit_settings(c->link.session, NGHTTP2_FLAG_NONE, wide, c->kind == COUNTED ? 2 : 1);
    if (c->kind == COUNTED) nghttp2_session_set_local_window_size(c->link.session, NGHTTP2_FLAG_NONE, 0, 1 << 24);
    unsigned streams = c->kind == COUNTED ? opt.streams : c->kind == STALLED ? LONG_STREAMS : 1;
    for (unsigned i = 0; i < streams; i++)
        begin(c, &c->streams[i]);
    watch(c, EPOLLOUT, EPOLL_CTL_ADD);
}

/* The connection is gone, or is not to be used any more: what is open on it is lost. */
static void reopen(struct conn *c) {
    if (c->kind == COUNTED)
        count.io_errors += c->open;
    else
        count.cut++;
    h2_link_close(&c->link);
    c->there = false;
    if (wire_now_ns() < stop_ns && count.connect_errors < 1000) open_conn(c);
}

static void flush(struct conn *c) {
    int rc = h2_link_flush(&c->link);
    if (rc < 0 || (!nghttp2_session_want_read(c->link.session) && !rc)) {
        reopen(c);
        return;
    }
    uint32_t in = c->kind == COUNTED ? EPOLLIN : 0; /* the others read when they please */
    watch(c, rc ? in | EPOLLOUT : in, EPOLL_CTL_MOD);
}

static void take(struct conn *c, size_t most) {
    ssize_t n = read(c->link.fd, scratch, most);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        reopen(c);
        return;
    }
    if (n > 0) {
        count.bytes += c->kind == COUNTED ? (uint64_t)n : 0;
        if (nghttp2_session_mem_recv(c->link.session, scratch, (size_t)n) != n) {
            reopen(c);
            return;
        }
    }
    flush(c);
}

static void on_event(struct conn *c, uint32_t events) {
    if (events & (EPOLLERR | EPOLLHUP)) {
        if (c->kind == COUNTED && events & EPOLLIN)
            take(c, sizeof scratch);
        else
            reopen(c);
    } else if (events & EPOLLIN) {
        take(c, sizeof scratch);
    } else if (events & EPOLLOUT) {
        flush(c);
    }
}

static unsigned in_flight(void) {
    unsigned n = 0;
    for (unsigned i = 0; i < opt.connections; i++)
        n += conns[i].there ? conns[i].open : 0;
    return n;
}

static void run(void) {
    struct epoll_event events[512];
    uint64_t slow_at = wire_now_ns();
    struct conn *slow = &conns[opt.connections + 1];
    for (;;) {
        uint64_t now = wire_now_ns();
        if (now >= stop_ns && (now >= stop_ns + GRACE_NS || !in_flight())) break;
        int n = epoll_wait(epfd, events, 512, SLOW_MS);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (c->there) on_event(c, events[i].events);
        }
        if (opt.beside && slow->there && now - slow_at >= SLOW_MS * 1000000u) {
            slow_at = now;
            take(slow, SLOW_BYTES);
        }
    }
    count.timeouts = in_flight();
}

static void print_result(double seconds) {
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    static const char *names[] = {"p50", "p90", "p99", "p999"};
    uint64_t errors = count.connect_errors + count.io_errors + count.status_errors + count.grpc_errors +
                      count.framing_errors + count.timeouts;
    printf("{\"requests\": %llu, \"errors\": %llu, \"seconds\": %.6f, \"bytes\": %llu, \"unsent\": 0, \"cut\": %llu, ",
           (unsigned long long)count.done, (unsigned long long)errors, seconds, (unsigned long long)count.bytes,
           (unsigned long long)count.cut);
    printf("\"error_kinds\": {\"connect\": %llu, \"io\": %llu, \"status\": %llu, \"grpc\": %llu, \"framing\": %llu, "
           "\"timeout\": %llu}, \"latency_us\": {",
           (unsigned long long)count.connect_errors, (unsigned long long)count.io_errors,
           (unsigned long long)count.status_errors, (unsigned long long)count.grpc_errors,
           (unsigned long long)count.framing_errors, (unsigned long long)count.timeouts);
    for (unsigned i = 0; i < 4; i++)
        printf("\"%s\": %.1f, ", names[i], (double)histogram_quantile(&latency, quantiles[i]) / 1e3);
    printf("\"max\": %.1f}}\n", (double)latency.max / 1e3);
}

static void read_options(int argc, char **argv) {
    static const struct option longopts[] = {{"port", 1, 0, 'p'},
                                             {"connections", 1, 0, 'c'},
                                             {"streams", 1, 0, 'm'},
                                             {"seconds", 1, 0, 's'},
                                             {"grpc", 0, 0, 'g'},
                                             {"beside", 0, 0, 'b'},
                                             {0, 0, 0, 0}};
    int key;
    while ((key = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
        if (key == 'p')
            opt.port = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 'c')
            opt.connections = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 'm')
            opt.streams = (unsigned)strtoul(optarg, NULL, 10);
        else if (key == 's')
            opt.seconds = strtod(optarg, NULL);
        else if (key == 'g')
            opt.grpc = true;
        else if (key == 'b')
            opt.beside = true;
        else
            exit(2);
    }
    if (!opt.port || !opt.connections || opt.connections > MAX_CONNS || !opt.streams || opt.streams > MAX_STREAMS) {
        fprintf(stderr, "load-h2: --port, 1..%d --connections and 1..%d --streams are needed\n", MAX_CONNS,
                MAX_STREAMS);
        exit(2);
    }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    if (nghttp2_session_callbacks_new(&callbacks)) wire_die("nghttp2_session_callbacks_new");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    uint64_t start = wire_now_ns();
    stop_ns = start + (uint64_t)(opt.seconds * 1e9);
    conns[opt.connections].kind = STALLED;
    conns[opt.connections + 1].kind = SLOW;
    for (unsigned i = 0; i < opt.connections + (opt.beside ? 2 : 0); i++)
        open_conn(&conns[i]);
    run();
    uint64_t end = wire_now_ns();
    print_result((double)(end < stop_ns ? end - start : stop_ns - start) / 1e9);
    return 0;
}
