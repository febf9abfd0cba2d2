/* apr1.c - $apr1$ as Apache's apr_md5_encode makes it (crypto.h), without its letters. */
#define OPENSSL_SUPPRESS_DEPRECATED /* MD5 is, and so is $apr1$: files with it are there all the same */
#include <openssl/crypto.h>
#include <openssl/md5.h>
#include <string.h>

#include "crypto.h"

#define ROUNDS 1000

int ef_apr1(const uint8_t *password, size_t n, const uint8_t *salt, size_t salt_n, uint8_t digest[16]) {
    MD5_CTX md5;
    const uint8_t zero = 0;
    if (salt_n > EF_APR1_SALT) return -1;
    MD5_Init(&md5);
    MD5_Update(&md5, password, n);
    MD5_Update(&md5, salt, salt_n);
    MD5_Update(&md5, password, n);
    MD5_Final(digest, &md5);
    MD5_Init(&md5);
    MD5_Update(&md5, password, n);
    MD5_Update(&md5, "$apr1$", 6);
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
    return 0;
}
