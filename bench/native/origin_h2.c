/* origin-h2: the backend behind proxies that speak HTTP/2 to it. One thread, epoll, prior knowledge, libnghttp2.
 *
 *   origin-h2 [PORT]   0 or nothing: the kernel chooses; prints "PORT\n" and serves until killed
 *
 *   any path           200, 128-byte body
 *   .../bytes/N        200, N bytes with content-length
 *   ...?echo           200, the request's fields as lines of HTTP/1.1 (for the correctness probe)
 *   application/grpc   a message of 16 bytes, then trailers with grpc-status 0
 *
 * Bodies of requests are read to their end, then answered. Body byte i is ALPHABET[i % 64], as origin's. Knows no errors: a connection
 * that it cannot read is closed, which the generator counts.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "h2_link.h"
#include "text.h"

#define ALPHABET     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define SMALL_BODY   128
#define STATIC_BYTES (64u << 10)
#define READ_BYTES   (64u << 10)
#define ECHO_BYTES   (16u << 10)
#define HOST_BYTES   128
#define GRPC_MESSAGE 16

struct request {
    uint64_t size, sent;
    bool grpc;
    char host[HOST_BYTES];
    size_t host_len;
    char *echo; /* or NULL */
    size_t echo_len;
};

static struct h2_link links[WIRE_MAX_FDS];
static uint32_t watched[WIRE_MAX_FDS];
static char static_body[STATIC_BYTES + 64];
static const char grpc_message[5 + GRPC_MESSAGE] = {0, 0, 0, 0, GRPC_MESSAGE};
static uint8_t scratch[READ_BYTES];
static int epfd;

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    (void)user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    struct request *made = calloc(1, sizeof *made);
    if (!made) wire_die("calloc");
    made->size = SMALL_BODY;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, made);
}

static void echo_line(struct request *r, const char *a, size_t a_len, const char *between, const char *b,
                      size_t b_len) {
    size_t middle = strlen(between);
    if (r->echo_len + a_len + middle + b_len + 2 > ECHO_BYTES) return;
    memcpy(r->echo + r->echo_len, a, a_len);
    memcpy(r->echo + r->echo_len + a_len, between, middle);
    memcpy(r->echo + r->echo_len + a_len + middle, b, b_len);
    r->echo_len += a_len + middle + b_len;
}

static void on_path(struct request *r, const uint8_t *value, size_t len) {
    const char *bytes = memmem(value, len, "/bytes/", 7);
    if (bytes) r->size = wire_number(bytes + 7); /* nghttp2 ends values with a zero */
    if (!memmem(value, len, "?echo", 5)) return;
    r->echo = malloc(ECHO_BYTES);
    if (!r->echo) wire_die("malloc");
    echo_line(r, "GET ", 4, "", (const char *)value, len);
    echo_line(r, "", 0, " HTTP/1.1\r\n", "", 0);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *user) {
    (void)flags;
    (void)user;
    struct request *r = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!r) return 0;
    if (h2_link_is(name, name_len, ":path")) {
        on_path(r, value, value_len);
    } else if (h2_link_is(name, name_len, "content-type") && value_len >= 16 &&
               memcmp(value, "application/grpc", 16) == 0) {
        r->grpc = true;
    }
    if (h2_link_is(name, name_len, ":authority") && value_len <= HOST_BYTES) {
        memcpy(r->host, value, value_len);
        r->host_len = value_len;
    }
    if (r->echo && name[0] != ':') echo_line(r, (const char *)name, name_len, ": ", (const char *)value, value_len);
    if (r->echo && name[0] != ':') echo_line(r, "\r\n", 2, "", "", 0);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *user) {
    static const nghttp2_nv ok[] = {H2_FIELD("grpc-status", "0")};
    struct request *r = source->ptr;
    (void)user;
    uint64_t left = r->size - r->sent;
    size_t n = left < room ? (size_t)left : room;
    if (n > STATIC_BYTES) n = STATIC_BYTES;
    const char *from = r->echo ? r->echo + r->sent : r->grpc ? grpc_message + r->sent : static_body + (r->sent & 63);
    memcpy(to, from, n);
    r->sent += n;
    if (r->sent == r->size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (r->grpc && !r->echo) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(session, id, ok, 1);
        }
    }
    return (ssize_t)n;
}

