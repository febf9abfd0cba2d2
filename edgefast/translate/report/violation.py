"""Violation: applies the validation rules of the resources to objects that came without them.

In: the violations that a rule of `api/validation` found in a part of an object. Out: the same
problems, in a Report. Files are decoded strictly, so only objects of an API server (perhaps with
other CRDs) can break a rule here. The rule is in one place all the same.
Must never: write a message of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.loaded import render_path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.report.report import Report


def refuse_violations(
    found: Iterable[Violation], report: Report, path: str, condition: Word = "UnsupportedValue"
) -> bool:
    """Refuse what is at `path` for each violation below it; tell whether there was one."""
    before = len(report.refused)
    for one in found:
        below = render_path(one.path)
        where = path + (below if below.startswith("[") or not below else f".{below}")
        report.refuse(where, one.reason, one.message, one.hint, condition=condition)
    return len(report.refused) > before
