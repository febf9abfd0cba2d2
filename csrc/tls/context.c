/* context.c - contexts of tls.h: certificates, trust, versions. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Forward secrecy and authenticated ciphers first; what the library calls weak for its level is left out. */
static const char CIPHERS[] = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM";

static char reason[160];

static int unusable(int why) {
    const char *words = ERR_reason_error_string(ERR_peek_last_error());
    size_t n = words ? strlen(words) : 0;
    if (n >= sizeof(reason)) n = sizeof(reason) - 1;
    memcpy(reason, words ? words : "", n);
    reason[n] = 0;
    ERR_clear_error();
    return why;
}

const char *ef_tls_unusable_reason(void) { return reason; }

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_n,
                           const unsigned char *offered, unsigned int offered_n, void *of) {
    const ef_tls_context *context = of;
    unsigned char *found;
    (void)ssl;
    /* Nothing in common: no protocol is agreed on, and HTTP/1.1 is spoken as with who offers none. */
    if (context->alpn_n == 0 || SSL_select_next_proto(&found, chosen_n, context->alpn, (unsigned)context->alpn_n,
                                                      offered, offered_n) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

ef_tls_context *ef_tls_context_new(int server) {
    ef_tls_context *context = calloc(1, sizeof(*context));
    if (!context) return NULL;
    ERR_clear_error();
    context->server = server;
    context->ssl = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    SSL_CTX *ssl = context->ssl;
    if (!ssl || !SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) || !SSL_CTX_set_cipher_list(ssl, CIPHERS)) {
        ef_tls_context_free(context);
        (void)unusable(0);
        return NULL;
    }
#if !defined(OPENSSL_IS_AWSLC) && !defined(OPENSSL_IS_BORINGSSL)
    if (SSL_CTX_get_security_level(ssl) < 2) /* 112 bits: no short keys, no SHA-1 */
        SSL_CTX_set_security_level(ssl, 2);
#endif
    SSL_CTX_set_options(ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ssl,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF); /* a session is in its ticket */
    if (server) {
        SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, context);
        SSL_CTX_set_num_tickets(ssl, 1); /* a client with several connections gets one on each */
    } else {
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    }
    return context;
}

void ef_tls_context_free(ef_tls_context *context) {
    if (!context) return;
    for (ef_tls_san *san = context->sans, *next; san; san = next) {
        next = san->next;
        free(san);
    }
    ef_tls_free_staples(context);
    SSL_CTX_free(context->ssl);
    free(context);
}

int ef_tls_context_minimum(ef_tls_context *context, int version) {
    return SSL_CTX_set_min_proto_version(context->ssl, version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION)
               ? 0
               : unusable(EF_TLS_UNSUPPORTED);
}

int ef_tls_context_alpn(ef_tls_context *context, const uint8_t *protocols, size_t n) {
    if (n > sizeof(context->alpn)) return EF_TLS_UNSUPPORTED;
    memcpy(context->alpn, protocols, n);
    context->alpn_n = n;
    if (!context->server && SSL_CTX_set_alpn_protos(context->ssl, protocols, (unsigned)n) != 0)
        return unusable(EF_TLS_NO_MEMORY);
    return 0;
}

/* The library would ask on a terminal; *of is set instead. */
static int no_passphrase(char *to, int room, int writing, void *of) {
    (void)to, (void)room, (void)writing;
    *(int *)of = 1;
    return -1;
}

static int is_mismatch(void) {
    int why = ERR_GET_REASON(ERR_peek_last_error());
    int where = ERR_GET_LIB(ERR_peek_last_error());
    return (where == ERR_LIB_X509 && (why == X509_R_KEY_VALUES_MISMATCH || why == X509_R_KEY_TYPE_MISMATCH)) ||
           (where == ERR_LIB_SSL &&
            why == SSL_R_NO_CERTIFICATE_ASSIGNED); /* a key of another kind has a place of its own */
}

/* The chain behind the leaf; the end of the text is no fault. */
static int add_chain(SSL_CTX *ssl, BIO *from) {
    if (!SSL_CTX_clear_chain_certs(ssl)) return unusable(EF_TLS_NO_MEMORY);
    int asked = 0;
    for (X509 *one; (one = PEM_read_bio_X509(from, NULL, no_passphrase, &asked));) {
        int added = (int)SSL_CTX_add0_chain_cert(ssl, one); /* owns it from here on, if so */
        if (!added) {
            X509_free(one);
            return unusable(EF_TLS_MALFORMED);
        }
    }
    unsigned long error = ERR_peek_last_error();
    if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
        return unusable(EF_TLS_MALFORMED);
    ERR_clear_error();
    return 0;
}

