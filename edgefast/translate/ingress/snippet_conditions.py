r"""Snippet conditions: `if (...) { return ...; }` of a configuration-snippet as matches of rules.

In: the words of an `if`. Out: a `Condition`: which requests it is for, as matches, or the scheme that decides it. `narrow` joins one
of the matches with the match of a rule.
It supports $host, $http_NAME, $request_method and $scheme with =, !=, ~ and ~* if a match of the Gateway API has the same meaning.
Source: nginx ngx_http_rewrite_module (`ngx_http_rewrite_if_condition`), ngx_http_variables.c.
Must never: match fewer or more requests than nginx; the answer can be a refusal.
"""

from __future__ import annotations

import re
from typing import Literal, cast

import msgspec

from edgefast.api.gateway.httproute import HTTPHeaderMatch, HTTPRouteMatch
from edgefast.api.model.regex import check_regex, compile_regex
from edgefast.translate.ingress.redirects import Scheme
from edgefast.translate.match.header_name import check_header_name

__all__ = ["Condition", "UnsupportedMatch", "narrow", "read_condition"]

Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
_HOST = re.compile(r"[a-z0-9_]([-a-z0-9_.]{0,251}[a-z0-9_])?")
#: A value that the Gateway API takes in a match of a header.
_VALUE = re.compile(r"[!-~]+([\t ][!-~]+)*")
#: The part of Host after $host: a final dot and a port.
_PORT = r"\.?(:[0-9]+)?"
_FIXED_HOST = re.compile(r"\(\?i\)((?:[a-z0-9_]|\\[-.])+)" + re.escape(_PORT))
_HEADER = re.compile(r"\$http_([a-z0-9_]{1,64})")
_METHOD_LIST = re.compile(r"\^(\(?)([A-Z]+(?:\|[A-Z]+)*)(\)?)\$")
_HOST_TEXT = re.compile(r"(\^?)((?:[A-Za-z0-9_-]|\\?\.)+)(\$?)")
_LONGEST = 512
#: An expression in which RE2 finds the same bytes as PCRE. A dot becomes \C: it is a byte, also of text that is not UTF-8.
_TOKEN = re.compile(
    r"\\[-./+*?()\[\]|^$dws]|\[[A-Za-z0-9_. -]+\]|\(\?:|\((?!\?)|[A-Za-z0-9_ /:;,=@%&~#'\"!<>^$|)-]|\.|[*+?]\??(?!\+)"
)
#: Headers that clients can divide, or that have another value in nginx.
_OTHER_VALUES = frozenset({"cookie", "host"})
#: A header that has a value.
_PRESENT = (r"\C+", "(?s).+")


class UnsupportedMatch(Exception):
    """Two expressions about one header; the argument is its name."""


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """The condition of an `if`; a request is in one of the matches."""

    headers: tuple[HTTPHeaderMatch, ...] = ()  # one of these
    methods: tuple[Method, ...] = ()  # or one of these
    scheme: str = ""  # or the scheme of the connection
    negative: bool = False  # the answer is for all other requests

    @property
    def matches(self) -> tuple[HTTPRouteMatch, ...]:
        """Return what requests match, each with one header or method."""
        return (
            *(HTTPRouteMatch(headers=(one,)) for one in self.headers),
            *(HTTPRouteMatch(method=one) for one in self.methods),
        )

    def applies(self, scheme: Scheme) -> bool:
        """Tell whether a condition about the scheme is true."""
        return (self.scheme == scheme) != self.negative


def read_condition(words: tuple[str, ...]) -> Condition | None:
    """Read the words behind `if`; None: not served."""
    found = _strip(words)
    if len(found) != 3 or len(found[2]) > _LONGEST:
        return None
    variable, operator, value = found
    if operator in ("=", "!=") and "$" in value:
        return None
    negative = operator == "!="
    if variable == "$scheme":
        known = operator in ("=", "!=") and value in ("http", "https")
        return Condition(scheme=value, negative=negative) if known else None
    if variable == "$request_method":
        return _read_methods(operator, value)
    header = _read_host(operator, value) if variable == "$host" else None
    if name := _HEADER.fullmatch(variable):
        header = _read_header(name[1].replace("_", "-"), operator, value)
        negative = negative != (value == "")
    return None if header is None else Condition(headers=(header,), negative=negative)


