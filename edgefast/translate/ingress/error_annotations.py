"""Error annotations: the values of custom-http-errors and default-backend.

In: the annotations of an Ingress. Out: `ErrorPages`; error_pages.py makes overrides of it.
Source: ingress-nginx customhttperrors/main.go, defaultbackend/main.go.
Must never: look up an object.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.translate.ingress.values import Unreadable, Values, pattern

__all__ = ["ErrorPages", "read_codes", "read_default_backend"]

_CODES = pattern(r"^(?:[4,5]\d{2},?)*$", spaces=True)
_CODE = re.compile(r"[45][0-9]{2}")
_SERVICE = pattern(r"^[a-z](?:[-a-z0-9]*[a-z0-9])?$")


class ErrorPages(msgspec.Struct, frozen=True, kw_only=True):
    """The annotations of one Ingress about error pages."""

    codes: tuple[int, ...] = ()  # of its own
    service: str = ""  # default-backend, in the namespace of the Ingress
    intercepts: bool = True  # errors of backends, too


def read_codes(values: Values) -> tuple[int, ...]:
    """Read custom-http-errors; raises NoValue."""
    name = "custom-http-errors"
    codes = [one.strip() for one in values.text(name, _CODES).split(",") if one.strip()]
    if not all(map(_CODE.fullmatch, codes)):
        raise Unreadable(name)  # the syntax allows spaces and commas between the digits
    return tuple(sorted(set(map(int, codes))))


def read_default_backend(values: Values) -> str:
    """Read the name of a Service; raises NoValue."""
    return values.text("default-backend", _SERVICE)
