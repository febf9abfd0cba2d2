/* sessions.c - sessions of tls.h: what a backend gives, for the next connection to it. */
#include "internal.h"

/* In the middle of a handshake with 1.2, behind it with 1.3: nothing is known of the peer yet, so it waits for ef_tls_take_session. */
static int on_session(SSL *ssl, SSL_SESSION *session) {
    ef_tls *tls = BIO_get_data(SSL_get_rbio(ssl));
    if (!tls) return 0;
    SSL_SESSION_free(tls->session);
    tls->session = session; /* ours from here on */
    return 1;
}

void ef_tls_context_keep_sessions(ef_tls_context *context) {
    SSL_CTX_set_session_cache_mode(context->ssl, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context->ssl, on_session);
}

void *ef_tls_take_session(ef_tls *tls) {
    void *session = tls->session;
    if (!tls->open || tls->dead) return NULL;
    tls->session = NULL;
    return session;
}

int ef_tls_offer_session(ef_tls *tls, void *session) {
    ERR_clear_error();
    int done = SSL_set_session(tls->ssl, session);
    ERR_clear_error();
    return done;
}

int ef_tls_session_over(const void *session) {
#if defined(OPENSSL_IS_AWSLC) || defined(OPENSSL_IS_BORINGSSL)
    const SSL_SESSION *of = session;
#else
    SSL_SESSION *of = (SSL_SESSION *)(uintptr_t)session; /* it is not written to */
#endif
    const X509 *peer = SSL_SESSION_get0_peer(of);
    return !peer || X509_cmp_current_time(X509_get0_notAfter(peer)) <= 0;
}

void ef_tls_session_free(void *session) { SSL_SESSION_free(session); }
