"""Policy conditions: conditions of edgefast's policies, and problems beside the mistakes of the objects.

In: a policy's outcome, the result of its units below each Gateway.
Out: conditions and problems; edge_policy.py finds their objects.
Must never: look anything up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.policy_target import LAYER4_TARGETS
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.ir import CHECKS_MOST
from edgefast.translate.conditions.condition import (
    Condition,
    condition_of,
    fails,
    holds,
    render_problems,
)
from edgefast.translate.deps.policy_summary import Target, Unit
from edgefast.translate.policy.connection_access import list_request_settings
from edgefast.translate.policy.fail_closed import report_closed
from edgefast.translate.policy.outcome import EdgePolicyOutcome
from edgefast.translate.status.policy_usage import PolicyUse
from edgefast.translate.status.tls_policy import MAX_ANCESTORS

__all__ = [
    "accepted_condition",
    "programmed_condition",
    "report_closed_targets",
    "report_uncovered",
    "report_skipped_checks",
    "warn_lost",
]

_NAMED = 3  # policies, routes or backends that a message names
_FRONTS = ("Gateway", "ListenerSet")
_FIELDS: dict[Unit, str] = {
    "authorization": "spec.authorization",
    "apiKeyAuth": "spec.apiKeyAuth",
    "basicAuth": "spec.basicAuth",
    "oidc": "spec.oidc",
    "jwt": "spec.jwt",
    "extAuth": "spec.extAuth",
}


def accepted_condition(
    outcome: EdgePolicyOutcome, refused: list[Problem], gateways: int
) -> tuple[Condition, ...]:
    generation = _generation(outcome)
    message = "Policy is accepted"
    if gateways > MAX_ANCESTORS:
        message += f"; it applies at all of its {gateways} Gateways, and a status lists {MAX_ANCESTORS} of them"
    unresolved = outcome.unresolved
    resolved = condition_of(
        "ResolvedRefs",
        unresolved,
        generation,
        reason="ResolvedRefs",
        message="All references are resolved",
    )
    accepted = condition_of("Accepted", refused, generation, reason="Accepted", message=message)
    if not outcome.unavailable:
        return accepted, resolved
    lacking = render_problems(outcome.unavailable)
    return accepted, resolved, fails("BackendsAvailable", "EndpointsNotFound", lacking, generation)


def programmed_condition(
    outcome: EdgePolicyOutcome,
    lost: Mapping[Unit, tuple[str, ...]],
    used: Mapping[Unit, PolicyUse],
    refused: Iterable[Problem],
    unmade: tuple[str, ...],
    *,
    reached: bool,
) -> Condition:
    """Say whether what the policy says is what requests meet at a Gateway."""
    generation = _generation(outcome)
    if not reached:
        missing = [one for one in refused if (one.condition or one.reason) == "TargetNotFound"]
        return fails("Programmed", "TargetNotFound", render_problems(missing), generation)
    if lost:
        message = "; ".join(_notify(unit, by) for unit, by in lost.items())
        return fails("Programmed", "Overridden", message, generation)
    broken = [one.unit.reason for one in outcome.units if one.unit.status]
    if broken:
        message = f"requests get 500: {'; '.join(broken)}"
        return fails("Programmed", "Invalid", message, generation)
    if uncovered := _routes_of(one.refused for one in used.values()):
        return fails("Programmed", "NotSupported", _report_refused(uncovered), generation)
    unused = _report_unused(outcome, used.values())
    if unused and any(target[0] in LAYER4_TARGETS for target, _ in outcome.targets):
        return fails("Programmed", "NotSupported", unused, generation)
    if unmade:
        return fails("Programmed", "NotSupported", _report_skipped(unmade), generation)
    assert outcome.policy is not None
    newer = outcome.policy.newer
    message = f"Policy is programmed{f': {newer.said}' if newer is not None else ''}"
    return holds("Programmed", "Programmed", message, generation)


def _generation(outcome: EdgePolicyOutcome) -> int:
    """Return the version that conditions are about: the newest there is, in force or not."""
    assert outcome.policy is not None
    newer = outcome.policy.newer
    return newer.generation if newer is not None else outcome.policy.metadata.generation


def _notify(unit: Unit, by: tuple[str, ...]) -> str:
    return f"{unit}: {_named(by)} applies instead"


def _routes_of(named: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({one for routes in named for one in routes}))


def _named(some: tuple[str, ...]) -> str:
    more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
    return f"{', '.join(some[:_NAMED])}{more}"


def _report_refused(routes: tuple[str, ...]) -> str:
    return f"{_named(routes)}: not supported for this kind of route; its connections are refused"


def _report_unused(outcome: EdgePolicyOutcome, used: Iterable[PolicyUse]) -> str:
    """Name the settings that do not apply to connections, with routes below the policy; "": all apply."""
    policy, routes = outcome.policy, _routes_of(one.layer4 for one in used)
    fields = list_request_settings(policy.spec) if isinstance(policy, BackendTrafficPolicy) else ()
    if not routes or not fields:
        return ""
    named = ", ".join(f"spec.{one}" for one in fields)
    return f"{_named(routes)} ({named}): not supported for this kind of route; its other settings apply"


def report_closed_targets(
    ref: ObjectRef, outcome: EdgePolicyOutcome, present: Iterable[tuple[Target, str]]
) -> Iterator[Problem]:
    """Report the targets that a policy with an error closes; one that is unreadable closes all of the namespace."""
    closed = outcome.policy.closed if outcome.policy is not None else None
    if outcome.policy is None or closed is None:
        return
    cause = closed.cause or "while the policy has an error"
    if any(len(one.path) == 1 for one in outcome.policy.aimed):
        message = (
            f"a target cannot be read; {cause}, all requests of namespace {ref.namespace} get 500"
        )
        if outcome.shape.family == "security":
            message += ", and connections of its TCPRoutes, TLSRoutes and UDPRoutes are refused"
        yield Problem(ref, "spec", "Invalid", message, severity="warning")
    for target, path in present:
        if path != "spec":
            yield report_closed(ref, path, target, cause)


def report_uncovered(
    ref: ObjectRef, outcome: EdgePolicyOutcome, used: Iterable[Mapping[Unit, PolicyUse]]
) -> Iterator[Problem]:
    """Tell of routes of layer 4 that are closed because of a policy, and of those for which it says nothing."""
    places = tuple(one for by_unit in used for one in by_unit.values())
    path = next((path for target, path in outcome.targets if target[0] in _FRONTS), "spec")
    if refused := _routes_of(one.refused for one in places):
        hint = "set authorization with clientCIDRs only, or attach the route to another Gateway"
        yield Problem(ref, path, "NotSupported", _report_refused(refused), hint)
    if message := _report_unused(outcome, places):
        yield Problem(ref, path, "NotSupported", message, severity="warning")


def report_skipped_checks(ref: ObjectRef, unmade: Iterable[tuple[str, ...]]) -> Iterator[Problem]:
    """Tell of backends whose endpoints are not asked what a policy says, at any of its Gateways."""
    if backends := tuple(sorted({one for backends in unmade for one in backends})):
        hint = "use the same health check in all policies of a backend"
        path = "spec.healthCheck.active"
        yield Problem(ref, path, "NotSupported", _report_skipped(backends), hint)


def _report_skipped(backends: tuple[str, ...]) -> str:
    return f"{_named(backends)}: its health check is not used because {CHECKS_MOST} checks of overrides and older policies exist; its requests also go to endpoints that fail the check"


def warn_lost(ref: ObjectRef, lost: Iterable[Mapping[Unit, tuple[str, ...]]]) -> Iterator[Problem]:
    """Tell of units that hold at none of their Gateways."""
    places = tuple(lost)
    for unit in places[0] if places else ():
        if all(unit in one for one in places):
            by = tuple(dict.fromkeys(name for one in places for name in one[unit]))
            path = _FIELDS.get(unit, "spec")
            yield Problem(ref, path, "Overridden", _notify(unit, by), severity="warning")
