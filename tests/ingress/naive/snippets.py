"""Snippets: `return` and `if (...) { return ...; }` of a configuration-snippet, in the order of the lines."""

from __future__ import annotations

import re

from ingress.message import Request
from ingress.naive.client import name_of_host
from ingress.naive.hosts import Location
from ingress.naive.objects import Objects
from ingress.naive.variables import expand

_LINE = re.compile(
    r"if \((\S+) (=|!=|~|~\*|!~) \"?([^\"]*?)\"?\) \{ return (\d+)(?: (\S+))?; \}|return (\d+)(?: (\S+))?;"
)


def snippet_answer(
    location: Location, request: Request, objects: Objects
) -> tuple[int, str] | None:
    """The answer of the first line whose condition is true. allow-snippet-annotations decides whether snippets count."""
    text = location.text("configuration-snippet")
    if objects.setting("allow-snippet-annotations") != "true":
        return None
    for found in _LINE.finditer(text):
        variable, operator, value, code, url, last, last_url = found.groups()
        if last:
            return int(last), expand(last_url or "", request)
        if _is_true(_value(variable, request), operator, value):
            return int(code), expand(url or "", request)
    return None


def _value(variable: str, request: Request) -> str:
    """$host has no port and is in lower case; $http_NAME is "" without the header."""
    if variable.startswith("$http_"):
        return request.value(variable.removeprefix("$http_").replace("_", "-"))
    values = {
        "$host": name_of_host(request.host),
        "$request_method": request.method,
        "$scheme": request.scheme,
    }
    return values[variable]


def _is_true(given: str, operator: str, value: str) -> bool:
    if operator in ("=", "!="):
        return (given == value) == (operator == "=")
    flags = re.IGNORECASE if operator.endswith("*") else 0
    return (re.search(value, given, flags) is not None) != operator.startswith("!")
