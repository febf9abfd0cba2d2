/* client_certificate.c - what a client's certificate says, for headers towards backends. */
#include "internal.h"

#include <string.h>

/* Only the issuer is unknown: what ssl_verify_client optional_no_ca of nginx accepts. */
static int is_of_issuer(int why) {
    return why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT || why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY || why == X509_V_ERR_CERT_UNTRUSTED ||
           why == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

/* The store calls this for each problem of a chain, and for each certificate without one. */
int ef_tls_accept_any(int verified, X509_STORE_CTX *store) {
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    ef_tls *tls = ssl ? SSL_get_app_data(ssl) : NULL;
    if (!verified && tls) {
        int why = X509_STORE_CTX_get_error(store);
        if (tls->distrust == 0) tls->distrust = why;
        if (!is_of_issuer(why)) tls->distrust_more = 1;
    }
    return 1;
}

const char *ef_tls_client_distrust(const ef_tls *tls) {
    X509 *leaf = tls->context->asks ? SSL_get_peer_certificate(tls->ssl) : NULL;
    if (!leaf) return "";
    X509_free(leaf);
    long result = tls->distrust ? tls->distrust : SSL_get_verify_result(tls->ssl);
    return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
}

int ef_tls_client_only_issuer(const ef_tls *tls) {
    return tls->distrust && !tls->distrust_more && is_of_issuer((int)SSL_get_verify_result(tls->ssl));
}

static ssize_t put_der(const X509 *leaf, uint8_t *to, size_t room) {
    uint8_t *at = to;
    int n = i2d_X509((X509 *)(uintptr_t)leaf, NULL);
    if (n <= 0 || (size_t)n > room) return -1;
    return i2d_X509((X509 *)(uintptr_t)leaf, &at);
}

/* RFC 2253: control characters and bytes above 126 are escaped. */
static ssize_t put_name(const X509_NAME *name, uint8_t *to, size_t room) {
    BIO *text = BIO_new(BIO_s_mem());
    ssize_t n = -1;
    if (text && name && X509_NAME_print_ex(text, (X509_NAME *)(uintptr_t)name, 0, XN_FLAG_RFC2253) >= 0) {
        size_t size = BIO_pending(text) > 0 ? (size_t)BIO_pending(text) : 0;
        if (size == 0)
            n = 0;
        else if (size <= room && BIO_read(text, to, (int)size) == (int)size)
            n = (ssize_t)size;
    }
    BIO_free(text);
    return n;
}

/* Printable ASCII: a header has nothing else, and some readers end a name at a NUL. */
static int is_text(const uint8_t *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (text[i] < 0x21 || text[i] > 0x7e) return 0;
    return n > 0;
}

static ssize_t put_names(const X509 *leaf, uint8_t *to, size_t room) {
    GENERAL_NAMES *names = X509_get_ext_d2i((X509 *)(uintptr_t)leaf, NID_subject_alt_name, NULL, NULL);
    size_t size = 0, count = names ? (size_t)sk_GENERAL_NAME_num(names) : 0;
    for (size_t i = 0; i < count; i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, (int)i);
        if (one->type != GEN_DNS && one->type != GEN_URI) continue;
        const ASN1_IA5STRING *text = one->type == GEN_DNS ? one->d.dNSName : one->d.uniformResourceIdentifier;
        const uint8_t *data = ASN1_STRING_get0_data(text);
        size_t n = (size_t)ASN1_STRING_length(text);
        if (!is_text(data, n)) continue;
        if (n > UINT16_MAX || size + 3 + n > room) {
            GENERAL_NAMES_free(names);
            return -1;
        }
        to[size] = one->type == GEN_DNS ? 'D' : 'U';
        to[size + 1] = (uint8_t)(n >> 8);
        to[size + 2] = (uint8_t)(n & 255);
        memcpy(to + size + 3, data, n);
        size += 3 + n;
    }
    GENERAL_NAMES_free(names);
    return (ssize_t)size;
}

ssize_t ef_tls_client_part(const ef_tls *tls, int part, uint8_t *to, size_t room) {
    X509 *leaf = SSL_get_peer_certificate(tls->ssl);
    ssize_t n = -1;
    if (!leaf) return -1;
    ERR_clear_error();
    switch (part) {
    case EF_TLS_CLIENT_DER:
        n = put_der(leaf, to, room);
        break;
    case EF_TLS_CLIENT_SUBJECT:
        n = put_name(X509_get_subject_name(leaf), to, room);
        break;
    case EF_TLS_CLIENT_ISSUER:
        n = put_name(X509_get_issuer_name(leaf), to, room);
        break;
    case EF_TLS_CLIENT_NAMES:
        n = put_names(leaf, to, room);
        break;
    default:
        break;
    }
    X509_free(leaf);
    ERR_clear_error();
    return n;
}
