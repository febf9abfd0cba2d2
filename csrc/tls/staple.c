/* staple.c - OCSP responses of tls.h: each beside the certificate it speaks of, stapled until its time is over. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int on_status(SSL *ssl, void *of) {
    const ef_tls_context *context = of;
    const X509 *shown = SSL_get_certificate(ssl);
    for (const ef_tls_staple *one = context->staples; one; one = one->next) {
        if (one->of != shown || (uint64_t)time(NULL) >= one->until) continue;
        uint8_t *copy = OPENSSL_malloc(one->n); /* the library owns it from here on */
        if (!copy) break;
        memcpy(copy, one->response, one->n);
        if (SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)one->n)) return SSL_TLSEXT_ERR_OK;
        OPENSSL_free(copy);
        break;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

int ef_tls_context_staple(ef_tls_context *context, const uint8_t *response, size_t n, uint64_t until) {
    const X509 *of = SSL_CTX_get0_certificate(context->ssl);
    ef_tls_staple *staple = of && n <= EF_TLS_STAPLE ? malloc(sizeof(*staple) + n) : NULL;
    if (!staple) return of && n <= EF_TLS_STAPLE ? EF_TLS_NO_MEMORY : EF_TLS_MALFORMED;
    memcpy(staple->response, response, n);
    staple->n = n;
    staple->of = of;
    staple->until = until;
    staple->next = context->staples;
    context->staples = staple;
    SSL_CTX_set_tlsext_status_cb(context->ssl, on_status);
    SSL_CTX_set_tlsext_status_arg(context->ssl, context);
    return 0;
}

void ef_tls_free_staples(ef_tls_context *context) {
    for (ef_tls_staple *one = context->staples, *next; one; one = next) {
        next = one->next;
        free(one);
    }
}
