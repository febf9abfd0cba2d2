"""CORS: the cors-* annotations -> the CORS filter of the Gateway API.

In: the annotations of an Ingress. Out: `Cors`, the filter, and a note for each value that it cannot express.
Source: ingress-nginx internal/ingress/annotations/cors, nginx.tmpl ("CORS"), template.go (`buildCorsOriginRegex`).
Must never: allow an origin that the annotations do not allow, except where a note reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from edgefast.api.gateway.httproutefilter import HTTPCORSFilter, HTTPRouteFilter
from edgefast.translate.ingress.annotation_fields import Cors
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.values import HEADERS, Missing, NoValue, pattern

_ORIGINS = pattern(r"^((((([a-z]+://)?(\*\.)?[A-Za-z0-9\-.]*(:\d+)?,?)|null)+)|\*)?$", spaces=True)
_ORIGIN = re.compile(r"([a-z]+://(\*\.)?[A-Za-z0-9\-.]*(:\d+)?|\*|null)?")
_METHODS = pattern(r"^([A-Za-z]+,?\s?)+$", spaces=True)
_EXPOSED = pattern(r"^(([A-Za-z0-9\-\_]+|\*),?\s?)+$", spaces=True)
# Values of ingress-nginx without an annotation; seconds.
_DEFAULT_METHODS = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_DEFAULT_HEADERS = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
_DEFAULT_MAX_AGE = 1_728_000
_SERVED_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?")
_SERVED_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_ORIGINS_MOST = 64
_HEADERS_MOST = 64
#: Characters of the expression of a header match (Gateway API).
_PATTERN_MOST = 4096


def read_cors(reader: AnnotationReader) -> Cors | None:
    """Return the annotations of an Ingress with enable-cors, None without it."""
    values = reader.values
    names = [one for one in values.names() if one.startswith("cors-")]
    enabled = reader.read(False, values.flag, "enable-cors")
    values.seen.update(names)
    if not enabled:
        return None
    try:
        given = [one.strip() for one in values.text("cors-allow-origin", _ORIGINS).split(",")]
        origins = [one for one in given if one and _ORIGIN.fullmatch(one)]
        if "*" in given:
            origins = ["*"]
    except Missing:
        origins = ["*"]
    except NoValue:
        reader.warn("cors-allow-origin", "not valid; edgefast uses *, as ingress-nginx does")
        origins = ["*"]
    return Cors(
        origins=tuple(origins),
        methods=_split(reader.read(_DEFAULT_METHODS, values.text, "cors-allow-methods", _METHODS)),
        headers=_split(reader.read(_DEFAULT_HEADERS, values.text, "cors-allow-headers", HEADERS)),
        exposed=_split(reader.read("", values.text, "cors-expose-headers", _EXPOSED)),
        credentials=reader.read(True, values.flag, "cors-allow-credentials"),
        max_age=reader.read(_DEFAULT_MAX_AGE, values.number, "cors-max-age"),
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for one in re.split(r"[,\s]+", text) if one))


def translate_cors(cors: Cors) -> tuple[HTTPRouteFilter | None, tuple[Note, ...]]:
    """Translate the annotations of an Ingress with enable-cors; None: no origin is allowed."""
    notes: list[Note] = []
    origins = []
    for one in cors.origins:
        if one != "*" and not _SERVED_ORIGIN.fullmatch(one):
            message = (
                f'"{one}" is not served (allowed: *, http and https); the origin is not allowed'
            )
            notes.append(Note(name="cors-allow-origin", message=message, reason="NotSupported"))
            continue
        if "*." in one:
            message = f'"{one}" allows any number of labels before the domain, ingress-nginx one'
            notes.append(Note(name="cors-allow-origin", message=message, reason="NotSupported"))
        origins.append(one)
    methods: list[Any] = [one.upper() for one in cors.methods if one.upper() in _SERVED_METHODS]
    if len(methods) < len(cors.methods):
        message = f"only methods of HTTP are served ({', '.join(_SERVED_METHODS)})"
        notes.append(Note(name="cors-allow-methods", message=message, reason="NotSupported"))
    if len(origins) > _ORIGINS_MOST or max(len(cors.headers), len(cors.exposed)) > _HEADERS_MOST:
        message = f"more than {_ORIGINS_MOST} origins or headers; the first ones are served"
        notes.append(Note(name="enable-cors", message=message, reason="TooMany"))
    if not origins:
        return None, tuple(notes)
    made = HTTPCORSFilter(
        allow_origins=tuple(dict.fromkeys(origins))[:_ORIGINS_MOST],
        allow_methods=tuple(dict.fromkeys(methods)),
        allow_headers=cors.headers[:_HEADERS_MOST],
        expose_headers=cors.exposed[:_HEADERS_MOST],
        allow_credentials=cors.credentials,
        max_age=max(1, cors.max_age),
    )
    return HTTPRouteFilter(type="CORS", cors=made), tuple(notes)


def match_origins(origins: tuple[str, ...]) -> Iterator[str]:
    """Give the expressions for Origin values that nginx takes for allowed ones; "": any request.

    nginx compares without case and at the end of the header only; `*.` is one label. An origin longer than 4,096 characters is
    left out.
    """
    if "*" in origins:
        yield ""
        return
    start, end, part = "(?is).*(?:", ")", ""
    for one in origins:
        piece = one.replace(".", r"\.").replace("*", "[-A-Za-z0-9]+", 1)
        joined = f"{part}|{piece}" if part else piece
        if len(start) + len(joined) + len(end) <= _PATTERN_MOST:
            part = joined
            continue
        if part:
            yield f"{start}{part}{end}"
        part = piece if len(start) + len(piece) + len(end) <= _PATTERN_MOST else ""
    if part:
        yield f"{start}{part}{end}"
