"""CORS, block lists and response headers that annotations or the ConfigMap add."""

from __future__ import annotations

import re

from ingress.message import Request
from ingress.naive.hosts import Location
from ingress.naive.objects import Objects

_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_ORIGIN = r"[a-z]+://(?:\*\.)?[A-Za-z0-9\-.]*(?::\d+)?|\*|null"

Pairs = list[tuple[str, str]]


def cors_headers(location: Location, request: Request) -> Pairs:
    """enable-cors adds the headers to each answer of the location when the Origin is allowed; "*" is answered as "*".

    Origins are compared without case, at the end of the header only; `*.` is one label."""
    if not location.flag("enable-cors"):
        return []
    origin = _allowed_origin(location, request)
    if not origin:
        return []
    found = [("access-control-allow-origin", origin)]
    if location.flag("cors-allow-credentials", True):
        found.append(("access-control-allow-credentials", "true"))
    found += [
        ("access-control-allow-methods", location.text("cors-allow-methods", _METHODS)),
        ("access-control-allow-headers", location.text("cors-allow-headers", _HEADERS)),
        ("access-control-max-age", location.text("cors-max-age", "1728000")),
    ]
    if exposed := location.text("cors-expose-headers"):
        found.append(("access-control-expose-headers", exposed))
    return found


def is_preflight(location: Location, request: Request) -> bool:
    """OPTIONS with an allowed Origin is 204, before redirects, access and ssl-redirect."""
    return request.method == "OPTIONS" and bool(cors_headers(location, request))


def _allowed_origin(location: Location, request: Request) -> str:
    listed = [one.strip() for one in location.text("cors-allow-origin", "*").split(",")]
    if "*" in listed:
        return "*"
    given = request.value("origin")
    for one in listed:
        if one and re.fullmatch(_ORIGIN, one):
            pattern = re.escape(one).replace(r"\*", r"[A-Za-z0-9\-]+", 1)
            if re.search(f"(?:{pattern})$", given, re.IGNORECASE | re.ASCII):
                return given
    return ""


def is_blocked(request: Request, objects: Objects) -> bool:
    """block-user-agents and block-referers answer 403 before everything else of a host, also before app-root and from-to-www."""
    for setting, name in (("block-user-agents", "user-agent"), ("block-referers", "referer")):
        given = request.value(name)
        for one in objects.setting(setting).split(","):
            if (one := one.strip()) and _is_in(one, given):
                return True
    return False


def _is_in(entry: str, given: str) -> bool:
    if entry.startswith("~*"):
        return re.search(entry[2:], given, re.IGNORECASE) is not None
    if entry.startswith("~"):
        return re.search(entry[1:], given) is not None
    return entry.lower() == given.lower()


def custom_headers(location: Location, objects: Objects) -> Pairs:
    """custom-headers names a ConfigMap with response headers; global-allowed-response-headers lists the allowed ones."""
    owner = location.owner
    name = owner.text("custom-headers") if owner else ""
    found = objects.find("ConfigMap", name) if name else None
    return [(key.lower(), value) for key, value in ((found or {}).get("data") or {}).items()]


def global_headers(objects: Objects) -> Pairs:
    """add-headers of the ConfigMap names a ConfigMap with response headers for every answer."""
    found = objects.find("ConfigMap", objects.setting("add-headers"))
    return [(key.lower(), value) for key, value in ((found or {}).get("data") or {}).items()]
