/* signature.c - whether a key of a large curve made a signature (crypto.h). */
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "crypto.h"

#define SPKI_MOST 1024 /* octets of a key */
#define DER_MOST  160  /* octets of the DER of two halves of 66 octets */

/* Octets of each half of a signature; 0: it is no key of these curves. */
static size_t half_of(const EVP_PKEY *key) {
    if (EVP_PKEY_id(key) != EVP_PKEY_EC) return 0;
    const int bits = EVP_PKEY_bits(key);
    return bits == 384 ? 48 : bits == 521 ? 66 : 0;
}

/* Two halves as what the library takes; its length, 0: it is none. */
static size_t write_der(const uint8_t *signature, size_t half, uint8_t *der) {
    uint8_t *at = der;
    int n = 0;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, (int)half, NULL);
    BIGNUM *s = BN_bin2bn(signature + half, (int)half, NULL);
    if (pair && r && s && ECDSA_SIG_set0(pair, r, s)) {
        r = s = NULL; /* they are the pair's */
        n = i2d_ECDSA_SIG(pair, NULL);
        n = n > 0 && n <= DER_MOST ? i2d_ECDSA_SIG(pair, &at) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return n > 0 ? (size_t)n : 0;
}

ef_ec_key *ef_ec_key_new(const uint8_t *spki, size_t n) {
    const uint8_t *at = spki;
    EVP_PKEY *key = n <= SPKI_MOST ? d2i_PUBKEY(NULL, &at, (long)n) : NULL;
    if (key && (at != spki + n || half_of(key) == 0)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return (ef_ec_key *)key;
}

void ef_ec_key_free(ef_ec_key *key) { EVP_PKEY_free((EVP_PKEY *)key); }

int ef_ec_signed(const ef_ec_key *key, const uint8_t *signature, size_t n, const uint8_t *data, size_t size) {
    EVP_PKEY *public = (EVP_PKEY *)key;
    const size_t half = half_of(public);
    uint8_t der[DER_MOST];
    int good = 0;
    if (n != 2 * half) return 0;
    const size_t length = write_der(signature, half, der);
    EVP_MD_CTX *context = length != 0 ? EVP_MD_CTX_new() : NULL;
    if (context && EVP_DigestVerifyInit(context, NULL, half == 48 ? EVP_sha384() : EVP_sha512(), NULL, public) == 1)
        good = EVP_DigestVerify(context, der, length, data, size) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}
