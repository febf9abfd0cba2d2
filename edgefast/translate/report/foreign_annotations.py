"""Foreign annotations: annotations of another project on a served object; edgefast applies none of them.

In: an object's metadata and its report. Out: in files a problem for each annotation. The problem is
an error where the annotation controls access, because its author may rely on it. In a cluster one
warning for all: an error there is an error of a condition, and no condition covers fields that
edgefast does not read.
Must never: refuse anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgefast.api.migration.annotations import Annotated, Rest, find_annotated
from edgefast.api.migration.field_mappings import PAGE
from edgefast.api.model.meta import ObjectMeta
from edgefast.translate.report.report import Report
from edgefast.translate.settings import Settings

__all__ = ["report_annotations"]

_PATH = "metadata.annotations"


def report_annotations(metadata: ObjectMeta, report: Report, settings: Settings) -> None:
    """Tell of the annotations of an object that is served."""
    found, rest = find_annotated(metadata.annotations)
    if found and not settings.standalone:
        _report_now(found, rest, report)
        return
    for one in found:
        tell = report.lose if one.access_policies else report.warn
        message, fix = "it has no effect", ""
        if one.access_policies and settings.closes_foreign:
            message = "decides access and is not applied; requests get 500"
            fix = "write a SecurityPolicy, or serve it without the annotation (--ignore-foreign-policies); "
        elif one.access_policies:
            message = "requests pass WITHOUT it"
        hint = f"{fix}annotations of {one.project} are not applied: {one.said}; see {PAGE}"
        tell(f"{_PATH}[{one.name}]", "PolicyIgnored", message, hint)
    if rest.number:
        tell = report.lose if rest.access_policies else report.warn
        tell(_PATH, "PolicyIgnored", f"{rest.number} more are not applied", f"see {PAGE}")


def _report_now(found: Sequence[Annotated], rest: Rest, report: Report) -> None:
    access_policies = ", ".join(one.short for one in found if one.access_policies)
    others = ", ".join(one.short for one in found if not one.access_policies)
    message = [
        f"requests pass WITHOUT {access_policies}" if access_policies else "",
        f"{others} have no effect" if others else "",
        f"{rest.number} more are not applied" if rest.number else "",
    ]
    hint = f"annotations of {found[0].project} are not applied, see {PAGE}"
    report.warn(_PATH, "PolicyIgnored", "; ".join(filter(None, message)), hint)
