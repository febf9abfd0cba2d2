"""Responses of backends: proxy-redirect-from, -to, proxy-cookie-domain, proxy-cookie-path (nginx ngx_http_proxy_module.c)."""

from __future__ import annotations

import re

from ingress.message import Request, answer_headers, first
from ingress.naive.hosts import Location
from ingress.naive.objects import Objects
from ingress.naive.redirects import absolute

Cookies = tuple[tuple[str, str], ...]


def headers_of(request: Request) -> tuple[str, Cookies]:
    """Location and cookies of the scripted backend."""
    found = answer_headers(request.headers)
    cookies = tuple(("set-cookie", value) for name, value in found if name == "Set-Cookie")
    return first(found, "Location"), cookies


def value_of(location: Location, objects: Objects, name: str) -> str:
    """The annotation, else the setting of the ConfigMap, else off."""
    return location.text(name) or objects.setting(name, "off")


def rewritten_headers(
    location: Location, request: Request, objects: Objects
) -> tuple[str, Cookies]:
    """Location and cookies of the scripted backend, as the client gets them."""
    target, cookies = headers_of(request)
    changed = tuple((name, _cookie(location, objects, value)) for name, value in cookies)
    return _location(location, request, objects, target), changed


def _location(location: Location, request: Request, objects: Objects, value: str) -> str:
    """The text at the beginning is replaced. A new Location that begins with / becomes absolute."""
    begin, to = (value_of(location, objects, f"proxy-redirect-{one}") for one in ("from", "to"))
    if begin in ("off", "default") or to == "off" or not value:
        return value
    changed = _replace(begin, to, value)
    if changed is None:
        return value
    return absolute(request, location, objects, changed) if changed.startswith("/") else changed


def _replace(begin: str, to: str, value: str) -> str | None:
    """An expression (~, or ~* without regard to case) replaces the whole value."""
    if begin.startswith("~"):
        folded = begin.startswith("~*")
        pattern = begin.removeprefix("~").removeprefix("*")
        found = re.search(pattern, value, re.IGNORECASE if folded else 0)
        return to if found else None
    return to + value.removeprefix(begin) if value.startswith(begin) else None


def _cookie(location: Location, objects: Objects, value: str) -> str:
    """Domain is compared as a whole, without its first dot, in any case; Path by its beginning."""
    domain, path = (
        value_of(location, objects, f"proxy-cookie-{one}") for one in ("domain", "path")
    )
    first, *attributes = value.split("; ")
    parts = [first]
    for one in attributes:
        name, equals, text = one.partition("=")
        changed = None
        if equals and name.lower() == "domain" and domain != "off":
            changed = _domain(*domain.split(), text)
        if equals and name.lower() == "path" and path != "off":
            changed = _replace(*path.split(), text)
        parts.append(one if changed is None else f"{name}={changed}")
    return "; ".join(parts)


def _domain(begin: str, to: str, value: str) -> str | None:
    if begin.startswith("~"):
        return to if re.search(begin[1:], value, re.IGNORECASE) else None
    if value.removeprefix(".").lower() != begin.removeprefix(".").lower():
        return None
    dot = "." if value.startswith(".") else ""
    return dot + to.removeprefix(".")