static int on_request(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    (void)user;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    struct request *r = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!r) return 0;
    char length[24];
    nghttp2_nv fields[] = {H2_FIELD(":status", "200"),
                           H2_FIELD("content-type", "text/plain"),
                           {(uint8_t *)(uintptr_t) "content-length", (uint8_t *)length, 14, 0, 0}};
    nghttp2_nv call[] = {H2_FIELD(":status", "200"), H2_FIELD("content-type", "application/grpc")};
    nghttp2_data_provider body = {.source.ptr = r, .read_callback = read_body};
    if (r->grpc && !r->echo) {
        r->size = sizeof grpc_message;
        return nghttp2_submit_response(session, frame->hd.stream_id, call, 2, &body);
    }
    if (r->echo) {
        if (r->host_len) echo_line(r, "host", 4, ": ", r->host, r->host_len);
        r->size = r->echo_len;
    }
    fields[2].valuelen = (size_t)(append_number(length, r->size) - length);
    return nghttp2_submit_response(session, frame->hd.stream_id, fields, 3, &body);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    struct request *r = nghttp2_session_get_stream_user_data(session, id);
    (void)code;
    (void)user;
    if (r) free(r->echo);
    free(r);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void) {
    nghttp2_session_callbacks *made;
    if (nghttp2_session_callbacks_new(&made)) wire_die("nghttp2_session_callbacks_new");
    nghttp2_session_callbacks_set_on_begin_headers_callback(made, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_request);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    return made;
}

static void serve(int fd, uint32_t events) {
    struct h2_link *link = &links[fd];
    int rc = 0;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t n = read(fd, scratch, sizeof scratch);
        if (n == 0 || (n < 0 && errno != EAGAIN)) rc = -1;
        if (n > 0 && nghttp2_session_mem_recv(link->session, scratch, (size_t)n) != n) rc = -1;
    }
    if (rc == 0) rc = h2_link_flush(link);
    if (rc < 0 || !nghttp2_session_want_read(link->session)) {
        h2_link_close(link); /* streams that are open are the bench's end: what they hold is not missed */
        return;
    }
    struct epoll_event ev = {.events = rc ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.fd = fd};
    if (watched[fd] == ev.events) return;
    watched[fd] = ev.events;
    epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &ev);
}

static void accept_all(int listener, const nghttp2_session_callbacks *callbacks) {
    static const nghttp2_settings_entry ours[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 256},
                                                  {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (fd >= WIRE_MAX_FDS) {
            close(fd);
            continue;
        }
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        links[fd] = (struct h2_link){.fd = fd};
        watched[fd] = EPOLLIN;
        wire_set_nodelay(fd);
        if (nghttp2_session_server_new(&links[fd].session, callbacks, NULL)) wire_die("nghttp2_session_server_new");
        nghttp2_submit_settings(links[fd].session, NGHTTP2_FLAG_NONE, ours, 2);
        nghttp2_session_set_local_window_size(links[fd].session, NGHTTP2_FLAG_NONE, 0, 1 << 24);
        epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
    }
}

int main(int argc, char **argv) {
    unsigned port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct epoll_event events[256];
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof static_body; i++)
        static_body[i] = ALPHABET[i & 63];
    nghttp2_session_callbacks *callbacks = make_callbacks();
    int listener = wire_serve(&port, &epfd);
    for (;;) {
        int n = epoll_wait(epfd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(listener, callbacks);
            else if (links[fd].session)
                serve(fd, events[i].events);
        }
    }
}
