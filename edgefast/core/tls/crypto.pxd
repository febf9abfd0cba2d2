# What Cython sees of csrc/tls/crypto.h, which is the manual.

cdef extern from "tls/crypto.h" nogil:
    ctypedef struct ef_ec_key:
        pass

    ef_ec_key *ef_ec_key_new(const uint8_t *spki, size_t n)
    void ef_ec_key_free(ef_ec_key *key)
    int ef_ec_signed(const ef_ec_key *key, const uint8_t *signature, size_t n, const uint8_t *data, size_t size)


cdef extern from "tls/hasher.h" nogil:
    ctypedef struct ef_hasher:
        pass

    ef_hasher *ef_hasher_new()
    void ef_hasher_free(ef_hasher *hasher)
    int ef_hasher_fd(const ef_hasher *hasher)
    int ef_hasher_submit(ef_hasher *hasher, const uint8_t *password, size_t n, const uint8_t *kept, size_t kept_n)
    int ef_hasher_take(ef_hasher *hasher)


cdef class VerifyingKey:
    cdef ef_ec_key *key


cdef class Hasher:
    cdef ef_hasher *thread
