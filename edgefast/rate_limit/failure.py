"""Failure: the reason why a connection to the store could not be opened, as text without secrets.

In: any exception of redis-py, ssl or the event loop during the connection.
Out: `Refusal`.
Must never: quote the text of an answer to AUTH or SELECT; only its code is used.
"""

from __future__ import annotations

import os
import socket
import ssl
import traceback

from edgefast.rate_limit.error_reply import CODES, Refusal, Refused

__all__ = ["explain_failure"]


def explain_failure(error: BaseException) -> Refusal:
    """Find the cause; redis-py wraps it."""
    cause: BaseException | None = error
    while cause is not None:
        found = _explain(cause)
        if found is not None:
            return found
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, OSError) or _redis_names(error):
        return Refusal("connect", "it closed the connection during setup")
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in where)
    return Refusal("error", f"unexpected {type(error).__name__}{place}")


def _explain(error: BaseException) -> Refusal | None:
    match error:
        case Refused():
            return error.refusal
        case ssl.SSLCertVerificationError():
            why = getattr(error, "verify_message", None) or "the certificate is not valid"
            return Refusal("tls", f"TLS: {why}")
        case ssl.SSLError():
            why = getattr(error, "reason", None) or "the handshake failed"
            return Refusal("tls", f"TLS: {why.lower().replace('_', ' ')}")
        case socket.gaierror():
            return Refusal("connect", f"its name does not resolve ({error.strerror})")
        case TimeoutError():
            return Refusal("timeout", "it does not answer in time")
        case OSError() if error.errno:
            return Refusal("connect", os.strerror(error.errno))
    return _explain_reply(error)


def _explain_reply(error: BaseException) -> Refusal | None:
    names = _redis_names(error)
    if "AuthenticationError" in names:
        return CODES["NOAUTH" if "required" in str(error) else "WRONGPASS"]
    if "BusyLoadingError" in names:
        return CODES["LOADING"]
    if "ResponseError" in names:
        code = str(error).partition(" ")[0]
        return CODES.get(code) or Refusal("error", "it refuses AUTH or SELECT")
    return None


def _redis_names(error: BaseException) -> set[str]:
    """The names of redis-py's exceptions that an error is; nothing is imported for it."""
    return {kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "redis.exceptions"}
