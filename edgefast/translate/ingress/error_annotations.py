"""Error annotations: the values of custom-http-errors, default-backend and disable-proxy-intercept-errors.

In: the annotations of an Ingress. Out: `ErrorPages`; error_pages.py makes overrides of it.
Source: ingress-nginx customhttperrors/main.go, defaultbackend/main.go.
Must never: look up an object.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.values import Unreadable, Values, pattern

__all__ = ["ErrorPages", "read_error_pages"]

_CODES = pattern(r"^(?:[4,5]\d{2},?)*$", spaces=True)
_CODE = re.compile(r"[45][0-9]{2}")
_SERVICE = pattern(r"^[a-z](?:[-a-z0-9]*[a-z0-9])?$")


class ErrorPages(msgspec.Struct, frozen=True, kw_only=True):
    """The annotations of one Ingress about error pages."""

    codes: tuple[int, ...] = ()  # of its own
    service: str = ""  # default-backend, in the namespace of the Ingress
    intercepts: bool = True  # errors of backends, too


def read_error_pages(reader: AnnotationReader) -> ErrorPages:
    """Return the annotations of an Ingress; an invalid one counts as missing."""
    values = reader.values
    name = "disable-proxy-intercept-errors"
    return ErrorPages(
        codes=reader.read((), lambda _: _read_codes(values), "custom-http-errors"),
        service=reader.read("", lambda _: _read_service(values), "default-backend"),
        intercepts=not reader.read(False, values.flag, name),
    )


def _read_codes(values: Values) -> tuple[int, ...]:
    """Read custom-http-errors; raises NoValue."""
    name = "custom-http-errors"
    codes = [one.strip() for one in values.text(name, _CODES).split(",") if one.strip()]
    if not all(map(_CODE.fullmatch, codes)):
        raise Unreadable(name)  # the syntax allows spaces and commas between the digits
    return tuple(sorted(set(map(int, codes))))


def _read_service(values: Values) -> str:
    """Read the name of a Service; raises NoValue."""
    return values.text("default-backend", _SERVICE)
