"""The authorisation service of the examples: whoever bears the name of somebody it knows is let in.

In: the headers of a request that it is asked about. Out: status and headers: 200 with `x-user`, or 401. It is for trying: a name is no secret.
"""

from __future__ import annotations

from collections.abc import Mapping

#: A Service of this name is one.
SERVICE = "auth"
_KNOWN = ("ann", "bob")


def decide(headers: Mapping[str, str]) -> tuple[int, list[tuple[str, str]]]:
    """Answer for one request."""
    scheme, _, name = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and name in _KNOWN:
        return 200, [("x-user", name)]
    return 401, [("www-authenticate", "Bearer")]
