"""ApiError: the only exception of a failed call to the API server.

In: an answer that is not a success, or no answer.
Out: `ApiError` with the message of the server's `Status`. Callers use `status` and `reason`, never
the message.
Source: Kubernetes API conventions, "Response Status Kind".
Must never: contain a token, a header or the body of a request.
"""

from __future__ import annotations

import math

import msgspec

from controller.kube.depth import decode_json

#: `reason` where there was no answer (status 0).
UNREACHABLE = "Unreachable"
TIMEOUT = "Timeout"
SILENT = "Silent"  # a watch that sent nothing, no bookmark either, for too long

_LONGEST_MESSAGE = 1000
#: Seconds that a server may ask to be waited for: less than the least is a loop, and more than the most is no wish of an API
#: server (its own are 1 to some tens).
LEAST_WAIT, MOST_WAIT = 0.1, 60.0


class ApiError(Exception):
    """A call that failed: `status` of HTTP (0: no answer), `reason` and `message` in the server's words."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after  # seconds, when the server asks for them

    @property
    def not_found(self) -> bool:
        """There is no such object, or no such kind."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """Somebody wrote in between: read again, then write."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def exists(self) -> bool:
        """The name that was to be created is taken."""
        return self.reason == "AlreadyExists"

    @property
    def expired(self) -> bool:
        """The resource version or the continue token is too old: list anew."""
        return self.status == 410

    @property
    def forbidden(self) -> bool:
        """The credential is not known, or not allowed to."""
        return self.status in (401, 403)

    @property
    def passing(self) -> bool:
        """The same call may succeed later: no answer, too much load, or a fault of the server."""
        return self.status in (0, 429) or self.status >= 500


class _Status(msgspec.Struct):
    """The part of a `Status` object that is read."""

    message: str = ""
    reason: str = ""
    code: int = 0


def error_from(status: int, body: bytes | msgspec.Raw, retry_after: str = "") -> ApiError:
    """Make the error of an answer's status and body; `retry_after` is the header, "" for none."""
    try:
        message = decode_json(body, _Status)
    except msgspec.MsgspecError:
        message = _Status(message=bytes(body)[:200].decode("utf-8", "replace"))
    code = status or message.code
    wait = _read_wait(retry_after)
    return ApiError(code, message.reason or _word(code), message.message[:_LONGEST_MESSAGE], wait)


def _read_wait(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After within what is waited for; None for none. A date is none: no API server sends one."""
    try:
        seconds = float(retry_after)
    except ValueError:
        return None
    return None if math.isnan(seconds) else min(max(seconds, LEAST_WAIT), MOST_WAIT)


def _word(code: int) -> str:
    """Return the reason that an API server gives with a status, for answers without one."""
    words = {
        400: "BadRequest",
        401: "Unauthorized",
        403: "Forbidden",
        404: "NotFound",
        409: "Conflict",
        410: "Expired",
        422: "Invalid",
        429: "TooManyRequests",
        503: "ServiceUnavailable",
        504: "Timeout",
    }
    return words.get(code, "InternalError" if code >= 500 else "Unknown")
