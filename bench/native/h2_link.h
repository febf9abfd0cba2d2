/* h2_link.h: an nghttp2 session on a non-blocking descriptor: what it has to say, gathered and written.
 *
 * In: a session whose frames wait. Out: bytes on the descriptor; what that does not take is kept and goes first. One write for as many
 * frames as fit. Must never be linked into the product. */
#ifndef BENCH_H2_LINK_H
#define BENCH_H2_LINK_H

#include <nghttp2/nghttp2.h>

#include "wire.h"

#define H2_LINK_BYTES (256u << 10)
#define H2_FIELD(NAME, VALUE)                                                                             \
    {                                                                                                     \
        (uint8_t *)(uintptr_t)(NAME), (uint8_t *)(uintptr_t)(VALUE), sizeof(NAME) - 1, sizeof(VALUE) - 1, \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                                  \
    }

struct h2_link {
    int fd;
    nghttp2_session *session;
    char *pending; /* what the descriptor has not taken, or NULL */
    size_t pending_len;
};

static inline bool h2_link_is(const uint8_t *text, size_t len, const char *word) {
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

static inline void h2_link_close(struct h2_link *link) {
    nghttp2_session_del(link->session);
    link->session = NULL;
    free(link->pending);
    link->pending = NULL;
    close(link->fd);
}

/* 0: all is written, 1: the descriptor takes no more for now, -1: the peer is gone, or the session is broken. */
static inline int h2_link_write(struct h2_link *link, const char *data, size_t len) {
    ssize_t n = write(link->fd, data, len);
    if (n < 0 && errno != EAGAIN) return -1;
    size_t done = n < 0 ? 0 : (size_t)n;
    if (done == len) return 0;
    char *rest = malloc(len - done);
    if (!rest) wire_die("malloc");
    memcpy(rest, data + done, len - done);
    free(link->pending);
    link->pending = rest;
    link->pending_len = len - done;
    return 1;
}

static inline int h2_link_flush(struct h2_link *link) {
    static char gathered[H2_LINK_BYTES];
    size_t len = 0;
    if (link->pending) {
        char *before = link->pending;
        link->pending = NULL;
        int rc = h2_link_write(link, before, link->pending_len);
        free(before);
        if (rc) return rc;
    }
    for (;;) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(link->session, &data);
        if (n < 0) return -1;
        if (len && (!n || len + (size_t)n > sizeof gathered)) {
            int rc = h2_link_write(link, gathered, len);
            len = 0;
            if (rc < 0) return rc;
            if (rc) { /* what was taken from the session meanwhile goes behind it */
                char *both = realloc(link->pending, link->pending_len + (size_t)n);
                if (!both) wire_die("realloc");
                if (n) memcpy(both + link->pending_len, data, (size_t)n);
                link->pending = both;
                link->pending_len += (size_t)n;
                return 1;
            }
        }
        if (!n) return 0;
        memcpy(gathered + len, data, (size_t)n); /* a frame is smaller than the buffer */
        len += (size_t)n;
    }
}

#endif
