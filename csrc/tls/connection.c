/* connection.c - connections of tls.h: hello, handshake, bytes both ways, the end. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "../head.h"
#include "../limits.h"

enum { EARLY_PIECE = 2048, RECORD = 16384 };

static int lose(ef_tls *tls, int error, int failure) {
    tls->error = error;
    tls->failure = (uint8_t)failure;
    tls->dead = 1;
    return EF_TLS_LOST;
}

/* --- the first flight ---------------------------------------------------------------------------------------------- */

/* As much memory as there are bytes: whoever sends a few of them and waits is to cost little. */
static int keep_early(ef_tls *tls, const uint8_t *data, size_t n) {
    uint8_t *early = realloc(tls->early, tls->early_len + n);
    if (!early) return 0;
    memcpy(early + tls->early_len, data, n);
    tls->early = early;
    tls->early_len += (uint32_t)n;
    return 1;
}

/* 1: some bytes more are there. */
static int read_early(ef_tls *tls, int fd, size_t most) {
    uint8_t piece[EARLY_PIECE];
    tls->fd = fd;
    ssize_t n = recv(fd, piece, most < sizeof(piece) ? most : sizeof(piece), 0);
    if (n == 0) return lose(tls, 0, EF_TLS_F_CLOSED);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? EF_TLS_AGAIN : lose(tls, errno, EF_TLS_F_CLOSED);
    return keep_early(tls, piece, (size_t)n) ? 1 : lose(tls, ENOMEM, EF_TLS_F_LOCAL);
}

int ef_tls_preamble(ef_tls *tls, int fd, size_t most) {
    return tls->early_len < most ? read_early(tls, fd, most - tls->early_len) : EF_TLS_AGAIN;
}

void ef_tls_skip(ef_tls *tls, size_t n) {
    tls->early_len -= (uint32_t)n;
    if (tls->early_len) {
        memmove(tls->early, tls->early + n, tls->early_len);
    } else {
        free(tls->early);
        tls->early = NULL;
    }
}

int ef_tls_hello(ef_tls *tls, int fd, ef_hello *hello) {
    for (int come = tls->early_len && !tls->need;; come = 0) { /* ... behind a preamble */
        if (!come) {
            int result = read_early(tls, fd, EARLY_PIECE);
            if (result != 1) return result;
        }
        if (tls->early_len < tls->need) continue;
        int32_t size = ef_hello_scan(tls->early, tls->early_len, hello);
        if (size > 0) return 1;
        if (size == EF_BAD) {
            int why = hello->alert == 70 ? EF_TLS_F_VERSION : hello->alert == 112 ? EF_TLS_F_NAME : EF_TLS_F_PROTOCOL;
            return ef_tls_refuse(tls, fd, hello->alert, why);
        }
        tls->need = hello->need;
    }
}

int ef_tls_refuse(ef_tls *tls, int fd, uint8_t alert, int why) {
    const uint8_t record[7] = {21, 3, 3, 0, 2, 2, alert};
    uint8_t rest[4096];
    (void)!send(fd, record, sizeof(record), MSG_NOSIGNAL);
    (void)!recv(fd, rest, sizeof(rest),
                MSG_DONTWAIT); /* a close with unread bytes is a reset, which may overtake the alert */
    return lose(tls, 0, why);
}

/* --- the handshake --------------------------------------------------------------------------------------------------- */

static int make(ef_tls *tls, ef_tls_context *context) {
    ERR_clear_error();
    SSL *ssl = SSL_new(context->ssl);
    BIO *bio = ssl ? ef_tls_bio(tls) : NULL;
    if (!bio) {
        SSL_free(ssl);
        return 0;
    }
    SSL_set_bio(ssl, bio, bio);
#if defined(OPENSSL_IS_AWSLC) || defined(OPENSSL_IS_BORINGSSL)
    SSL_set_shed_handshake_config(
        ssl, 1); /* its own copy of the context's certificates and rules: nobody negotiates twice */
#endif
    SSL_set_app_data(ssl, tls);
    tls->ssl = ssl;
    tls->context = context;
    return 1;
}

int ef_tls_accept(ef_tls *tls, ef_tls_context *context, ef_ticket_rule *rule, const uint8_t *scope, size_t n) {
    if (!make(tls, context) || (n && !SSL_set_session_id_context(tls->ssl, scope, (unsigned)n)))
        return lose(tls, ENOMEM, EF_TLS_F_LOCAL);
    tls->rule = rule;
    ef_tls_begin_tickets(tls);
    SSL_set_accept_state(tls->ssl);
    return 0;
}

