"""Header: HTTPHeaderFilter -> ir.HeaderOps.

In: set, add and remove of one filter. Out: the edits with folded names, or None when refused. The
proxy owns fields that frame a message or name its connection. An edit of them would let a route
smuggle requests (RFC 9110 7.6.1, RFC 9112 6). URLRewrite changes Host.
Must never: let a line break into a value, or keep two actions for one name.
"""

from __future__ import annotations

import re

from edgefast import ir
from edgefast.api.gateway.httproutefilter import HTTPHeader, HTTPHeaderFilter
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.report.report import Report

_VALUE = re.compile(r"[\t\x20-\x7e]{0,4096}")


def translate_headers(ops: HTTPHeaderFilter, report: Report, path: str) -> ir.HeaderOps | None:
    """Translate one header filter; `path` is its field path."""
    before = len(report.refused)
    seen: dict[str, str] = {}
    sets = _translate_list(ops.set, "set", seen, report, path)
    adds = _translate_list(ops.add, "add", seen, report, path)
    removes = []
    for at, name in enumerate(ops.remove):
        folded = _check_name(name, "remove", seen, report, f"{path}.remove[{at}]")
        if folded:
            removes.append(folded)
    if len(report.refused) > before:
        return None
    return ir.HeaderOps(set=sets, add=adds, remove=tuple(removes))


def _translate_list(
    headers: tuple[HTTPHeader, ...], action: str, seen: dict[str, str], report: Report, path: str
) -> tuple[tuple[str, str], ...]:
    pairs = []
    for at, header in enumerate(headers):
        where = f"{path}.{action}[{at}]"
        name = _check_name(header.name, action, seen, report, f"{where}.name")
        if not _VALUE.fullmatch(header.value):
            report.refuse(
                f"{where}.value",
                "UnsupportedValue",
                "must be at most 4096 printable ASCII characters, no line breaks",
            )
        elif name:
            pairs.append((name, header.value))
    return tuple(pairs)


def _check_name(name: str, action: str, seen: dict[str, str], report: Report, path: str) -> str:
    """Return the folded name, or "" when it is refused or a repetition to be ignored."""
    folded = name.lower()
    wrong = check_header_name(name)
    if wrong:
        hint = "use a URLRewrite filter with hostname" if folded == "host" else ""
        report.refuse(path, "UnsupportedValue", wrong, hint)
        return ""
    first = seen.get(folded)
    if first == action:
        report.warn(path, "Duplicate", f'"{name}" is a duplicate and ignored')
        return ""
    if first is not None:
        message = f'"{name}" has two actions, {first} and {action}; one per name is allowed'
        report.refuse(path, "UnsupportedValue", message)
        return ""
    seen[folded] = action
    return folded
