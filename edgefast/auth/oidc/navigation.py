"""Navigation: whether a request can follow a redirect to an identity provider.

In: method and header lines of a request without a session. Out: True for the navigation of a
browser. A script, a gRPC client or a WebSocket cannot show a login page; it gets 401.
Source: Fetch Metadata Request Headers (Sec-Fetch-Mode), RFC 9110 12.5.1 (Accept).
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["is_navigation", "is_same_site"]

_UPGRADES = ("upgrade", "sec-websocket-key", "sec-websocket-version")
_PAGES = ("text/html", "application/xhtml+xml")


def is_navigation(method: str, headers: Mapping[str, str]) -> bool:
    """Tell whether a browser asks for a page; `headers` have lower-case names."""
    if method not in ("GET", "HEAD") or not headers.keys().isdisjoint(_UPGRADES):
        return False
    if headers.get("x-requested-with", "").lower() == "xmlhttprequest":
        return False
    mode = headers.get("sec-fetch-mode", "")
    if mode:
        return mode == "navigate"
    accepted = (
        one.partition(";")[0].strip().lower() for one in headers.get("accept", "").split(",")
    )
    return any(one in _PAGES for one in accepted)


def is_same_site(origin: str, headers: Mapping[str, str]) -> bool:
    """Tell whether a page of the same site, or the user, sends a request to `origin`."""
    site = headers.get("sec-fetch-site", "")
    if site:
        return site in ("same-origin", "same-site", "none")
    if "origin" in headers:
        return headers["origin"].lower() == origin.lower()
    referer = headers.get("referer", "")
    return not referer or referer.lower().startswith((origin + "/").lower())
