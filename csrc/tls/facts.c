/* facts.c - what is told of an open connection, in words that live as long as the process. */
#include "internal.h"

#include <string.h>

const char *ef_tls_library(void) { return OpenSSL_version(OPENSSL_VERSION); }

const char *ef_tls_version(const ef_tls *tls) { return SSL_get_version(tls->ssl); }

const char *ef_tls_cipher(const ef_tls *tls) {
    const SSL_CIPHER *cipher = SSL_get_current_cipher(tls->ssl);
    const char *name = cipher ? SSL_CIPHER_standard_name(cipher) : NULL;
    return name ? name : "";
}

/* Names of the IANA's registry of groups. */
static const struct {
    int id;
    const char *name;
} GROUPS[] = {
    {23, "secp256r1"},
    {24, "secp384r1"},
    {25, "secp521r1"},
    {29, "x25519"},
    {30, "x448"},
    {256, "ffdhe2048"},
    {257, "ffdhe3072"},
    {4587, "SecP256r1MLKEM768"},
    {4588, "X25519MLKEM768"},
    {4589, "SecP384r1MLKEM1024"},
};

static int group_id(const SSL *ssl) {
#if defined(OPENSSL_IS_AWSLC) || defined(OPENSSL_IS_BORINGSSL)
    return SSL_get_curve_id(ssl);
#else
    int nid = (int)SSL_get_negotiated_group((SSL *)(uintptr_t)ssl);
    switch (nid) {
    case NID_X9_62_prime256v1:
        return 23;
    case NID_secp384r1:
        return 24;
    case NID_secp521r1:
        return 25;
    case NID_X25519:
        return 29;
    case NID_X448:
        return 30;
    default:
        return nid & TLSEXT_nid_unknown ? nid & 0xffff : 0;
    }
#endif
}

const char *ef_tls_group(const ef_tls *tls) {
    int id = group_id(tls->ssl);
    for (size_t i = 0; i < sizeof(GROUPS) / sizeof(*GROUPS); i++)
        if (GROUPS[i].id == id) return GROUPS[i].name;
    return "";
}

int ef_tls_resumed(const ef_tls *tls) { return SSL_session_reused(tls->ssl); }

size_t ef_tls_protocol(const ef_tls *tls, const uint8_t **name) {
    unsigned n = 0;
    SSL_get0_alpn_selected(tls->ssl, name, &n);
    return n;
}
