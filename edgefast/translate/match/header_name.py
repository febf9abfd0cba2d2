"""Header name: checks names of headers that users edit, add or require: syntax, and fields that the proxy owns.

In: a name. Out: what is wrong with it, or "". The proxy owns fields that frame a message or name
its connection. An edit of them would let a route smuggle requests (RFC 9110 7.6.1, RFC 9112 6).
Must never: fold a name; the caller does.
"""

from __future__ import annotations

import re

__all__ = ["check_header_name", "check_shown_name"]

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}")
_OWN = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
#: The proxy's own headers that an authorization service gets; it gets no other name of `x-edge-`.
_OWN_SHOWN = frozenset(
    {
        "x-edge-external-address",
        "x-edge-internal",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-method",
        "x-forwarded-proto",
        "x-forwarded-uri",
        "x-request-id",
    }
)
#: Names that no authorization service gets, in any spelling that a server may read as one of them.
_NEVER_SHOWN = frozenset({"http2-settings", "via"}) | _OWN
_OTHER = re.compile(r"[^a-z0-9]")


def check_header_name(name: str) -> str:
    """Return what is wrong with a name, "" when it is one that may be edited."""
    if not _TOKEN.fullmatch(name):
        return f'"{name}" is not a header name'
    return f'"{name}" belongs to the proxy' if name.lower() in _OWN else ""


def check_shown_name(name: str) -> str:
    """Return why an authorization service cannot get a header of this name, "" if it can."""
    if wrong := check_header_name(name):
        return wrong
    folded = _OTHER.sub("-", name.lower())
    own = folded in _OWN_SHOWN or folded.startswith("x-edge-")
    if folded in _NEVER_SHOWN or (own and name.lower() not in _OWN_SHOWN):
        return f'"{name}" is never sent to an authorization service'
    return ""
