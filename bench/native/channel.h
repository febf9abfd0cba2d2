/* channel.h: bytes to and from a descriptor, plain, or TLS in a tool that is compiled with -DBENCH_TLS.
 *
 * In: non-blocking descriptors. Out: what read(2) and write(2) return: a count, 0 for the end, -1 with errno, EAGAIN for "not now".
 * A handshake happens inside of the first call. Clients check no certificate; they offer one cipher and one group, like wrk here.
 * Must never be linked into the product. */
#ifndef BENCH_CHANNEL_H
#define BENCH_CHANNEL_H

#include "wire.h"

#ifdef BENCH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>

struct channel {
    int fd;
    SSL *tls;
};

static inline SSL_CTX *channel_context(const SSL_METHOD *method) {
    SSL_CTX *made = SSL_CTX_new(method);
    if (!made) wire_die("SSL_CTX_new");
    SSL_CTX_set_mode(made,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(made, 1);
    return made;
}

static inline SSL_CTX *channel_clients(void) {
    SSL_CTX *made = channel_context(TLS_client_method());
    SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION);
    if (!SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") || !SSL_CTX_set1_groups_list(made, "X25519"))
        wire_die("client's settings");
    return made;
}

static inline SSL_CTX *channel_servers(const char *certificate, const char *key) {
    SSL_CTX *made = channel_context(TLS_server_method());
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    if (SSL_CTX_use_certificate_chain_file(made, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) != 1)
        wire_die("server's certificate");
    return made;
}

static inline struct channel channel_open(int fd, SSL_CTX *context, bool server) {
    struct channel made = {.fd = fd, .tls = context ? SSL_new(context) : NULL};
    if (!context) return made;
    if (!made.tls || !SSL_set_fd(made.tls, fd)) wire_die("SSL_new");
    if (server)
        SSL_set_accept_state(made.tls);
    else
        SSL_set_connect_state(made.tls);
    return made;
}

/* Descriptor and object; a client that waits for the end hears a close_notify. */
static inline void channel_close(struct channel *c) {
    if (c->tls) {
        ERR_clear_error();
        if (SSL_is_init_finished(c->tls)) SSL_shutdown(c->tls);
        SSL_free(c->tls);
        c->tls = NULL;
    }
    close(c->fd);
}

static inline ssize_t channel_result(struct channel *c, int n) {
    if (n > 0) return n;
    int saved = errno;
    switch (SSL_get_error(c->tls, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        errno = saved ? saved : EPROTO;
        return -1;
    }
}

static inline ssize_t channel_read(struct channel *c, void *to, size_t room) {
    if (!c->tls) return read(c->fd, to, room);
    size_t have = 0;
    do { /* one read(2) may have brought several records */
        ERR_clear_error();
        errno = 0;
        ssize_t n = channel_result(c, SSL_read(c->tls, (char *)to + have, (int)(room - have)));
        if (n <= 0) return have ? (ssize_t)have : n;
        have += (size_t)n;
    } while (have < room && SSL_has_pending(c->tls));
    return (ssize_t)have;
}

static inline ssize_t channel_write(struct channel *c, const void *data, size_t len) {
    if (!c->tls) return write(c->fd, data, len);
    size_t done = 0;
    while (done < len) { /* a record a call */
        ERR_clear_error();
        errno = 0;
        ssize_t n = channel_result(c, SSL_write(c->tls, (const char *)data + done, (int)(len - done)));
        if (n <= 0) {
            if (!n) errno = EPIPE;
            return done && errno == EAGAIN ? (ssize_t)done : -1;
        }
        done += (size_t)n;
    }
    return (ssize_t)done;
}

#else
struct channel {
    int fd;
};
typedef void SSL_CTX;

static inline struct channel channel_open(int fd, SSL_CTX *context, bool server) {
    (void)context;
    (void)server;
    return (struct channel){.fd = fd};
}
static inline void channel_close(struct channel *c) { close(c->fd); }
static inline ssize_t channel_read(struct channel *c, void *to, size_t room) { return read(c->fd, to, room); }
static inline ssize_t channel_write(struct channel *c, const void *data, size_t len) { return write(c->fd, data, len); }
#endif

#endif
