# Signatures that take long and slow hashes, by the TLS library itself: the thread that makes them lets others run meanwhile.
#
# In: keys of edgefast/keyset.py, bytes. Out: what edgefast/tokens/signature.py and edgefast/htpasswd.py say of the same, which tests hold
# them to. Must never keep a password or a token.

cdef dict _verifying = {}  # VerifyingKey by the DER of a key
cdef int _VERIFYING_MOST = 1024  # keys; past them all are made anew


cdef class VerifyingKey:
    def __init__(self, bytes spki):
        """Raises ValueError for what is no key of P-384 or P-521."""
        self.key = ef_ec_key_new(<const uint8_t *>PyBytes_AS_STRING(spki), PyBytes_GET_SIZE(spki))
        if self.key == NULL:
            raise ValueError("no such key")

    def __dealloc__(self):
        ef_ec_key_free(self.key)


def is_signed(str alg, key, bytes signature, bytes signed):
    """Tell whether the owner of `key` (edgefast.keyset.Key) signed; `alg` is the one that it is for, ES384 or ES512. Raises ValueError for others."""
    cdef VerifyingKey found
    cdef const uint8_t *made = <const uint8_t *>PyBytes_AS_STRING(signature)
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(signed)
    cdef size_t n = PyBytes_GET_SIZE(signature), size = PyBytes_GET_SIZE(signed)
    cdef int good
    found = _verifying.get(key.spki)
    if found is None:
        found = VerifyingKey(key.spki)
        if len(_verifying) >= _VERIFYING_MOST:
            _verifying.clear()
        _verifying[key.spki] = found
    with nogil:
        good = ef_ec_signed(found.key, made, n, data, size)
    return good == 1


def digest_apr1(bytes password, bytes salt):
    """What $apr1$ makes of a password (edgefast/htpasswd.py). Raises ValueError for a salt that nobody writes."""
    cdef uint8_t digest[16]
    cdef const uint8_t *secret = <const uint8_t *>PyBytes_AS_STRING(password)
    cdef const uint8_t *grain = <const uint8_t *>PyBytes_AS_STRING(salt)
    cdef size_t n = PyBytes_GET_SIZE(password), size = PyBytes_GET_SIZE(salt)
    cdef int refused
    with nogil:
        refused = ef_apr1(secret, n, grain, size, digest)
    if refused:
        raise ValueError("no salt")
    return digest[:16]


def verify_password(bytes kept, bytes password):
    """Tell whether a password is that of a hash (edgefast.htpasswd.verify)."""
    return verify(kept, password, digest_apr1)
