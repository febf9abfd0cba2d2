"""Fixed headers: headers with fixed values in policies -> pairs of lower-case name and value, or edits of an answer.

In: the fields. Out: the pairs, and a problem for every mistake.
Must never: let a line break into a value, or keep a header that frames a message.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from edgefast import ir
from edgefast.api.edge.response_override import FixedHeader, ResponseHeaderEdits
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.match.header_name import check_header_name
from edgefast.translate.report.report import Report

__all__ = ["translate_edits", "translate_fixed"]

_MOST = 16
_VALUE = re.compile(r"[\t\x20-\x7e]{1,4096}")


def translate_fixed(
    given: Iterable[FixedHeader], owned: Container[str], report: Report, path: str
) -> tuple[tuple[str, str], ...]:
    """Return the headers by name; `owned`: names that only the proxy writes."""
    headers = tuple(given)
    if len(headers) > _MOST:
        _refuse(report, path, "TooMany", f"{len(headers)} headers, at most {_MOST}")
    found: dict[str, str] = {}
    for at, one in enumerate(headers):
        name = one.name.lower()
        if wrong := check_header_name(one.name):
            _refuse(report, f"{path}[{at}].name", "Invalid", wrong)
        elif name.startswith("x-edge-") or name in owned:
            _refuse(report, f"{path}[{at}].name", "Forbidden", f'"{one.name}" belongs to the proxy')
        if name in found:
            _refuse(report, f"{path}[{at}].name", "Duplicate", f'"{one.name}"')
        if not _VALUE.fullmatch(one.value):
            # A value can be a secret of a service.
            _refuse(report, f"{path}[{at}].value", "Invalid", "not a header value")
        found[name] = one.value
    return tuple(sorted(found.items()))


def translate_edits(given: ResponseHeaderEdits, report: Report, path: str) -> ir.HeaderOps:
    """Return the edits of an answer."""
    removes = []
    if len(given.remove) > _MOST:
        _refuse(
            report, f"{path}.remove", "TooMany", f"{len(given.remove)} headers, at most {_MOST}"
        )
    for at, name in enumerate(given.remove):
        if wrong := check_header_name(name):
            _refuse(report, f"{path}.remove[{at}]", "Invalid", wrong)
        removes.append(name.lower())
    return ir.HeaderOps(
        set=translate_fixed(given.set, (), report, f"{path}.set"),
        add=translate_fixed(given.add, (), report, f"{path}.add"),
        remove=tuple(sorted(set(removes))),
    )


def _refuse(report: Report, path: str, reason: Word, message: str) -> None:
    report.refuse(path, reason, message, condition="Invalid")
