r"""Response rewrite: proxy-redirect-from, -to, proxy-cookie-domain and proxy-cookie-path -> responseRewrite of an HTTPRouteFilter.

In: the annotations of an Ingress, the values of the ConfigMap. Out: the rewrites, and a note for each value that is not served.
nginx replaces the text at the beginning of a value, or the whole value that an expression finds. It makes a new Location that begins
with / absolute, unless relative-redirects is set.
Source: ingress-nginx nginx.tmpl, proxy/main.go; nginx ngx_http_proxy_module.
Must never: approximate a value; a rewrite is served exactly, or not at all.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from edgefast.api.edge.response_rewrite import (
    DOMAIN_TO,
    FROM,
    LOCATION_TO,
    MAX_REWRITE,
    PATH_TO,
    CookieDomainRewrite,
    CookiePathRewrite,
    LocationRewrite,
    ResponseRewrite,
)
from edgefast.api.model.regex import check_regex, count_groups
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.configmap import Note, ResponseValues
from edgefast.translate.ingress.values import COOKIE_DOMAIN, URL_SPACED

__all__ = ["absolute_locations", "read_responses"]

_VARIABLES = {"$scheme": "{scheme}", "$host": "{host}"}
_VARIABLE = re.compile(r"\$(?:[0-9]|\w+|\{\w+\})")
_UNCHANGED = {
    "proxy-redirect-from": "Location headers of backends are unchanged",
    "proxy-cookie-domain": "the Domain of cookies is unchanged",
    "proxy-cookie-path": "the Path of cookies is unchanged",
}


def read_responses(reader: AnnotationReader) -> ResponseRewrite | None:
    """Return the rewrites of an Ingress, None without any; those of the ConfigMap apply where it has no annotation."""
    read, text, default = reader.read, reader.values.text, reader.settings.responses
    values = ResponseValues(
        redirect_from=read(default.redirect_from, text, "proxy-redirect-from", URL_SPACED),
        redirect_to=read(default.redirect_to, text, "proxy-redirect-to", URL_SPACED),
        cookie_domain=read(default.cookie_domain, text, "proxy-cookie-domain", COOKIE_DOMAIN),
        cookie_path=read(default.cookie_path, text, "proxy-cookie-path", URL_SPACED),
    )
    made, notes = _translate(values)
    for note in notes:
        reader.add(note)
    return made


class _Unserved(Exception):
    """A value that is not served; the argument is the reason."""


def _translate(values: ResponseValues) -> tuple[ResponseRewrite | None, tuple[Note, ...]]:
    """Return the rewrites, None without any; a Location that begins with / is not absolute yet."""
    notes: list[Note] = []
    made = ResponseRewrite()
    plain = values.redirect_to == "off" or values.redirect_from in ("off", "default")
    if values.redirect_from not in ("off", "default") and values.redirect_to == "off":
        message = "no effect without proxy-redirect-to, as in ingress-nginx"
        notes.append(Note(name="proxy-redirect-from", message=message))
    for name, text in (
        ("proxy-redirect-from", "off" if plain else f"{values.redirect_from} {values.redirect_to}"),
        ("proxy-cookie-domain", values.cookie_domain),
        ("proxy-cookie-path", values.cookie_path),
    ):
        if text == "off":
            continue
        try:
            made = _add(made, name, text)
        except _Unserved as why:
            message = f"not served: {why}; {_UNCHANGED[name]}"
            notes.append(Note(name=name, message=message, error=True))
    return (made if made != ResponseRewrite() else None), tuple(notes)


def _add(made: ResponseRewrite, name: str, text: str) -> ResponseRewrite:
    words = text.split()
    if len(words) != 2:
        count = "1 word" if len(words) == 1 else f"{len(words)} words"
        raise _Unserved(f"{count} (expected two, or off), which nginx refuses")
    found, to = words
    if name == "proxy-redirect-from":
        pattern, value = _read(found, to, LOCATION_TO, folded=False)
        location = LocationRewrite(type=_type(found), from_=pattern, to=value)
        return msgspec.structs.replace(made, locations=(location,))
    if name == "proxy-cookie-path":
        pattern, value = _read(found, to, PATH_TO, folded=False)
        path = CookiePathRewrite(type=_type(found), from_=pattern, to=value)
        return msgspec.structs.replace(made, cookie_paths=(path,))
    pattern, value = _read(found, to, DOMAIN_TO, folded=True)
    is_regex = found.startswith("~")
    domain = CookieDomainRewrite(
        type="RegularExpression" if is_regex else "Exact",
        from_=pattern,
        to=value if is_regex else value.removeprefix("."),
    )
    return msgspec.structs.replace(made, cookie_domains=(domain,))


def _type(found: str) -> Literal["Prefix", "RegularExpression"]:
    return "RegularExpression" if found.startswith("~") else "Prefix"


def _read(found: str, to: str, characters: str, *, folded: bool) -> tuple[str, str]:
    """Return text or expression, and replacement; `folded`: an expression never regards case."""
    groups = -1
    pattern = found
    if found.startswith("~"):
        text = found[1:]
        if text.startswith("*") and not folded:
            text, folded = text[1:], True
        wrong = check_regex(text)
        if wrong or not text:
            raise _Unserved(f"not an RE2 expression ({wrong or 'empty'})")
        groups = count_groups(text)
        # nginx searches, and replaces all of the value.
        pattern = f"(?s:^.*?)({'?i:' if folded else '?:'}{text})(?s:.*)$"
    elif "$" in found:
        raise _Unserved("variables of nginx in the text to replace")
    if len(pattern) > MAX_REWRITE or len(to) > MAX_REWRITE:
        raise _Unserved(f"longer than {MAX_REWRITE} characters")
    if not re.match(FROM, pattern):
        raise _Unserved("other characters than visible ASCII")
    value = _VARIABLE.sub(lambda one: _replace(one[0], groups, characters), to)
    if "$" in value or "\\" in to or "{" in to.replace("${", "") or not re.match(characters, value):
        raise _Unserved("characters that the new value must not have")
    return pattern, value


def _replace(variable: str, groups: int, characters: str) -> str:
    number = variable[1:]
    if number.isdecimal():
        return rf"\{number}" if int(number) <= groups else ""
    named = "$" + number.strip("{}")
    if characters != LOCATION_TO or named not in _VARIABLES:
        raise _Unserved(f"variable {named[:64]} of nginx (served in Location: $scheme, $host)")
    return _VARIABLES[named]


def absolute_locations(rewrite: ResponseRewrite, origin: str) -> ResponseRewrite:
    """Put scheme and host before each new Location that begins with /, as nginx does."""
    locations = tuple(
        msgspec.structs.replace(one, to=origin + one.to) if one.to.startswith("/") else one
        for one in rewrite.locations
    )
    return msgspec.structs.replace(rewrite, locations=locations)
