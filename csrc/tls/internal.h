/* internal.h - what the files of this folder share: the TLS library, and what a context holds. */
#ifndef EF_TLS_INTERNAL_H
#define EF_TLS_INTERNAL_H
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "tls.h"

typedef struct ef_tls_san {
    struct ef_tls_san *next;
    size_t n;
    int is_uri;
    char name[];
} ef_tls_san;

typedef struct ef_tls_staple {
    struct ef_tls_staple *next;
    const X509 *of;
    uint64_t until;
    size_t n;
    uint8_t response[];
} ef_tls_staple;

struct ef_tls_context {
    SSL_CTX *ssl;
    const ef_ticket_ring *tickets; /* NULL: none are made */
    ef_tls_staple *staples;
    ef_tls_san *sans; /* of a client: names instead of the one it asks for */
    int server;
    int asks; /* of a server: for clients' certificates */
    size_t alpn_n;
    uint8_t alpn[EF_TLS_ALPN];
};

int ef_tls_accept_any(int verified, X509_STORE_CTX *store); /* accepts each chain, and keeps why it is not trusted */
int ef_tls_names_allowed(const ef_tls_context *context, SSL *ssl); /* one of the context's names is the peer's */
BIO *ef_tls_bio(ef_tls *tls);
void ef_tls_begin_tickets(ef_tls *tls);
void ef_tls_free_staples(ef_tls_context *context);
int ef_tls_flush(ef_tls *tls, int flags); /* of send(2); 1: nothing is held */

#endif
