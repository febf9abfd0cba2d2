"""Override: the effective response overrides of a rule, and the result for a response.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one;
answers.
Out: the same answers, as clients get them. The twin of core/traffic/override.pyx. Must never:
predict the response of a backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from edgefast import ir
from edgefast.explain.explanation import Answer
from edgefast.explain.traffic import find_first

__all__ = ["describe_overrides", "find_overrides", "replace_answers"]

_SOURCES = {
    "backend": "of backends",
    "gateway": "of edgefast",
    "no_endpoints": "without endpoints",
}


def find_overrides(units: Sequence[ir.PolicyUnit]) -> tuple[tuple[ir.ResponseOverride, ...], str]:
    """Return those that are in force, and whose they are."""
    return find_first(units, lambda one: one.override) or ((), "")


def replace_answers(
    answers: Iterable[Answer], units: Sequence[ir.PolicyUnit], *, grpc: bool
) -> tuple[Answer, ...]:
    """Return the answers of the proxy itself as they are given."""
    overrides, owner = find_overrides(units)
    if not overrides or grpc:
        return tuple(answers)
    return tuple(_replace(one, overrides, owner) for one in answers)


def _replace(one: Answer, overrides: Sequence[ir.ResponseOverride], owner: str) -> Answer:
    if one.kind not in ("status", "redirect"):
        return one
    for override in overrides:
        if override.source == "backend":
            continue
        if override.source == "no_endpoints" and one.check != "endpoints":
            continue
        if any(first <= one.status <= last for first, last in override.statuses):
            if override.service is not None:
                return msgspec.structs.replace(one, why=f"{one.why}; {_ask(override, owner)}")
            why = f"{one.why}; {owner} replaces the answer {one.status}"
            status = override.status or one.status
            if override.location:
                return msgspec.structs.replace(
                    one, kind="redirect", status=status, location=override.location, why=why
                )
            return msgspec.structs.replace(one, kind="status", status=status, location="", why=why)
    return one


def _ask(override: ir.ResponseOverride, owner: str) -> str:
    service = override.service
    assert service is not None
    status = "its status and body" if service.own_status else "its body"
    return f"{owner} asks {service.cluster} for the answer, and the client gets {status}"


def describe_overrides(overrides: Iterable[ir.ResponseOverride]) -> str:
    """Return what they do."""
    return ", ".join(map(_describe, overrides)) or "no answer is replaced"


def _describe(one: ir.ResponseOverride) -> str:
    spans = " or ".join(
        str(first) if first == last else f"{first} to {last}" for first, last in one.statuses
    )
    who = _SOURCES.get(one.source, "")
    spans = f"{spans} {who}" if who else spans
    if one.service is not None:
        status = "its status" if one.service.own_status else "the same status"
        path = f" at {one.service.path}" if one.service.path else ""
        return f"{spans} becomes the answer of {one.service.cluster}{path} with {status}"
    if one.location:
        return f"{spans} becomes {one.status} to {one.location}"
    kind = f", {one.content_type}" if one.content_type else ""
    return f"{spans} becomes {one.status or 'the same'} with {len(one.body)} bytes{kind}"
