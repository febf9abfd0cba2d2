"""Unsupported fields: fields that are not served; a field that closes a part refuses it, any other is a warning.

In: an object with the decoder's notes in `unserved`, and its report. Out: problems with the field,
the reason, and the effect on requests. Each stage collects what closes its own part: rules their
rule, listeners their listener.
Source: api/model/unsupported_fields.py decides what a field closes; api/migration has the
equivalents of fields of Envoy Gateway.
Must never: drop a note of the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.api.kinds import EDGE_GROUP, Object, ref_of
from edgefast.api.migration.field_mappings import describe_field
from edgefast.api.model.fields import Resource
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.unsupported_fields import UnsupportedField
from edgefast.diagnostics.problem import Problem
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.report.report import Report
from edgefast.translate.settings import RELEASES

#: What becomes of Gateways whose own fields, or those of their class or EdgeProxy, are not served.
SHUT = "all its listeners answer 404"


def find_closing(obj: Resource, path: str = "") -> Iterator[UnsupportedField]:
    """Give what closes all of an object; with a path such as `spec.rules[0]`, also what closes that part of it."""
    for one in obj.unserved:
        if one.closes == "object" or (path and one.closes != "nothing" and _is_below(one, path)):
            yield one


def refuse_unserved(
    obj: Resource,
    report: Report,
    fate: str,
    *,
    path: str = "",
    reason: Word = "UnsupportedValue",
    condition: Word = "UnsupportedValue",
) -> bool:
    """Refuse for each field that closes this, saying what becomes of it; tell whether there was one."""
    found = False
    for one in find_closing(obj, path) if obj.unserved else ():
        report.refuse(one.path, reason, _words(one, report, fate), condition=condition)
        found = True
    return found


def warn_unserved(obj: Resource, report: Report) -> None:
    """Warn of the fields that close nothing."""
    for one in obj.unserved:
        if one.closes == "nothing":
            report.warn(one.path, "NotSupported", _words(one, report, "it is ignored"))


def is_foreign_option(key: str) -> bool:
    """Tell whether a key of TLS options is of another product: nothing of ours, of Kubernetes or of the API depends on it.

    Source: ListenerTLSConfig.options, "un-prefixed names are reserved for key names defined by Gateway API".
    """
    domain, slash, _ = key.partition("/")
    own = domain == EDGE_GROUP or domain == "k8s.io" or domain.endswith(".k8s.io")
    return bool(slash) and not own


def closing_problems(obj: Object, fate: str, reason: Word) -> tuple[Problem, ...]:
    """Return the problems of an object that closes as a whole, for objects without a report of their own."""
    report = Report(ref_of(obj))
    refuse_unserved(obj, report, fate, reason=reason)
    return report.problems


def _is_below(one: UnsupportedField, path: str) -> bool:
    return one.path.startswith(path) and one.path[len(path) :][:1] in (".", "[")


def _words(one: UnsupportedField, report: Report, fate: str) -> str:
    ours = report.object.group == EDGE_GROUP
    if one.known and ours and (message := describe_field(report.object.kind, one.path)):
        return f"{message}; {fate} until the field is removed (edgefast docs migrating)"
    if one.known:
        return f"is not supported; {fate} until the field is removed"
    known = f" (it knows Gateway API {' and '.join(RELEASES)})"
    return (
        f"is not known to this release{known if report.object.group == GATEWAY_GROUP else ''}; {fate}: "
        "remove the field, or install a release that has it"
    )
