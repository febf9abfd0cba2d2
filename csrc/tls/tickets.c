/* tickets.c - session tickets of tls.h: made and read with keys of a ring (../ticket.h) under the connection's own rule, or not at all.
 *
 * Where clients are asked for certificates there are none: who resumes in TLS 1.3 is given a new session each time, and no library looks
 * again at the certificate that the first one began with, which may have expired since. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#endif
#include "internal.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#include <time.h>

#if defined(OPENSSL_IS_AWSLC) || defined(OPENSSL_IS_BORINGSSL)
typedef HMAC_CTX mac_context;
#define SET_CALLBACK SSL_CTX_set_tlsext_ticket_key_cb

static int begin_mac(mac_context *mac, const uint8_t *key) {
    return HMAC_Init_ex(mac, key, EF_TICKET_KEY, EVP_sha256(), NULL);
}
#else
#include <openssl/core_names.h>
typedef EVP_MAC_CTX mac_context;
#define SET_CALLBACK SSL_CTX_set_tlsext_ticket_key_evp_cb

static int begin_mac(mac_context *mac, const uint8_t *key) {
    static char digest[] = "SHA256";
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                     OSSL_PARAM_construct_end()};
    return EVP_MAC_init(mac, key, EF_TICKET_KEY, parameters);
}
#endif

static uint64_t now_ms(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static int hmac(const uint8_t *key, const uint8_t *data, size_t len, uint8_t *out) {
    unsigned n = EF_TICKET_KEY;
    return HMAC(EVP_sha256(), key, EF_TICKET_KEY, data, len, out, &n) && n == EF_TICKET_KEY ? 0 : -1;
}

void ef_tls_rule_init(ef_ticket_rule *rule, const uint8_t *scope) { ef_ticket_rule_init(rule, scope, hmac); }

/* A key that nobody keeps, when those of the ring have ended since the handshake began: its ticket is as good as none. To make none is
 * not for here: of the answers that say so some libraries end the handshake, and others send what is no ticket. */
static int throw_away(ef_ticket_key *key) { return RAND_bytes((uint8_t *)key, sizeof(*key)) == 1; }

/* 1: go on; 2: and send a new ticket; 0: full handshake; -1: the handshake ends. */
static int on_ticket(SSL *ssl, uint8_t *name, uint8_t *iv, EVP_CIPHER_CTX *cipher, mac_context *mac, int encrypt) {
    ef_tls *tls = BIO_get_data(SSL_get_rbio(ssl));
    ef_ticket_key key;
    int result = encrypt ? -1 : 0;
    if (!tls || !tls->rule) return result;
    const ef_ticket_ring *ring = tls->context->tickets;
    if (encrypt) {
        if ((ef_ticket_encrypt_key(ring, tls->rule, now_ms(), &key) == 1 || throw_away(&key)) &&
            RAND_bytes(iv, EVP_MAX_IV_LENGTH) == 1 &&
            EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.aes, iv) && begin_mac(mac, key.hmac)) {
            memcpy(name, key.name, EF_TICKET_NAME);
            result = 1;
        }
    } else {
        const int known = ef_ticket_decrypt_key(ring, tls->rule, name, now_ms(), &key);
        if (known == EF_TICKET_UNKNOWN) return 0;
        if (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.aes, iv) && begin_mac(mac, key.hmac))
            /* A ticket of 1.3 is for one connection (RFC 8446 C.4): whoever used one gets the next. */
            result = known == EF_TICKET_RENEW || SSL_version(ssl) == TLS1_3_VERSION ? 2 : 1;
    }
    ef_ticket_wipe(&key, sizeof(key));
    return result;
}

#if !defined(OPENSSL_IS_AWSLC) && !defined(OPENSSL_IS_BORINGSSL) /* which bound it themselves */
/* A client of 1.3 that comes back gets a new ticket each time, and a session of 1.3 begins anew with it. When the full handshake was goes
 * along in the ticket. Wall time, as sessions have it: replicas share no other clock. */
static int on_making(SSL *ssl, void *of) {
    SSL_SESSION *session = SSL_get_session(ssl);
    uint64_t began = (uint64_t)time(NULL);
    void *told;
    size_t n;
    (void)of;
    if (SSL_SESSION_get0_ticket_appdata(session, &told, &n) && n == sizeof(began))
        return 1; /* of the one it goes back to */
    return SSL_SESSION_set1_ticket_appdata(session, &began, sizeof(began));
}

static SSL_TICKET_RETURN on_reading(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t name_n,
                                    SSL_TICKET_STATUS status, void *of) {
    const uint64_t now = (uint64_t)time(NULL);
    uint64_t began;
    void *told;
    size_t n;
    (void)ssl, (void)name, (void)name_n, (void)of;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
    if (!SSL_SESSION_get0_ticket_appdata(session, &told, &n) || n != sizeof(began))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    memcpy(&began, told, sizeof(began));
    if (now > began && now - began > EF_TLS_SESSION_MOST) return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}
#endif

void ef_tls_context_tickets(ef_tls_context *context, const ef_ticket_ring *ring) {
    context->tickets = ring;
    SET_CALLBACK(context->ssl, on_ticket);
#if !defined(OPENSSL_IS_AWSLC) && !defined(OPENSSL_IS_BORINGSSL)
    SSL_CTX_set_session_ticket_cb(context->ssl, on_making, on_reading, NULL);
#endif
}

/* Before the handshake: no tickets without keys of ours, nor for who shows a certificate. */
void ef_tls_begin_tickets(ef_tls *tls) {
    ef_ticket_key key;
    if (!tls->context->asks && tls->rule && tls->context->tickets &&
        ef_ticket_encrypt_key(tls->context->tickets, tls->rule, now_ms(), &key) == 1) {
        ef_ticket_wipe(&key, sizeof(key));
        return;
    }
    tls->rule = NULL;
    SSL_set_options(tls->ssl,
                    SSL_OP_NO_TICKET); /* of 1.2; for 1.3 OpenSSL means: tickets that name sessions of its cache */
#if !defined(OPENSSL_IS_AWSLC) && !defined(OPENSSL_IS_BORINGSSL)
    (void)SSL_set_num_tickets(tls->ssl, 0);
#endif
}
