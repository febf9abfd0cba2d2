# What Cython sees of csrc/tls/crypto.h, which is the manual.

cdef extern from "tls/crypto.h" nogil:
    ctypedef struct ef_ec_key:
        pass

    ef_ec_key *ef_ec_key_new(const uint8_t *spki, size_t n)
    void ef_ec_key_free(ef_ec_key *key)
    int ef_ec_signed(const ef_ec_key *key, const uint8_t *signature, size_t n, const uint8_t *data, size_t size)
    int ef_apr1(const uint8_t *password, size_t n, const uint8_t *salt, size_t salt_n, uint8_t *digest)


cdef class VerifyingKey:
    cdef ef_ec_key *key