static int use_key(SSL_CTX *ssl, BIO *from) {
    int asked = 0;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_passphrase, &asked);
    if (!key) return unusable(asked ? EF_TLS_ENCRYPTED : EF_TLS_MALFORMED);
    int used = SSL_CTX_use_PrivateKey(ssl, key);
    EVP_PKEY_free(key);
    if (!used || !SSL_CTX_check_private_key(ssl)) return unusable(is_mismatch() ? EF_TLS_MISMATCH : EF_TLS_MALFORMED);
    return 0;
}

int ef_tls_context_pair(ef_tls_context *context, const char *chain, size_t chain_n, const char *key, size_t key_n) {
    ERR_clear_error();
    if (chain_n > INT32_MAX || key_n > INT32_MAX) return EF_TLS_MALFORMED;
    BIO *certificates = BIO_new_mem_buf(chain, (int)chain_n);
    BIO *secret = BIO_new_mem_buf(key, (int)key_n);
    int result = EF_TLS_NO_MEMORY;
    if (certificates && secret) {
        int asked = 0;
        X509 *leaf = PEM_read_bio_X509_AUX(certificates, NULL, no_passphrase, &asked);
        if (!leaf || !SSL_CTX_use_certificate(context->ssl, leaf))
            result = unusable(EF_TLS_MALFORMED);
        else
            result = use_key(context->ssl, secret);
        if (result == 0) result = add_chain(context->ssl, certificates);
        X509_free(leaf);
    }
    BIO_free(certificates);
    BIO_free(secret);
    return result;
}

int ef_tls_context_trust(ef_tls_context *context, const char *bundle, size_t n) {
    ERR_clear_error();
    BIO *from = n <= INT32_MAX ? BIO_new_mem_buf(bundle, (int)n) : NULL;
    if (!from) return EF_TLS_NO_MEMORY;
    int count = 0, result = 0, asked = 0;
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    for (X509 *one; result == 0 && (one = PEM_read_bio_X509(from, NULL, no_passphrase, &asked)); count++) {
        if (!X509_STORE_add_cert(store, one)) /* a second one of the same is no fault */
            result = unusable(EF_TLS_MALFORMED);
        X509_free(one);
    }
    unsigned long error = ERR_peek_last_error();
    if (result == 0 &&
        (count == 0 || ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE))
        result = unusable(EF_TLS_MALFORMED);
    ERR_clear_error();
    BIO_free(from);
    return result;
}

int ef_tls_context_crls(ef_tls_context *context, const char *lists, size_t n) {
    ERR_clear_error();
    BIO *from = n <= INT32_MAX ? BIO_new_mem_buf(lists, (int)n) : NULL;
    if (!from) return EF_TLS_NO_MEMORY;
    int count = 0, result = 0, asked = 0;
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    for (X509_CRL *one; result == 0 && (one = PEM_read_bio_X509_CRL(from, NULL, no_passphrase, &asked)); count++) {
        if (!X509_STORE_add_crl(store, one)) result = unusable(EF_TLS_MALFORMED);
        X509_CRL_free(one);
    }
    unsigned long error = ERR_peek_last_error();
    if (result == 0 &&
        (count == 0 || ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE))
        result = unusable(EF_TLS_MALFORMED);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    ERR_clear_error();
    BIO_free(from);
    return result;
}

void ef_tls_context_depth(ef_tls_context *context, int depth) { SSL_CTX_set_verify_depth(context->ssl, depth); }

int ef_tls_context_trust_system(ef_tls_context *context) {
    int done = SSL_CTX_set_default_verify_paths(context->ssl);
    ERR_clear_error(); /* files that are not there */
    return done ? 0 : EF_TLS_UNSUPPORTED;
}

void ef_tls_context_verify(ef_tls_context *context, int verify) {
    context->asks = verify != EF_TLS_ASK_NOBODY;
    if (verify == EF_TLS_ASK_ANY)
        SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, ef_tls_accept_any);
    else if (verify == EF_TLS_ASK_TRUSTED)
        SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    else
        SSL_CTX_set_verify(context->ssl, SSL_VERIFY_NONE, NULL);
}

int ef_tls_context_san(ef_tls_context *context, int is_uri, const char *name, size_t n) {
    ef_tls_san *san = malloc(sizeof(*san) + n + 1);
    if (!san) return EF_TLS_NO_MEMORY;
    san->next = context->sans;
    san->n = n;
    san->is_uri = is_uri;
    memcpy(san->name, name, n);
    san->name[n] = 0;
    context->sans = san;
    return 0;
}

void ef_tls_context_lifetime(ef_tls_context *context, long seconds) {
    SSL_CTX_set_timeout(context->ssl, seconds);
#ifdef OPENSSL_IS_AWSLC
    SSL_CTX_set_session_psk_dhe_timeout(context->ssl, (uint32_t)seconds); /* of TLS 1.3 */
#endif
}