int ef_tls_connect(ef_tls *tls, int fd, ef_tls_context *context, const char *name, int is_address) {
    tls->fd = fd;
    tls->client = 1;
    if (!make(tls, context)) return lose(tls, ENOMEM, EF_TLS_F_LOCAL);
    X509_VERIFY_PARAM *wanted = SSL_get0_param(tls->ssl);
    int done = is_address || SSL_set_tlsext_host_name(tls->ssl, name);
    if (!context->sans) {
        /* RFC 9110 4.3.4: only subjectAltNames name a server; the common name is ignored. */
        X509_VERIFY_PARAM_set_hostflags(wanted,
                                        X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        done = done && (is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name)
                                   : X509_VERIFY_PARAM_set1_host(wanted, name, strlen(name)));
    }
    if (!done) return lose(tls, EINVAL, EF_TLS_F_LOCAL);
    SSL_set_connect_state(tls->ssl);
    return 0;
}

static int failure_of(unsigned long error) {
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) return error ? EF_TLS_F_PROTOCOL : EF_TLS_F_CLOSED;
    int reason = ERR_GET_REASON(error);
    if (reason >= SSL_AD_REASON_OFFSET) return EF_TLS_F_ALERT;
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
#ifdef SSL_R_VERSION_TOO_LOW
    case SSL_R_VERSION_TOO_LOW:
#endif
        return EF_TLS_F_VERSION;
    case SSL_R_NO_SHARED_CIPHER:
#ifdef SSL_R_NO_SUITABLE_KEY_SHARE
    case SSL_R_NO_SUITABLE_KEY_SHARE:
#endif
#ifdef SSL_R_NO_SUITABLE_GROUPS
    case SSL_R_NO_SUITABLE_GROUPS:
#endif
#ifdef SSL_R_NO_SHARED_GROUP
    case SSL_R_NO_SHARED_GROUP:
#endif
#ifdef SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
#endif
#ifdef SSL_R_NO_COMMON_SIGNATURE_ALGORITHMS
    case SSL_R_NO_COMMON_SIGNATURE_ALGORITHMS:
#endif
        return EF_TLS_F_CIPHER;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return EF_TLS_F_CERTIFICATE;
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return EF_TLS_F_CLOSED;
#endif
    default:
        return EF_TLS_F_PROTOCOL;
    }
}

/* After a call of the library that did not succeed. */
static int judge(ef_tls *tls, int result) {
    int why = SSL_get_error(tls->ssl, result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return EF_TLS_AGAIN;
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    int failure = tls->error || tls->eof ? EF_TLS_F_CLOSED : failure_of(ERR_peek_error());
    ERR_clear_error();
    return lose(tls, tls->error, failure);
}

int ef_tls_handshake(ef_tls *tls) {
    int result = ef_tls_flush(tls, 0);
    if (result != 1) return result == EF_TLS_LOST ? lose(tls, tls->error, EF_TLS_F_CLOSED) : result;
    if (tls->shaken > EF_TLS_HANDSHAKE_MOST) return lose(tls, 0, EF_TLS_F_LIMIT);
    tls->budget = EF_TLS_READ_MOST;
    ERR_clear_error();
    result = SSL_do_handshake(tls->ssl);
    if (result != 1) {
        result = judge(tls, result);
        if (result == EF_TLS_LOST) (void)ef_tls_flush(tls, 0); /* why, as an alert */
        return result == 0 ? lose(tls, 0, EF_TLS_F_CLOSED) : result;
    }
    if (tls->client && !ef_tls_names_allowed(tls->context, tls->ssl)) return lose(tls, 0, EF_TLS_F_CERTIFICATE);
    tls->open = 1;
    return 1;
}

/* Why a certificate was refused. ef_tls_names_allowed leaves the library's result X509_V_OK. */
static int distrust_of(const ef_tls *tls) {
    switch (tls->ssl ? SSL_get_verify_result(tls->ssl) : X509_V_ERR_UNSPECIFIED) {
    case X509_V_OK:
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return EF_TLS_B_NAME;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return EF_TLS_B_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return EF_TLS_B_NOT_YET_VALID;
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* by an authority of the same name with another key */
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_UNTRUSTED:
        return EF_TLS_B_UNKNOWN_CA;
    default:
        return EF_TLS_B_CERTIFICATE;
    }
}

int ef_tls_backend_failure(const ef_tls *tls) {
    switch (tls->failure) {
    case EF_TLS_F_CERTIFICATE:
        return distrust_of(tls);
    case EF_TLS_F_PROTOCOL: /* the first error of a wrong signature is not libssl's, so failure_of does not know it */
        return tls->ssl && SSL_get_verify_result(tls->ssl) == X509_V_ERR_CERT_SIGNATURE_FAILURE ? EF_TLS_B_UNKNOWN_CA
                                                                                                : EF_TLS_B_PROTOCOL;
    case EF_TLS_F_VERSION:
        return EF_TLS_B_VERSION;
    case EF_TLS_F_CIPHER:
        return EF_TLS_B_CIPHER;
    case EF_TLS_F_ALERT:
        return EF_TLS_B_REFUSED;
    case EF_TLS_F_CLOSED:
        return EF_TLS_B_CLOSED;
    default:
        return EF_TLS_B_LOCAL;
    }
}

int ef_tls_has_name(const ef_tls *tls, const char *name, size_t n) {
    const char *read = SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name);
    /* A session of 1.2 that is resumed tells the name of its first handshake, which had the same scope. */
    if (SSL_session_reused(tls->ssl) && SSL_version(tls->ssl) < TLS1_3_VERSION) return 1;
    if (read == NULL) return n == 0;
    size_t len = strlen(read);
    if (len == n + 1 && n > 0 && read[n] == '.') len--; /* hello.h leaves out the dot at the end */
    return len == n && strncasecmp(read, name, n) == 0;
}

