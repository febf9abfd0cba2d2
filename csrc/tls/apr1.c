/* apr1.c - whether a password is that of a hash which Apache's apr_md5_encode made (crypto.h). */
#define OPENSSL_SUPPRESS_DEPRECATED /* MD5 is, and so is $apr1$: files with it are there all the same */
#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <string.h>

#include "crypto.h"

#define ROUNDS    1000
#define MARK      "$apr1$"
#define MARK_SIZE (sizeof(MARK) - 1)
#define LETTERS   22 /* of 16 bytes */

static void make_digest(const uint8_t *password, size_t n, const uint8_t *salt, size_t salt_n, uint8_t digest[16]) {
    MD5_CTX md5;
    const uint8_t zero = 0;
    MD5_Init(&md5);
    MD5_Update(&md5, password, n);
    MD5_Update(&md5, salt, salt_n);
    MD5_Update(&md5, password, n);
    MD5_Final(digest, &md5);
    MD5_Init(&md5);
    MD5_Update(&md5, password, n);
    MD5_Update(&md5, MARK, MARK_SIZE);
    MD5_Update(&md5, salt, salt_n);
    for (size_t left = n; left != 0; left -= left < 16 ? left : 16)
        MD5_Update(&md5, digest, left < 16 ? left : 16);
    for (size_t left = n; left != 0; left >>= 1)
        MD5_Update(&md5, (left & 1) != 0 ? &zero : password, 1);
    MD5_Final(digest, &md5);
    for (unsigned turn = 0; turn < ROUNDS; turn++) {
        const int odd = (turn & 1) != 0;
        MD5_Init(&md5);
        MD5_Update(&md5, odd ? password : digest, odd ? n : 16);
        if (turn % 3 != 0) MD5_Update(&md5, salt, salt_n);
        if (turn % 7 != 0) MD5_Update(&md5, password, n);
        MD5_Update(&md5, odd ? digest : password, odd ? 16 : n);
        MD5_Final(digest, &md5);
    }
    OPENSSL_cleanse(&md5, sizeof(md5));
}

static uint8_t *write_letters(uint8_t *at, unsigned number, int letters) {
    static const char alphabet[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int i = 0; i < letters; i++, number >>= 6)
        *at++ = (uint8_t)alphabet[number & 63];
    return at;
}

int ef_apr1_fits(const uint8_t *password, size_t n, const uint8_t *kept, size_t kept_n) {
    uint8_t digest[16], written[LETTERS], *at = written;
    if (kept_n < MARK_SIZE || memcmp(kept, MARK, MARK_SIZE) != 0) return 0;
    const uint8_t *salt = kept + MARK_SIZE, *end = memchr(salt, '$', kept_n - MARK_SIZE);
    if (end == NULL || end - salt > EF_APR1_SALT || kept + kept_n - (end + 1) != LETTERS) return 0;
    make_digest(password, n, salt, (size_t)(end - salt), digest);
    for (unsigned i = 0; i < 5; i++)
        at = write_letters(at, (unsigned)(digest[i] << 16 | digest[i + 6] << 8 | digest[i < 4 ? i + 12 : 5]), 4);
    write_letters(at, digest[11], 2);
    const int fits = CRYPTO_memcmp(written, end + 1, LETTERS) == 0;
    OPENSSL_cleanse(digest, sizeof(digest));
    return fits;
}
