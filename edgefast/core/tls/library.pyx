# Library: the TLS library that the engine is linked with.


def tls_library():
    """Its name and version as it says them itself: `OpenSSL 3.0.22` or `AWS-LC 1.62.0`.

    OpenSSL adds the day of its release, and Python's ssl in the same process may be another one.
    """
    cdef str text = ef_tls_library().decode("ascii", "replace")
    return " ".join(text.split()[:2])