/* --- bytes ------------------------------------------------------------------------------------------------------------- */

ssize_t ef_tls_read(ef_tls *tls, uint8_t *to, size_t room) {
    size_t done = 0;
    if (tls->dead) return EF_TLS_LOST;
    tls->budget = room + EF_TLS_READ_MOST;
    tls->more = 0; /* of a record that is not whole epoll tells */
    ERR_clear_error();
    while (done < room) {
        size_t most = room - done < INT32_MAX ? room - done : INT32_MAX;
        int n = SSL_read(tls->ssl, to + done, (int)most);
        if (n <= 0) {
            if (!done) return judge(tls, n);
            tls->more = SSL_get_error(tls->ssl, n) != SSL_ERROR_WANT_READ; /* the end: the next read says how */
            ERR_clear_error();
            return (ssize_t)done;
        }
        done += (size_t)n;
        if (n < RECORD && !SSL_has_pending(tls->ssl))
            return (ssize_t)done; /* the descriptor is empty, too, or epoll tells of it */
    }
    tls->more = SSL_has_pending(tls->ssl) != 0;
    return (ssize_t)done;
}

int ef_tls_pending(const ef_tls *tls) { return tls->more && !tls->dead; }

/* Where a gathered write stands. */
typedef struct place {
    const struct iovec *iov;
    size_t offset;
} place;

static void advance(place *at, size_t n) {
    while (n) {
        size_t step = at->iov->iov_len - at->offset;
        if (step > n) {
            at->offset += n;
            return;
        }
        n -= step;
        at->iov++;
        at->offset = 0;
    }
}

/* Up to a record's worth from here on: in place if one piece has it, else in `record`. */
static const uint8_t *next_record(place at, size_t left, uint8_t *record, size_t *size) {
    *size = left < RECORD ? left : RECORD;
    while (at.offset == at.iov->iov_len) {
        at.iov++;
        at.offset = 0;
    }
    const uint8_t *from = (const uint8_t *)at.iov->iov_base + at.offset;
    if (at.iov->iov_len - at.offset >= *size) return from;
    for (size_t done = 0; done < *size;) {
        size_t step = at.iov->iov_len - at.offset;
        if (step > *size - done) step = *size - done;
        memcpy(record + done, (const uint8_t *)at.iov->iov_base + at.offset, step);
        done += step;
        at.iov++;
        at.offset = 0;
    }
    return record;
}

ssize_t ef_tls_write(ef_tls *tls, const struct iovec *iov, int n, size_t total, int last) {
    uint8_t record[RECORD];
    size_t taken = 0;
    place at = {iov, 0};
    (void)n;
    int flushed = tls->dead ? EF_TLS_LOST : ef_tls_flush(tls, 0);
    if (flushed != 1) return flushed;
    tls->gather = last && total <= RECORD;
    while (taken < total && tls->held == 0) {
        size_t size;
        const uint8_t *from = next_record(at, total - taken, record, &size);
        ERR_clear_error();
        int result = SSL_write(tls->ssl, from, (int)size);
        if (result <= 0) {
            (void)judge(tls, result);
            return lose(tls, tls->error, tls->failure); /* our BIO takes everything: nothing else can be */
        }
        /* Less than was offered: a client asked for smaller fragments (RFC 6066 4). */
        taken += (size_t)result;
        advance(&at, (size_t)result);
    }
    if (taken < total) tls->gather = 0;
    return (ssize_t)taken;
}

int ef_tls_end(ef_tls *tls, int more) {
    if (!tls->ssl || !tls->open || tls->dead) return 1;
    if (!tls->said_end) {
        tls->said_end = tls->gather = 1;
        ERR_clear_error();
        (void)SSL_shutdown(tls->ssl);
        ERR_clear_error();
    }
    return ef_tls_flush(tls, more ? MSG_MORE : 0);
}

void ef_tls_free(ef_tls *tls) {
    if (tls->ssl) {
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* or its session would be forgotten */
        SSL_free(tls->ssl);
    }
    ef_tls_session_free(tls->session);
    free(tls->early);
    free(tls->out);
    memset(tls, 0, sizeof(*tls));
}
