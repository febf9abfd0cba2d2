r"""Redirect location: checks the template of a Location (HTTPRouteFilter redirect.location).

In: template and expression. Out: a problem for every mistake.
Must never: let a part of the request decide to which host a client goes, except its own Host.
"""

from __future__ import annotations

import re

from edgefast.api.edge.httproutefilter import RedirectLocation
from edgefast.api.model.location_template import LOCATION_VARIABLES, is_template
from edgefast.api.model.regex import check_regex, count_groups
from edgefast.translate.report.report import Report

__all__ = ["check_location"]

_GROUP = re.compile(r"\\([0-9])")


def check_location(one: RedirectLocation, report: Report, path: str) -> None:
    """Report every mistake in a Location."""
    text = one.template
    if not is_template(text):
        known = ", ".join(f"{{{name}}}" for name in LOCATION_VARIABLES)
        message = f"expected http://, https:// or {{scheme}}:// with a name, or a path; variables: {known}"
        report.refuse(f"{path}.template", "UnsupportedValue", message)
        return
    groups = 0
    if one.pattern is not None:
        wrong = check_regex(one.pattern)
        if wrong or not one.pattern:
            report.refuse(f"{path}.pattern", "UnsupportedValue", wrong or "must not be empty")
            return
        groups = count_groups(one.pattern)
    most = max(map(int, _GROUP.findall(text)), default=-1)
    if most > groups or (most >= 0 and one.pattern is None):
        message = rf"\{most} (the pattern has {groups or 'no'} group{'' if groups == 1 else 's'})"
        report.refuse(f"{path}.template", "UnsupportedValue", message)
