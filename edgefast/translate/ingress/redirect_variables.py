"""Redirect variables: URLs with variables and groups of nginx as templates of a Location.

In: the URL of a redirect annotation or of a rewrite-target. Out: the template of HTTPRouteFilter redirect.location, or why it is not served.
Source: nginx ngx_http_variables.c, ngx_http_rewrite_module.
Must never: leave a variable as text, or put a group into the name of a host.
"""

from __future__ import annotations

import re

from edgefast.api.model.location_template import is_template

__all__ = ["has_variables", "translate_location"]

#: Variables of nginx -> those of redirect.location.
_VARIABLES = {
    "args": "{query}",
    "escaped_request_uri": "{escapedTarget}",
    "host": "{host}",
    "http_host": "{authority}",
    "pass_access_scheme": "{scheme}",
    "query_string": "{query}",
    "request_uri": "{target}",
    "scheme": "{scheme}",
}
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_0-9]+)\}|([A-Za-z_][A-Za-z_0-9]*|[0-9]))")


def has_variables(url: str) -> bool:
    """Tell whether a URL has variables or groups."""
    return "$" in url


def translate_location(url: str, groups: int | None = None) -> tuple[str, str]:
    """Return the template of a URL and "", or "" and why it is not served.

    A group above `groups` is empty, as in nginx. None: no expression comes before the URL, and its groups are refused.
    """
    unknown: list[str] = []

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name.isdecimal() and groups is not None:
            return rf"\{int(name)}" if len(name) < 4 and 1 <= int(name) <= groups else ""
        if name not in _VARIABLES:
            unknown.append(name)
        return _VARIABLES.get(name, "")

    if "{" in _VARIABLE.sub("", url) or "\\" in url:
        return "", "the address has a form that is not served"
    made = _VARIABLE.sub(replace, url)
    if unknown:
        known = ", ".join(f"${one}" for one in _VARIABLES)
        return "", f"variable ${unknown[0][:32]} is not served (allowed: {known})"
    if "$" in made or not made.startswith(("http://", "https://", "{scheme}://")):
        return "", "the address has a form that is not served"
    if not is_template(made):
        return (
            "",
            "the name of the host contains a variable or group, or the address has a form that is not served",
        )
    return made, ""
