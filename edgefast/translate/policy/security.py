"""SecurityPolicy: who may enter: one policy -> its units.

In: a policy and a Reader. Out: an `OwnOutcome` with the units "authorization" and "extAuth", or "closed" when all of it is a mistake
or asks for what is not served. A mistake in one unit, or a reference of it that leads nowhere, makes that unit answer 500.
Source: shared design of policies (fail closed).
Must never: give a unit that lets pass what a mistake was to decide about.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.resources.edge.securitypolicy import SecurityPolicy
from edgefast.resources.kinds import ref_of
from edgefast.translate.facts.facts import Reader
from edgefast.translate.facts.policyshape import CLOSED, Unit
from edgefast.translate.policy.authorization import translate_authorization
from edgefast.translate.policy.extauth import translate_ext_auth
from edgefast.translate.policy.outcome import (
    Aims,
    OwnOutcome,
    UnitOutcome,
    check_whole,
    close_policy,
    note_version,
    shape_policy,
)
from edgefast.translate.report.report import Report

__all__ = ["translate_security"]


def translate_security(policy: SecurityPolicy, aimed: Aims, reader: Reader) -> OwnOutcome:
    """Translate one policy; `aimed`: what it is for that no targetRef says."""
    report, spec = Report(ref_of(policy)), policy.spec
    targets, closed = check_whole(policy, aimed, report)
    names: list[Unit] = [CLOSED] if closed else []
    if spec.authorization is not None and not closed:
        names.append("authorization")
    if spec.ext_auth is not None and not closed:
        names.append("extAuth")
    shape = shape_policy(policy, "security", tuple(names))
    units = [close_policy(shape, closed)] if closed else []
    # Of a closed policy everything else that is wrong is told as well.
    if spec.authorization is not None:
        units.append(_translate_authorization(policy, shape.unit("authorization"), report))
    if spec.ext_auth is not None:
        units.append(_translate_ext_auth(policy, shape.unit("extAuth"), reader, report))
    kept = units[:1] if closed else units
    asked = (ref for one in kept for ref in one.clusters)
    return OwnOutcome(
        policy=policy,
        shape=shape,
        targets=targets,
        aimed=aimed,
        units=note_version(policy, kept),
        reads=reader.noted(),
        clusters=tuple(sorted(reader.clusters.union(asked))),
        refused=tuple(report.refused),
        unresolved=tuple(report.unresolved),
        problems=report.problems,
    )


def _translate_authorization(policy: SecurityPolicy, name: str, report: Report) -> UnitOutcome:
    given, before = policy.spec.authorization, _count(report)
    assert given is not None
    made = translate_authorization(given, report, "spec.authorization")
    if why := _first_after(report, before):
        return UnitOutcome(ir.PolicyUnit(name=name, status=500, reason=why))
    return UnitOutcome(ir.PolicyUnit(name=name, authorization=made))


def _translate_ext_auth(
    policy: SecurityPolicy, name: str, reader: Reader, report: Report
) -> UnitOutcome:
    given, before = policy.spec.ext_auth, _count(report)
    assert given is not None
    namespace = policy.metadata.namespace
    made, clusters = translate_ext_auth(given, namespace, reader, report, "spec.extAuth")
    if why := _first_after(report, before):
        return UnitOutcome(ir.PolicyUnit(name=name, status=500, reason=why))
    return UnitOutcome(ir.PolicyUnit(name=name, ext_auth=made), clusters)


def _count(report: Report) -> tuple[int, int]:
    return len(report.refused), len(report.unresolved)


def _first_after(report: Report, before: tuple[int, int]) -> str:
    """Return what was wrong first since then, "" when nothing was."""
    found = (*report.refused[before[0] :], *report.unresolved[before[1] :])
    return found[0].text() if found else ""
