"""Security: one SecurityPolicy -> its units.

In: a policy and a Reader. Out: an `EdgePolicyOutcome` with a unit for each feature that it sets. It
is "closed" when all of it is a mistake or requires what is not served. A mistake in one unit, or an
invalid reference of it, makes that unit answer 500.
Source: shared design of policies (fail closed).
Must never: give a unit that admits requests about which an invalid part was to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast import ir
from edgefast.api.edge.securitypolicy import SecurityPolicy, SecurityPolicySpec
from edgefast.api.kinds import ref_of
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.policy_summary import CLOSED, PolicySummary, Unit
from edgefast.translate.policy.authorization import translate_authorization
from edgefast.translate.policy.connection_access import list_asks
from edgefast.translate.policy.credentials import (
    MAX_PLACES,
    translate_api_keys,
    translate_basic_auth,
)
from edgefast.translate.policy.ext_auth import translate_ext_auth
from edgefast.translate.policy.jwt import MAX_PROVIDERS, translate_jwt
from edgefast.translate.policy.jwt_principal import PolicyTokens
from edgefast.translate.policy.oidc import PROVIDER, translate_oidc
from edgefast.translate.policy.outcome import (
    Aims,
    EdgePolicyOutcome,
    UnitOutcome,
    check_whole,
    close_policy,
    note_version,
    shape_policy,
    warn_empty,
)
from edgefast.translate.report.report import Report

__all__ = ["translate_security"]

_SATISFY = ("All", "Any")
_BASIC = ir.CredentialExtractors(headers=(("authorization", ""),))
_CALLBACK = ir.CredentialExtractors(params=("code", "state"))
_BROKEN = "while it has an error, requests to its targets get 500"


def translate_security(policy: SecurityPolicy, targeted: Aims, reader: Reader) -> EdgePolicyOutcome:
    """Translate one policy; `targeted`: what it is for that no targetRef says."""
    report, spec = Report(ref_of(policy)), policy.spec
    targets, closed = check_whole(policy, targeted, report)
    closed = closed or _check_satisfy(policy, report)
    set_ones: dict[Unit, object] = {
        "authorization": spec.authorization,
        "apiKeyAuth": spec.api_key_auth,
        "basicAuth": spec.basic_auth,
        "oidc": spec.oidc,
        "jwt": spec.jwt,
        "extAuth": spec.ext_auth,
    }
    names = tuple(name for name, part in set_ones.items() if part is not None)
    shape = shape_policy(
        policy, "security", (CLOSED,) if closed else names, asks=list_asks(spec.authorization)
    )
    warn_empty(policy, said=bool(closed or names), report=report)
    units = [close_policy(shape, closed)] if closed else []
    # Of a closed policy everything else that is wrong is told as well.
    if spec.authorization is not None:
        units.append(_translate_authorization(policy, shape, report))
    units += _translate_proofs(policy, shape, reader, report)
    if spec.ext_auth is not None:
        units.append(_translate_ext_auth(policy, shape.unit("extAuth"), reader, report))
    if spec.satisfy == "Any":
        units = [_mark_any(one) for one in units]
    kept = [_with_places(units[0], units[1:])] if closed else units
    for one in () if closed else kept:
        if one.unit.status:
            report.warn(f"spec.{one.unit.name.rpartition('#')[2]}", "Invalid", _BROKEN)
    requested = (ref for one in kept for ref in one.clusters)
    return EdgePolicyOutcome(
        policy=policy,
        shape=shape,
        targets=targets,
        aimed=targeted,
        units=note_version(policy, kept),
        reads=reader.noted(),
        clusters=tuple(sorted(reader.clusters.union(requested))),
        refused=tuple(report.refused),
        unresolved=tuple(report.unresolved),
        unavailable=tuple(report.unavailable),
        problems=report.problems,
    )


def _check_satisfy(policy: SecurityPolicy, report: Report) -> str:
    """Check `satisfy`; return why the policy is closed, "" when it is not."""
    spec, path = policy.spec, "spec.satisfy"
    given = spec.authorization
    if spec.satisfy not in _SATISFY:
        message = supported_text(spec.satisfy, _SATISFY)
        return report.refuse(path, "NotSupported", message, condition="Invalid").text()
    if spec.satisfy == "Any" and (spec.jwt is not None or spec.oidc is not None):
        message = f"Any is not supported with {'oidc' if spec.oidc is not None else 'jwt'}"
        return report.refuse(path, "NotSupported", message, condition="Invalid").text()
    keys = spec.api_key_auth
    if spec.satisfy == "Any" and keys is not None and keys.sanitize:
        # Where an address is enough, no key is looked for, and none would be removed.
        message = "Any is not supported with apiKeyAuth.sanitize"
        return report.refuse(path, "NotSupported", message, condition="Invalid").text()
    if spec.satisfy == "Any" and given is not None and given.default_action == "Allow":
        message = "Any: authorization.defaultAction Allow lets every request pass that no rule denies, without credentials"
        report.warn(path, "Invalid", message, "set authorization.defaultAction: Deny")
    return ""


def _mark_any(one: UnitOutcome) -> UnitOutcome:
    return msgspec.structs.replace(one, unit=msgspec.structs.replace(one.unit, any=True))


def _translate_authorization(
    policy: SecurityPolicy, shape: PolicySummary, report: Report
) -> UnitOutcome:
    name, before = shape.unit("authorization"), _count(report)
    given, jwt = policy.spec.authorization, policy.spec.jwt
    assert given is not None
    units = {one.name: shape.unit("jwt") for one in (jwt.providers if jwt is not None else ())}
    if policy.spec.oidc is not None:
        units[PROVIDER] = shape.unit("oidc")
    tokens = PolicyTokens(units) if units else None
    made = translate_authorization(given, tokens, report, "spec.authorization")
    if why := _first_after(report, before):
        return _close(name, why)
    return UnitOutcome(ir.PolicyUnit(name=name, authorization=made))


def _translate_proofs(
    policy: SecurityPolicy, shape: PolicySummary, reader: Reader, report: Report
) -> Iterator[UnitOutcome]:
    spec, namespace = policy.spec, policy.metadata.namespace
    if spec.api_key_auth is not None:
        name, before = shape.unit("apiKeyAuth"), _count(report)
        keys = translate_api_keys(spec.api_key_auth, namespace, reader, report, "spec.apiKeyAuth")
        why = _first_after(report, before)
        made = ir.PolicyUnit(name=name, api_key=keys)
        yield _close(name, why, made) if why else UnitOutcome(made)
    if spec.basic_auth is not None:
        name, before = shape.unit("basicAuth"), _count(report)
        users = translate_basic_auth(spec.basic_auth, namespace, reader, report, "spec.basicAuth")
        why = _first_after(report, before)
        made = ir.PolicyUnit(name=name, basic=users)
        yield _close(name, why, made) if why else UnitOutcome(made)
    if spec.oidc is not None:
        name, before = shape.unit("oidc"), _count(report)
        login, clusters = translate_oidc(
            spec.oidc, spec.jwt, namespace, reader, report, "spec.oidc"
        )
        _check_cookies(spec, report)
        why = _first_after(report, before)
        made = ir.PolicyUnit(name=name, oidc=login)
        yield _close(name, why, made) if why else UnitOutcome(made, clusters)
    if spec.jwt is not None:
        name, before = shape.unit("jwt"), _count(report)
        jwt, clusters = translate_jwt(spec.jwt, namespace, reader, report, "spec.jwt")
        why = _first_after(report, before)
        made = ir.PolicyUnit(name=name, jwt=jwt)
        yield _close(name, why, made) if why else UnitOutcome(made, clusters)


def _check_cookies(spec: SecurityPolicySpec, report: Report) -> None:
    """A key that is removed from the cookies changes the line that has the session."""
    keys = spec.api_key_auth
    if keys is not None and keys.sanitize and any(one.cookies for one in keys.extract_from):
        message = "apiKeyAuth.sanitize with a key in a cookie is not supported together with oidc"
        report.refuse("spec.oidc", "NotSupported", message, condition="Invalid")


def _translate_ext_auth(
    policy: SecurityPolicy, name: str, reader: Reader, report: Report
) -> UnitOutcome:
    given, before = policy.spec.ext_auth, _count(report)
    assert given is not None
    namespace = policy.metadata.namespace
    made, clusters = translate_ext_auth(given, namespace, reader, report, "spec.extAuth")
    if why := _first_after(report, before):
        return _close(name, why)
    return UnitOutcome(ir.PolicyUnit(name=name, ext_auth=made), clusters)


def _close(name: str, why: str, made: ir.PolicyUnit | None = None) -> UnitOutcome:
    """Return a unit that answers 500; `made`: the unit without the mistake, so that logs hide its credentials too."""
    places = _places_of(made) if made is not None else ()
    return UnitOutcome(ir.PolicyUnit(name=name, status=500, reason=why, places=places))


def _with_places(closed: UnitOutcome, units: Iterable[UnitOutcome]) -> UnitOutcome:
    """Return a closed policy's unit with the places of credentials for its other units."""
    places = dict.fromkeys(place for one in units for place in _places_of(one.unit))
    unit = msgspec.structs.replace(closed.unit, places=tuple(places))
    return msgspec.structs.replace(closed, unit=unit)


def _places_of(unit: ir.PolicyUnit) -> tuple[ir.CredentialExtractors, ...]:
    found = list(unit.places)
    if unit.api_key is not None:
        found.append(unit.api_key.places)
    if unit.basic is not None:
        found.append(_BASIC)
    if unit.oidc is not None:
        found.append(_CALLBACK)
    if unit.jwt is not None:
        found += [one.places for one in unit.jwt.providers[:MAX_PROVIDERS]]
    return tuple(
        ir.CredentialExtractors(
            headers=one.headers[:MAX_PLACES],
            cookies=one.cookies[:MAX_PLACES],
            params=one.params[:MAX_PLACES],
        )
        for one in dict.fromkeys(found)
    )


def _count(report: Report) -> tuple[int, int]:
    return len(report.refused), len(report.unresolved)


def _first_after(report: Report, before: tuple[int, int]) -> str:
    """Return what was wrong first since then, "" when nothing was."""
    found = (*report.refused[before[0] :], *report.unresolved[before[1] :])
    return found[0].text() if found else ""