def _strip(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words between the parentheses."""
    if not words or not words[0].startswith("(") or not words[-1].endswith(")"):
        return ()
    found = [words[0][1:], *words[1:]]
    found[-1] = found[-1][:-1]
    if not found[0]:
        found = found[1:]
    if len(found) == 4 and not found[-1]:
        found = found[:-1]
    return tuple(found)


def _read_methods(operator: str, value: str) -> Condition | None:
    """Return the methods of a condition. A match has no custom method, so only a list of whole names is exact."""
    names = [value]
    if operator in ("~", "~*", "!~", "!~*"):
        listed = _METHOD_LIST.fullmatch(value)
        if listed is None or bool(listed[1]) != bool(listed[3]) or ("|" in value and not listed[1]):
            return None
        names = listed[2].split("|")
    elif operator not in ("=", "!="):
        return None
    if not all(one in _METHODS for one in names):
        return None
    methods = tuple(dict.fromkeys(cast("list[Method]", names)))
    return Condition(methods=methods, negative=operator.startswith("!"))


def _read_host(operator: str, value: str) -> HTTPHeaderMatch | None:
    """Return a match of Host for $host, which nginx writes in lower case without port and final dot."""
    if operator in ("=", "!="):
        if not _HOST.fullmatch(value):
            return None
        pattern = re.escape(value)
    else:
        found = _HOST_TEXT.fullmatch(value)
        if operator not in ("~", "~*") or found is None:
            return None
        start, text, end = found.groups()
        if operator == "~" and text != text.lower():
            return None
        if end and text.endswith("."):
            return None
        # A final dot of Host is not in $host.
        rest = "[^:]*[^:.]" if text.endswith(".") else "[^:]*"
        text = re.sub(r"(?<!\\)\.", "[^:]", text)
        pattern = ("" if start else "[^:]*") + text + ("" if end else rest)
    value = f"(?i){pattern}{_PORT}"
    return HTTPHeaderMatch(type="RegularExpression", name="host", value=value)


def _read_header(name: str, operator: str, value: str) -> HTTPHeaderMatch | None:
    if check_header_name(name) or name in _OTHER_VALUES:
        return None
    if operator in ("=", "!="):
        if not value:
            return HTTPHeaderMatch(type="RegularExpression", name=name, value=_PRESENT[0])
        return HTTPHeaderMatch(name=name, value=value) if _VALUE.fullmatch(value) else None
    pattern = _translate_expression(value) if operator in ("~", "~*") else ""
    if not pattern:
        return None
    flags = "(?i)" if operator == "~*" else ""
    pattern = rf"{flags}\C*(?:{pattern})\C*"
    # A missing header is "" in nginx, and no header match of the Gateway API takes a request without the header.
    if check_regex(pattern) or compile_regex(pattern).fullmatch(b""):
        return None
    return HTTPHeaderMatch(type="RegularExpression", name=name, value=pattern)


def _translate_expression(text: str) -> str:
    """Return an expression for RE2; "" if RE2 could read it differently."""
    made, at = "", 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return ""
        made += r"\C" if token[0] == "." else token[0]
        at = token.end()
    return made


def narrow(match: HTTPRouteMatch, condition: HTTPRouteMatch) -> HTTPRouteMatch | None:
    """Return the match of a rule with a condition; None: no request has both."""
    if match.method and condition.method and match.method != condition.method:
        return None
    headers = {one.name.lower(): one for one in match.headers}
    for one in condition.headers:
        name = one.name.lower()
        both = _join(headers[name], one) if name in headers else one
        if both is None:
            return None
        headers[name] = both
    return msgspec.structs.replace(
        match, method=condition.method or match.method, headers=tuple(headers.values())
    )


def _join(one: HTTPHeaderMatch, other: HTTPHeaderMatch) -> HTTPHeaderMatch | None:
    if one == other or other.value in _PRESENT:
        return one
    if one.value in _PRESENT:
        return other
    for fixed, expression in ((one, other), (other, one)):
        host = _FIXED_HOST.fullmatch(fixed.value) if fixed.name == "host" else None
        if fixed.type == "Exact" or host:
            if expression.type == "Exact":
                return None
            value = host[1].replace("\\", "") if host else fixed.value
            found = compile_regex(expression.value).fullmatch(value.encode())
            return fixed if found else None
    raise UnsupportedMatch(one.name)
