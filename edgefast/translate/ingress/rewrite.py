r"""Rewrite: rewrite-target -> an HTTPRouteFilter that replaces the whole path.

In: the path of a location as nginx has it, and the target. Out: the filter, or why it cannot be served.
nginx searches the path in the URI without regard to case and replaces all of the URI; a group that is not set is empty.
Source: ingress-nginx template.go (`buildProxyPass`), nginx ngx_http_rewrite_module.
Must never: approximate a target; a wrong path can reach content that the author did not publish.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.api.edge.httproutefilter import (
    HTTPRouteFilterSpec,
    RegexPathModifier,
    RegexURLRewrite,
    ReplaceRegexMatch,
)
from edgefast.api.model.regex import check_regex, count_groups
from edgefast.translate.ingress.redirect_variables import translate_location
from edgefast.translate.ingress.redirects import (
    Redirect,
    redirect_to_place,
    redirect_to_template,
)

_GROUP = re.compile(r"\$([0-9])")
_URL = re.compile(r"(https?)://([a-z0-9][a-z0-9.-]{0,252})(?::([0-9]{1,5}))?(/[^$]*)")
_LONGEST = 1024


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """A rewrite: one of the three."""

    spec: HTTPRouteFilterSpec | None = None
    redirect: Redirect | None = (
        None  # a URL without groups: 302 to it, with the query of the request
    )
    wrong: str = ""  # why it is not served


def _redirect(path: str, target: str) -> Rewrite:
    """Return the redirect to a URL with groups or variables."""
    pattern = f"(?i:{path})"
    wrong = check_regex(pattern)
    if wrong or len(pattern) > _LONGEST:
        return Rewrite(wrong=wrong or f"longer than {_LONGEST} characters")
    template, wrong = translate_location(target, count_groups(pattern))
    if wrong:
        return Rewrite(wrong=f"{wrong} in a redirect")
    return Rewrite(redirect=redirect_to_template(template, 302, pattern))


def translate_rewrite(path: str, target: str) -> Rewrite:
    """Translate the target of a location whose path differs from it."""
    if re.match(r"(?i)https?://|\$scheme", target):
        found = _URL.fullmatch(target)
        if found is None:
            return _redirect(path, target)
        return Rewrite(redirect=redirect_to_place(*found.groups(default="")))
    if not target.startswith("/"):
        return Rewrite(wrong="the target must begin with /")
    if "$" in _GROUP.sub("", target):
        return Rewrite(wrong="variables of nginx are not served (allowed: $1 to $9)")
    pattern = f"(?s:^.*?)(?i:{path})(?s:.*)$"
    wrong = check_regex(pattern)
    if wrong or len(pattern) > _LONGEST:
        return Rewrite(wrong=wrong or f"longer than {_LONGEST} characters")
    groups = count_groups(pattern)

    def replace(found: re.Match[str]) -> str:
        number = int(found[1])
        return rf"\{number}" if 1 <= number <= groups else ""

    value = _GROUP.sub(replace, target)
    return Rewrite(
        spec=HTTPRouteFilterSpec(
            url_rewrite=RegexURLRewrite(
                path=RegexPathModifier(
                    type="ReplaceRegexMatch",
                    replace_regex_match=ReplaceRegexMatch(pattern=pattern, substitution=value),
                )
            )
        )
    )
