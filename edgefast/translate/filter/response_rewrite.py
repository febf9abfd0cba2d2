r"""Response rewrite: responseRewrite of an HTTPRouteFilter -> ir.ResponseRewrite.

In: the part of the filter. Out: every mistake in it, and the IR of one without mistakes.
Source: the kind's own rules, and what a schema cannot express: `\2` needs a second group.
Must never: translate a rewrite that has mistakes; backends would show clients what the author hides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast import ir
from edgefast.api.edge.response_rewrite import (
    DOMAIN_TO,
    FROM,
    LOCATION_TO,
    MAX_REWRITE,
    MAX_REWRITES,
    PATH_TO,
    ResponseRewrite,
)
from edgefast.api.model.regex import check_regex, count_groups
from edgefast.api.validation.response_rewrite import TextRewrite, check_from, check_to
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["check_response_rewrite", "translate_response_rewrite"]

_GROUP = re.compile(r"\\([0-9])")
_REGEX = "RegularExpression"


def check_response_rewrite(one: ResponseRewrite, report: Report, path: str) -> None:
    """Report every mistake in a responseRewrite; an API server with other CRDs may have let it in."""
    lists: tuple[tuple[str, Iterable[TextRewrite], str, str], ...] = (
        ("locations", one.locations, "Prefix", LOCATION_TO),
        ("cookieDomains", one.cookie_domains, "Exact", DOMAIN_TO),
        ("cookiePaths", one.cookie_paths, "Prefix", PATH_TO),
    )
    for name, rewrites, plain, characters in lists:
        found = tuple(rewrites)
        if len(found) > MAX_REWRITES:
            message = f"{len(found)} rewrites, at most {MAX_REWRITES}"
            report.refuse(f"{path}.{name}", "TooMany", message)
        for at, rewrite in enumerate(found):
            _check(rewrite, (plain, _REGEX), characters, report, f"{path}.{name}[{at}]")


def _check(
    one: TextRewrite, types: tuple[str, ...], characters: str, report: Report, path: str
) -> None:
    if one.type not in types:
        message = supported_text(one.type, types)
        report.refuse(f"{path}.type", "NotSupported", message, did_you_mean(one.type, types))
        return
    if not re.match(FROM, one.from_):
        message = f"must be 1 to {MAX_REWRITE} visible ASCII characters"
        report.refuse(f"{path}.from", "Invalid", message)
        return
    if not re.match(characters, one.to) or len(one.to) > MAX_REWRITE:
        report.refuse(f"{path}.to", "Invalid", f'"{one.to[:MAX_REWRITE]}" has other characters')
        return
    if refuse_violations(check_from(one), report, path):
        return
    if refuse_violations(check_to(one), report, path) or one.type != _REGEX:
        return
    groups = 0 if check_regex(one.from_) else count_groups(one.from_)
    most = max(map(int, _GROUP.findall(one.to)), default=0)
    if most > groups:
        of = f"{groups or 'no'} group{'' if groups == 1 else 's'}"
        report.refuse(f"{path}.to", "Invalid", rf"\{most} (the expression has {of})")


def translate_response_rewrite(one: ResponseRewrite | None) -> ir.ResponseRewrite | None:
    """Translate a sound responseRewrite; None: it changes nothing."""
    if one is None or not (one.locations or one.cookie_domains or one.cookie_paths):
        return None
    return ir.ResponseRewrite(
        locations=_translate(one.locations),
        cookie_domains=_translate(one.cookie_domains),
        cookie_paths=_translate(one.cookie_paths),
    )


def _translate(rewrites: Iterable[TextRewrite]) -> tuple[ir.TextRewrite, ...]:
    return tuple(map(_translate_one, rewrites))


def _translate_one(one: TextRewrite) -> ir.TextRewrite:
    if one.type == _REGEX:
        return ir.TextRewrite(kind="regex", pattern=one.from_, value=one.to)
    if one.type == "Exact":
        return ir.TextRewrite(
            kind="exact",
            pattern=one.from_.removeprefix(".").lower(),
            value=one.to.removeprefix("."),
        )
    return ir.TextRewrite(kind="prefix", pattern=one.from_, value=one.to)
