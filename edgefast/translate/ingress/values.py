"""Values: reads one annotation as ingress-nginx does: its syntax check, then its type.

In: the annotations of an Ingress, a name, a check. Out: the value, or one of three exceptions: `Missing`, `Rejected` (the syntax
check fails) and `Unreadable` (empty, or not of its type).
Source: ingress-nginx internal/ingress/annotations/parser (main.go, validators.go).
Must never: show a value; a snippet or a secret may be in it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence

PREFIX = "nginx.ingress.kubernetes.io/"

Check = Callable[[str], bool]

_ALPHANUMERIC = r"\-\.\_\~a-zA-Z0-9\/:"
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def annotation_path(name: str) -> str:
    """Return the field path of an annotation; `name` is without the prefix."""
    return f"metadata.annotations[{PREFIX}{name}]"


class NoValue(Exception):
    """An annotation has no usable value; the argument is its name without the prefix."""


class Missing(NoValue):
    """The annotation is not there."""


class Rejected(NoValue):
    """The value does not have the syntax that ingress-nginx requires."""


class Unreadable(NoValue):
    """The value is empty or not of its type."""


def pattern(text: str, *, spaces: bool = False) -> Check:
    """Return a check for an expression; `spaces`: spaces do not count."""
    compiled = re.compile(text)

    def check(value: str) -> bool:
        value = value.replace(" ", "") if spaces else value
        return compiled.search(value) is not None and "\n" not in value and "\r" not in value

    return check


def one_of(*words: str, folded: bool = False) -> Check:
    """Return a check for a list of words; `folded`: upper and lower case are equal."""

    def check(value: str) -> bool:
        value = value.strip()
        return (value.lower() if folded else value) in words

    return check


BASIC = pattern(rf"^[/{_ALPHANUMERIC}]*$", spaces=True)
COOKIE_DOMAIN = pattern(rf"^(off|[{_ALPHANUMERIC}]+\s+[{_ALPHANUMERIC}]+)$")
WORDS = pattern(rf"^[/{_ALPHANUMERIC} ]*$")
URL = pattern(rf"^[{_ALPHANUMERIC},:?&=]*$")
URL_WITH_VARIABLES = pattern(rf"^[{_ALPHANUMERIC},:?&=$]*$", spaces=True)
URL_SPACED = pattern(rf"^[{_ALPHANUMERIC},:?&=]*$", spaces=True)
#: Methods that auth-method takes.
METHODS = "GET HEAD POST PUT PATCH DELETE CONNECT OPTIONS TRACE".split()
#: Annotations that mean nothing without auth-url. edgefast keeps connections to the service, and caches no answers.
AUTH_PARTS = (
    "auth-always-set-cookie",
    "auth-cache-duration",
    "auth-cache-key",
    "auth-keepalive",
    "auth-keepalive-requests",
    "auth-keepalive-share-vars",
    "auth-keepalive-timeout",
    "auth-method",
    "auth-proxy-set-headers",
    "auth-request-redirect",
    "auth-response-headers",
    "auth-signin",
    "auth-signin-redirect-param",
)
REGEX_CHARACTERS = rf"^[/{_ALPHANUMERIC}^$\[\](){{}}*+?|&=\\]*$"
REGEX = pattern(REGEX_CHARACTERS)
PATH_WITH_GROUPS = pattern(rf"^/?[{_ALPHANUMERIC}\/\$]*$")
HEADERS = pattern(r"^[A-Za-z0-9-_, ]*$", spaces=True)
SIZE = pattern(r"(?i)^\d+[bkmg]?$", spaces=True)


def is_bool(value: str) -> bool:
    """Check a boolean of Go (strconv.ParseBool)."""
    return value in _BOOLS


def is_integer(value: str) -> bool:
    """Check an integer of Go (strconv.Atoi)."""
    return _INTEGER.fullmatch(value) is not None


def is_server_name(value: str) -> bool:
    """Check a server name, or a list of them."""
    return all(re.search(REGEX_CHARACTERS, one.strip()) for one in value.split(","))


def is_addresses(value: str) -> bool:
    """Check a list of addresses and ranges."""
    return all(read_range(one.strip()) is not None for one in value.split(","))


def read_range(text: str) -> str | None:
    """Return an address or a range as a range, None when it is neither."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return None


class Values:
    """The annotations of one Ingress; `seen` are the names that were read."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.seen: set[str] = set()

    def find_name(self, name: str, aliases: Sequence[str]) -> str:
        """Return the name that counts: the last alias with a value where the annotation is missing or empty."""
        if self._annotations.get(PREFIX + name):
            return name
        given = [one for one in aliases if self._annotations.get(PREFIX + one)]
        return given[-1] if given else name

    def text(self, name: str, check: Check, aliases: Sequence[str] = ()) -> str:
        """Return the text of an annotation; an alias counts where the annotation is missing or empty."""
        self.seen.update((name, *aliases))
        value = self._annotations.get(PREFIX + self.find_name(name, aliases))
        if value is None:
            raise Missing(name)
        if value and not check(value):
            raise Rejected(name)
        value = "\n".join(line.strip() for line in value.split("\n"))
        if not value:
            raise Unreadable(name)
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._raw(name, is_bool)
        if value not in _BOOLS:
            raise Unreadable(name)
        return _BOOLS[value]

    def number(self, name: str) -> int:
        """Return an integer."""
        value = self._raw(name, is_integer)
        if not is_integer(value):
            raise Unreadable(name)
        return int(value)

    def _raw(self, name: str, check: Check) -> str:
        self.seen.add(name)
        value = self._annotations.get(PREFIX + name)
        if value is None:
            raise Missing(name)
        if value and not check(value):
            raise Rejected(name)
        return value

    def has(self, name: str) -> bool:
        """Tell whether an annotation is there."""
        return PREFIX + name in self._annotations

    def names(self) -> list[str]:
        """Return the names of all annotations of ingress-nginx, without the prefix, sorted."""
        return sorted(
            one.removeprefix(PREFIX) for one in self._annotations if one.startswith(PREFIX)
        )
