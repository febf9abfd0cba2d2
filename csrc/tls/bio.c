/* bio.c - the way of a connection's bytes: those that came early first, then the descriptor; what it does not take is held back. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int on_read(BIO *bio, char *to, int room) {
    ef_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (room <= 0) return 0;
    if (tls->early) {
        uint32_t n = tls->early_len - tls->early_at;
        if (n > (uint32_t)room) n = (uint32_t)room;
        memcpy(to, tls->early + tls->early_at, n);
        tls->early_at += n;
        if (tls->early_at == tls->early_len) {
            free(tls->early);
            tls->early = NULL;
        }
        return (int)n;
    }
    if (tls->budget == 0) { /* epoll tells again of what is left */
        BIO_set_retry_read(bio);
        return -1;
    }
    ssize_t n = recv(tls->fd, to, (size_t)room, 0);
    if (n > 0) {
        tls->budget -= (size_t)n < tls->budget ? (size_t)n : tls->budget;
        if (!tls->open) tls->shaken += (uint32_t)n;
        return (int)n;
    }
    if (n == 0)
        tls->eof = 1;
    else if (errno == EAGAIN || errno == EINTR)
        BIO_set_retry_read(bio);
    else
        tls->error = errno;
    return (int)n;
}

static int hold(ef_tls *tls, const char *data, size_t n) {
    if (tls->held + n > EF_TLS_HELD_MOST) return 0;
    if (tls->out_at + tls->held + n > tls->out_room) {
        if (tls->held) memmove(tls->out, tls->out + tls->out_at, tls->held);
        tls->out_at = 0;
        if (tls->held + n > tls->out_room) {
            uint8_t *out = realloc(tls->out, tls->held + n);
            if (!out) return 0;
            tls->out = out;
            tls->out_room = tls->held + n;
        }
    }
    memcpy(tls->out + tls->out_at + tls->held, data, n);
    tls->held += n;
    return 1;
}

static int on_write(BIO *bio, const char *data, int n) {
    ef_tls *tls = BIO_get_data(bio);
    ssize_t sent = 0;
    BIO_clear_retry_flags(bio);
    if (n <= 0) return 0;
    if (tls->held == 0 && !tls->gather) {
        sent = send(tls->fd, data, (size_t)n, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                tls->error = errno;
                return -1;
            }
            sent = 0;
        }
    }
    if (sent < n && !hold(tls, data + sent, (size_t)(n - sent))) return -1;
    return n;
}

static long on_control(BIO *bio, int command, long number, void *more) {
    (void)bio, (void)number, (void)more;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method(void) {
    static BIO_METHOD *made; /* for as long as the process lives */
    if (!made) {
        made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "edgefast");
        if (made) {
            BIO_meth_set_read(made, on_read);
            BIO_meth_set_write(made, on_write);
            BIO_meth_set_ctrl(made, on_control);
        }
    }
    return made;
}

BIO *ef_tls_bio(ef_tls *tls) {
    BIO_METHOD *kind = method();
    BIO *bio = kind ? BIO_new(kind) : NULL;
    if (bio) {
        BIO_set_data(bio, tls);
        BIO_set_init(bio, 1);
    }
    return bio;
}

int ef_tls_flush(ef_tls *tls, int flags) {
    while (tls->held) {
        ssize_t sent = send(tls->fd, tls->out + tls->out_at, tls->held, MSG_NOSIGNAL | flags);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EINTR) return EF_TLS_AGAIN;
            tls->error = errno;
            return EF_TLS_LOST;
        }
        tls->out_at += (size_t)sent;
        tls->held -= (size_t)sent;
    }
    free(tls->out);
    tls->out = NULL;
    tls->out_at = tls->out_room = 0;
    return 1;
}
