"""Statuses of Gateways and their listeners.

In: the drafts after merging, the number of routes on each listener, and what the caller observes of
fleets. Out: GatewayStatus values. In standalone a Gateway is programmed when one of its listeners is
served; in a cluster it needs an address and an available proxy as well.
Source: Gateway API GatewayConditionType, ListenerConditionType.
Must never: count a route that is not accepted.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.translate.address import is_bound, parse_address
from edgefast.translate.condition import Condition, fails, holds, judge, render_problems
from edgefast.translate.gateway import GatewayDraft
from edgefast.translate.listener import ListenerDraft
from edgefast.translate.settings import FleetState, Settings
from edgefast.translate.status import (
    GatewayStatus,
    GatewayStatusAddress,
    ListenerStatus,
    RouteKind,
)

MAX_ADDRESSES = 16  # maxItems of status.addresses
_NAMED = 5


def judge_gateway(
    draft: GatewayDraft, attached: Mapping[str, int], settings: Settings
) -> GatewayStatus:
    """Return the status of a Gateway; `attached` counts routes by listener name."""
    generation = draft.gateway.metadata.generation
    state = _state_of(draft, settings)
    conditions = [_accepted(draft, generation), _programmed(draft, state, settings, generation)]
    resolved = _resolved(draft, generation)
    if resolved is not None:
        conditions.append(resolved)
    if any(one.tls is not None and one.tls.insecure for one in draft.listeners):
        said = "AllowInsecureFallback lets clients in whose certificate is missing or invalid"
        conditions.append(
            holds("InsecureFrontendValidationMode", "ConfigurationChanged", said, generation)
        )
    return GatewayStatus(
        addresses=_addresses(draft, state, settings) if draft.accepted else (),
        conditions=tuple(conditions),
        listeners=tuple(
            _judge_listener(one, draft, attached.get(one.name, 0), generation)
            for one in draft.listeners
        ),
    )


def _state_of(draft: GatewayDraft, settings: Settings) -> FleetState:
    if settings.standalone:
        return FleetState(name=draft.fleet, addresses=settings.addresses, replicas=1, available=1)
    found = (one for one in settings.fleets if one.name == draft.fleet)
    return next(found, FleetState(name=draft.fleet))


def _accepted(draft: GatewayDraft, generation: int) -> Condition:
    if draft.report.refused:
        said = render_problems(draft.report.refused)
        return fails("Accepted", draft.report.refused[0].reason, said, generation)
    broken = [one for one in draft.listeners if not one.served]
    if not broken:
        return holds("Accepted", "Accepted", "Gateway is accepted", generation)
    names = ", ".join(one.spec.name for one in broken)
    said = f"listeners not served: {names}"
    if draft.accepted:
        return holds("Accepted", "ListenersNotValid", said, generation)
    return fails("Accepted", "ListenersNotValid", said, generation)


def _programmed(
    draft: GatewayDraft, state: FleetState, settings: Settings, generation: int
) -> Condition:
    if not draft.accepted or not any(one.served for one in draft.listeners):
        return fails("Programmed", "Invalid", "no listener is served", generation)
    if draft.unusable:
        said = render_problems(draft.unusable)
        return fails("Programmed", "AddressNotUsable", said, generation)
    lacking = [] if settings.standalone else _lacking(draft, state)
    if lacking:
        said = f"{', '.join(lacking)} cannot be used (there is {', '.join(state.addresses)})"
        return fails("Programmed", "AddressNotUsable", said, generation)
    if settings.standalone:
        served = ", ".join(one.spec.name for one in draft.listeners if one.served)
        return holds("Programmed", "Programmed", f"serving {served}", generation)
    if not state.addresses:
        said = f"fleet {state.name} has no address yet"
        return fails("Programmed", "AddressNotAssigned", said, generation)
    ready = f"{state.available}/{state.replicas} proxies available"
    if not state.available:
        return fails("Programmed", "NoResources", ready, generation)
    said = f"Address assigned to the Gateway, {ready}"
    return holds("Programmed", "Programmed", said, generation)


def _lacking(draft: GatewayDraft, state: FleetState) -> list[str]:
    """Return requested addresses that the fleet lacks; where none is known yet, none lacks."""
    there = {_same_address(one) for one in state.addresses}
    wanted = [one.value for one in draft.gateway.spec.addresses if one.value]
    return [value for value in wanted if there and _same_address(value) not in there]


def _same_address(value: str) -> str:
    """Return an address in its one text, so that those that are equal compare so."""
    return str(parse_address(value) or value)


def _resolved(draft: GatewayDraft, generation: int) -> Condition | None:
    """Judge the Gateway's own references; without any, only broken listeners make it appear."""
    if draft.report.unresolved:
        return judge("ResolvedRefs", draft.report.unresolved, generation, reason="", message="")
    broken = [one.spec.name for one in draft.listeners if one.report.unresolved]
    if broken:
        said = f"listeners with references that lead nowhere: {', '.join(broken)}"
        return fails("ResolvedRefs", "ListenersNotResolved", said, generation)
    if draft.certificate is not None:
        said = "All references are resolved"
        return holds("ResolvedRefs", "ResolvedRefs", said, generation)
    return None


def _addresses(
    draft: GatewayDraft, state: FleetState, settings: Settings
) -> tuple[GatewayStatusAddress, ...]:
    """Return those of the requested addresses that there are, else all there are."""
    wanted = {_same_address(one.value) for one in draft.gateway.spec.addresses if one.value}
    if settings.standalone:
        usable = [one for one in sorted(wanted) if is_bound(one, settings)]
    else:
        usable = [one for one in state.addresses if _same_address(one) in wanted]
    found = usable or state.addresses
    return tuple(
        GatewayStatusAddress(type="IPAddress" if parse_address(one) else "Hostname", value=one)
        for one in found[:MAX_ADDRESSES]
    )


def _judge_listener(
    one: ListenerDraft, draft: GatewayDraft, attached: int, generation: int
) -> ListenerStatus:
    report = one.report
    conditions = [
        judge(
            "Accepted",
            [*report.refused, *one.conflicts],
            generation,
            reason="Accepted",
            message="Listener is accepted",
        ),
        _listener_programmed(one, draft, generation),
        judge(
            "ResolvedRefs",
            report.unresolved,
            generation,
            reason="ResolvedRefs",
            message="All references are resolved",
        ),
    ]
    if one.conflicts:
        said = render_problems(one.conflicts)
        conditions.append(holds("Conflicted", one.conflicts[0].reason, said, generation))
    if one.overlaps:
        names = ", ".join(one.overlaps[:_NAMED])
        said = f"hostname {one.hostname} overlaps with listener {names}"
        conditions.append(holds("OverlappingTLSConfig", "OverlappingHostnames", said, generation))
    return ListenerStatus(
        name=one.spec.name,
        supported_kinds=tuple(RouteKind.of(kind) for kind in one.kinds),
        attached_routes=attached,
        conditions=tuple(conditions),
    )


def _listener_programmed(one: ListenerDraft, draft: GatewayDraft, generation: int) -> Condition:
    if draft.report.refused:
        return fails("Programmed", "Invalid", "the Gateway is not accepted", generation)
    if one.served:
        return holds("Programmed", "Programmed", "Listener is served", generation)
    found = [*one.report.refused, *one.conflicts, *one.report.unresolved]
    return fails("Programmed", "Invalid", render_problems(found), generation)
