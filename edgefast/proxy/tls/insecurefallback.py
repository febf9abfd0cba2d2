"""Asking a client for a certificate and letting it in whatever it shows: AllowInsecureFallback.

In: a server context. Out: nothing; its handshakes ask, and none ends because of what the client sends or does not send.
Python's `ssl` can only let OpenSSL refuse what it cannot verify, so OpenSSL's own callback is set, through the SSL_CTX that
every CPython keeps first in its context object. Source: Gateway API FrontendTLSValidation.mode.
Must never: be used on a context that has to verify, or touch one whose SSL_CTX is not surely found.
"""

from __future__ import annotations

import _ssl
import ctypes
import ssl

_ASK = 1  # SSL_VERIFY_PEER: SSL_VERIFY_FAIL_IF_NO_PEER_CERT is another bit
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


def _let_in(_preverified: int, _store: int | None) -> int:
    return 1


_accept = _Callback(_let_in)  # kept: OpenSSL calls it as long as this process lives


def accept_any_client(context: ssl.SSLContext) -> None:
    """Make a context ask for a certificate and accept any. OSError where this OpenSSL cannot be reached."""
    library = _library()
    context.verify_mode = ssl.CERT_OPTIONAL
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    if library.SSL_CTX_get_verify_mode(pointer) != _ASK:
        raise OSError("the TLS library of this Python cannot be told to accept any client")
    library.SSL_CTX_set_verify(pointer, _ASK, _accept)


def _library() -> ctypes.CDLL:
    """Return the OpenSSL that `ssl` itself is linked with."""
    library = ctypes.CDLL(_ssl.__file__)
    try:
        library.SSL_CTX_get_verify_mode.argtypes = [ctypes.c_void_p]
        library.SSL_CTX_get_verify_mode.restype = ctypes.c_int
        library.SSL_CTX_set_verify.argtypes = [ctypes.c_void_p, ctypes.c_int, _Callback]
        library.SSL_CTX_set_verify.restype = None
    except AttributeError as error:
        raise OSError(f"the TLS library of this Python is out of reach: {error}") from error
    return library
