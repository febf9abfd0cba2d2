"""CORS: HTTPCORSFilter -> ir.Cors.

In: the filter's payload. Out: its IR; origins in the form that browsers send (lower case, no
default port).
Source: Gateway API HTTPCORSFilter, the Fetch standard (origin serialisation).
Must never: resolve "*" against credentials here; the data plane then answers with the request's own
values.
"""

from __future__ import annotations

import re

from edgefast import ir
from edgefast.api.gateway.httproutefilter import HTTPCORSFilter
from edgefast.translate.report.report import Report

_ORIGIN = re.compile(r"(https?)://(\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


def translate_cors(cors: HTTPCORSFilter, report: Report, path: str) -> ir.Cors | None:
    """Translate a CORS filter; `path` is its field path."""
    before = len(report.refused)
    origins = [
        _translate_origin(origin, report, f"{path}.allowOrigins[{at}]")
        for at, origin in enumerate(cors.allow_origins)
    ]
    if len(report.refused) > before:
        return None
    if cors.allow_credentials and "*" in cors.expose_headers:
        message = (
            '"*" exposes no header to requests with credentials (Fetch 3.2.3); '
            "name the headers instead"
        )
        report.warn(f"{path}.exposeHeaders", "NotSupported", message)
    return ir.Cors(
        allow_origins=tuple(dict.fromkeys(origins)),
        allow_methods=tuple(cors.allow_methods),
        allow_headers=cors.allow_headers,
        expose_headers=cors.expose_headers,
        allow_credentials=bool(cors.allow_credentials),
        max_age=cors.max_age,
    )


def _translate_origin(origin: str, report: Report, path: str) -> str:
    if origin == "*":
        return origin
    found = _ORIGIN.fullmatch(origin.lower())
    if not found or (found[3] and not 1 <= int(found[3]) <= 65535):
        message = f'"{origin}" is not "*" or scheme://host[:port] with http or https'
        report.refuse(path, "UnsupportedValue", message)
        return ""
    scheme, host, port = found.groups()
    if port and int(port) != int(_DEFAULT_PORTS[scheme]):
        return f"{scheme}://{host}:{int(port)}"
    return f"{scheme}://{host}"
