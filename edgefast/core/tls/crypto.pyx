# Crypto: slow signatures and password hashes by the TLS library; the thread that computes them releases the interpreter.
#
# In: keys of edgefast/auth/jwt/key_set.py, bytes.
# Out: the results of edgefast/auth/jwt/signature.py and edgefast/auth/htpasswd.py; tests compare both.
# Must never keep a password or a token.

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
    """Tell whether the owner of `key` (edgefast.auth.jwt.key_set.Key) signed; `alg` is the one that it is for, ES384 or ES512. Raises ValueError for others."""
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


cdef class Hasher:
    """A thread that tries passwords of $apr1$ (csrc/tls/hasher.h): it never holds the interpreter."""

    def __init__(self):
        """Raises OSError when there can be none."""
        self.thread = ef_hasher_new()
        if self.thread == NULL:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        with nogil:  # it may have to wait for a job
            ef_hasher_free(self.thread)

    def fileno(self):
        """Return the descriptor that is readable when there is something to take."""
        return ef_hasher_fd(self.thread)

    def submit(self, bytes kept not None, bytes password not None):
        """Have a password tried. Raises RuntimeError when 64 are not taken back yet."""
        if ef_hasher_submit(
            self.thread, <const uint8_t *>PyBytes_AS_STRING(password), PyBytes_GET_SIZE(password),
            <const uint8_t *>PyBytes_AS_STRING(kept), PyBytes_GET_SIZE(kept),
        ) < 0:
            raise RuntimeError("too many passwords, or no memory")

    def take(self):
        """Return what came of the oldest ones, in their order: whether each was the password of its hash."""
        cdef list found = []
        cdef int fits
        while True:
            fits = ef_hasher_take(self.thread)
            if fits < 0:
                return found
            found.append(fits == 1)
