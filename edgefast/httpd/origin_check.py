"""Origin check: refuses requests that a page of another site made a browser send.

In: the Host, Origin and Sec-Fetch-Site fields of a request.
Out: a reply that refuses the request, or None. Such a page can send a POST without a preflight
request (a "simple" request of the Fetch standard). It also reads the answers when its own name
resolves to this machine (DNS rebinding). Command line tools send neither Origin nor Sec-Fetch-Site.
Must never: resolve a name.
"""

from __future__ import annotations

import ipaddress

from edgefast.httpd.message import Reply, Request

__all__ = ["refuse_cross_origin"]


def refuse_cross_origin(request: Request, *, any_host: bool) -> Reply | None:
    """Refuse what no tool and no page of this server sends; `any_host`: whatever name it was asked under."""
    if request.fetched_from not in ("", "none", "same-origin"):
        return Reply(403, b"refused: requested by a page of another site\n")
    if request.origin and request.origin.partition("://")[2] != request.host:
        return Reply(403, b"refused: requested by a page of another site\n")
    if any_host or not request.host or _is_own(request.host):
        return None
    return Reply(421, b"refused: the Host header must be an IP address or localhost, not a name\n")


def _is_own(host: str) -> bool:
    """Tell whether a Host header names this machine without asking anybody: an address, or localhost."""
    name, _, port = host.rpartition(":")
    name = name if name and port.isdecimal() else host
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
