"""Header names that users write where the proxy edits, adds or asks for fields: are they names, and are they theirs to name.

In: a name. Out: what is wrong with it, or "". Fields that frame a message or name its connection are the proxy's own: editing them
would let a route smuggle requests (RFC 9110 7.6.1, RFC 9112 6).
Must never: fold a name; who asks does.
"""

from __future__ import annotations

import re

__all__ = ["check_header_name"]

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


def check_header_name(name: str) -> str:
    """Return what is wrong with a name, "" when it is one that may be edited."""
    if not _TOKEN.fullmatch(name):
        return f'"{name}" is not a header name'
    return f'"{name}" belongs to the proxy' if name.lower() in _OWN else ""
