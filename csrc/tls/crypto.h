/* crypto.h - what the engine asks of the TLS library besides TLS: signatures that take long, and MD5 a thousand times over.
 *
 * Functions of bytes: nothing is kept but a key, which any number of threads may use at once, and nothing is logged. Whoever calls them
 * from a thread may let go of everything else meanwhile, which is why they are here: other ways to them hold the interpreter.
 */
#ifndef EF_TLS_CRYPTO_H
#define EF_TLS_CRYPTO_H
#include <stddef.h>
#include <stdint.h>

typedef struct ef_ec_key ef_ec_key; /* a public key of P-384 or P-521 */

#define EF_APR1_SALT 64 /* bytes of a salt at most; whoever writes such hashes takes 8 */

ef_ec_key *ef_ec_key_new(const uint8_t *spki,
                         size_t n); /* DER of its SubjectPublicKeyInfo; NULL: it is none of these */
void ef_ec_key_free(ef_ec_key *key);
/* 1: the key's owner signed these bytes (ES384 or ES512, RFC 7518 3.4: both halves as long as the curve); else 0. */
int ef_ec_signed(const ef_ec_key *key, const uint8_t *signature, size_t n, const uint8_t *data, size_t size);
/* 1: it is the password of a hash "$apr1$salt$letters" (Apache's apr_md5_encode); else 0, in the same time if that is one. */
int ef_apr1_fits(const uint8_t *password, size_t n, const uint8_t *kept, size_t kept_n);

#endif
