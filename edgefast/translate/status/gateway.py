"""Gateway: statuses of Gateways and their listeners.

In: the drafts after merging, the number of routes on each listener, and the caller's observations of fleets. Out: GatewayStatus values. In
standalone a Gateway is programmed when one of its listeners is served; in a cluster it also needs an address and a ready proxy.
Source: Gateway API GatewayConditionType, ListenerConditionType.
Must never: count a route that is not accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edgefast.api.kinds import EDGE_GROUP
from edgefast.diagnostics.reasons.word import Word
from edgefast.netaddr import read_address
from edgefast.translate.conditions.condition import (
    Condition,
    condition_of,
    fails,
    holds,
    render_problems,
)
from edgefast.translate.conditions.status import (
    GatewayStatus,
    GatewayStatusAddress,
    ListenerStatus,
    RouteKind,
)
from edgefast.translate.deps.policy_summary import Target
from edgefast.translate.filter.listener_filter import FilterOutcome
from edgefast.translate.fleet.fleet import fleet_namespace
from edgefast.translate.gateway.address import is_bound
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.settings import FleetState, Settings
from edgefast.translate.status.affected_by_policies import Attached, report_affected

MAX_ADDRESSES = 16  # maxItems of status.addresses
_INSECURE = "AllowInsecureFallback"
_NAMED = 5


#: What is known of fleets, by name.
Fleets = Mapping[str, Sequence[FleetState]]
#: Filters of listeners, by name of the listener.
Filtered = Mapping[str, FilterOutcome]


def index_fleets(settings: Settings) -> Fleets:
    """Return the observed fleets by name; several namespaces may have one of a name."""
    fleets: dict[str, list[FleetState]] = {}
    for one in settings.fleets:
        fleets.setdefault(one.name, []).append(one)
    return fleets


def compute_gateway_status(
    draft: GatewayDraft,
    attached: Mapping[str, int],
    fleets: Fleets,
    settings: Settings,
    policies: Attached,
    filters: Filtered,
) -> GatewayStatus:
    """Return the status of a Gateway; `attached` counts routes by listener name, `policies` are those on each target."""
    generation = draft.gateway.metadata.generation
    state = _state_of(draft, fleets, settings)
    conditions = [
        _accepted(draft, generation, filters),
        _programmed(draft, state, settings, generation, filters),
    ]
    for one in (
        _assigned(draft, state, settings, generation),
        _resolved(draft, generation, filters),
    ):
        if one is not None:
            conditions.append(one)
    if _is_insecure(draft):
        message = "AllowInsecureFallback accepts clients with a missing or invalid certificate"
        conditions.append(
            holds("InsecureFrontendValidationMode", "ConfigurationChanged", message, generation)
        )
    conditions += report_affected(policies, (), (("Gateway", *draft.key, ""),), generation)
    return GatewayStatus(
        addresses=_addresses(draft, state, settings) if draft.accepted else (),
        conditions=tuple(conditions),
        listeners=tuple(
            compute_listener_status(
                one, draft, attached.get(one.name, 0), generation, policies, filters
            )
            for one in draft.own_listeners
            if one.named
        ),
        attached_listener_sets=sum(one.served for one in draft.sets) if draft.accepted else 0,
    )


def _is_insecure(draft: GatewayDraft) -> bool:
    """Tell whether any port is configured to let clients in unverified, used or not."""
    frontend = draft.gateway.spec.tls.frontend if draft.gateway.spec.tls else None
    if frontend is None:
        return False
    configs = (frontend.default, *(one.tls for one in frontend.per_port))
    return any(one.validation and one.validation.mode == _INSECURE for one in configs)


def _state_of(draft: GatewayDraft, fleets: Fleets, settings: Settings) -> FleetState:
    if settings.standalone:
        return FleetState(name=draft.fleet, addresses=settings.addresses)
    home = fleet_namespace(draft, settings)
    # A mode that has just changed leaves fleets of this name elsewhere for a while.
    found = (one for one in fleets.get(draft.fleet, ()) if one.namespace in ("", home))
    return next(found, FleetState(name=draft.fleet))


def serves(one: ListenerDraft, filters: Filtered) -> bool:
    """Tell whether a request can come through a listener: one whose filters are broken answers 500 to all of them."""
    return one.served and not ((found := filters.get(one.name)) and found.broken)


def _accepted(draft: GatewayDraft, generation: int, filters: Filtered) -> Condition:
    if draft.report.refused:
        message = render_problems(draft.report.refused)
        return fails("Accepted", draft.report.refused[0].reason, message, generation)
    if draft.closed or draft.closed_by:
        first, *_ = closing = [*draft.closed, *draft.closed_by]
        message = render_problems(closing)
        return fails("Accepted", first.condition or first.reason, message, generation)
    broken = [one for one in draft.own_listeners if not serves(one, filters)]
    if not broken:
        return holds("Accepted", "Accepted", "Gateway is accepted", generation)
    message = f"listeners not served: {_names(broken)}"
    conflicted = [one for one in broken if one.conflicts]
    if conflicted:
        served = [one for one in draft.own_listeners if serves(one, filters)]
        message += f" (conflicted: {_names(conflicted)}; served: {_names(served) or 'none'})"
    if any(one.accepted and not one.closed for one in draft.listeners):
        return holds("Accepted", "ListenersNotValid", message, generation)
    return fails("Accepted", "ListenersNotValid", message, generation)


def _names(listeners: Iterable[ListenerDraft]) -> str:
    return ", ".join(one.spec.name for one in listeners)


def _programmed(
    draft: GatewayDraft,
    state: FleetState,
    settings: Settings,
    generation: int,
    filters: Filtered,
) -> Condition:
    unbound = draft.accepted and any(one.unbound for one in draft.listeners)
    if not unbound and not (
        draft.accepted and any(serves(one, filters) for one in draft.listeners)
    ):
        return fails("Programmed", "Invalid", "no listener is served", generation)
    if draft.unusable:
        message = render_problems(draft.unusable)
        return fails("Programmed", "AddressNotUsable", message, generation)
    lacking = [] if settings.standalone else _lacking(draft, state)
    if lacking:
        message = f"{', '.join(lacking)} cannot be used (available: {', '.join(state.addresses)})"
        return fails("Programmed", "AddressNotUsable", message, generation)
    if settings.standalone:
        served = ", ".join(one.section for one in draft.listeners if serves(one, filters))
        return holds("Programmed", "Programmed", f"serving {served}", generation)
    failure = f"; {state.failure}" if state.failure else ""
    if not state.addresses:
        if wrong := _too_many(draft):
            return fails("Programmed", "AddressNotUsable", wrong, generation)
        message = f"fleet {state.name} has no address yet{failure}"
        return fails("Programmed", "AddressNotAssigned", message, generation)
    if not state.ready:
        message = f"0/{state.replicas} proxies available{failure}"
        return fails("Programmed", "NoResources", message, generation)
    available = f"{len(state.ready)}/{max(state.replicas, len(state.ready))} proxies available"
    message = f"Address assigned to the Gateway, {available}{failure}"
    return holds("Programmed", "Programmed", message, generation)


def _assigned(
    draft: GatewayDraft, state: FleetState, settings: Settings, generation: int
) -> Condition | None:
    """Judge the addresses alone (GEP-5093); None while nobody knows which there will be."""
    requested = draft.gateway.spec.addresses
    wanted = any(one.value for one in requested)
    if not draft.accepted or not (state.addresses or (settings.standalone and wanted)):
        return None
    lacking = [
        one.value for one in requested if one.value and not _is_there(one.value, state, settings)
    ]
    if not lacking:
        message = "All requested addresses are assigned" if wanted else "Addresses are assigned"
        return holds("AddressesAssigned", "AddressesAssigned", message, generation)
    reason: Word = "PartiallyAssigned" if len(lacking) < len(requested) else "NotAssigned"
    return fails("AddressesAssigned", reason, f"not assigned: {', '.join(lacking)}", generation)


def _is_there(value: str, state: FleetState, settings: Settings) -> bool:
    """Whether the fleet has a requested address."""
    if settings.standalone:
        return is_bound(value, settings)
    return _same_address(value) in {_same_address(one) for one in state.addresses}


def _lacking(draft: GatewayDraft, state: FleetState) -> list[str]:
    """Return requested addresses that the fleet lacks; where none is known yet, none lacks."""
    there = {_same_address(one) for one in state.addresses}
    wanted = [one.value for one in draft.gateway.spec.addresses if one.value]
    return [value for value in wanted if there and _same_address(value) not in there]


def _too_many(draft: GatewayDraft) -> str:
    """Say which requested addresses no load balancer is asked for: a Service has room for one (loadBalancerIP)."""
    parameters = draft.parameters
    spec = parameters.class_spec if draft.gateway_class.merged else parameters.spec
    requested = [read_address(one.value or "") for one in draft.gateway.spec.addresses]
    wanted = list(dict.fromkeys(str(one) for one in requested if one is not None))
    if len(wanted) < 2 or (spec.service and spec.service.type not in (None, "LoadBalancer")):
        return ""
    return f"{', '.join(wanted[1:])} cannot be used: a load balancer has one address, and {wanted[0]} is requested"


def _same_address(value: str) -> str:
    """Return an address in its one text, so that those that are equal compare so."""
    return str(read_address(value) or value)


def _resolved(draft: GatewayDraft, generation: int, filters: Filtered) -> Condition | None:
    """Judge the references of the Gateway and its listeners together; None when there are none."""
    if draft.report.unresolved:
        return condition_of(
            "ResolvedRefs", draft.report.unresolved, generation, reason="", message=""
        )
    broken = [
        one.spec.name
        for one in draft.own_listeners
        if one.report.unresolved or ((found := filters.get(one.name)) and found.unresolved)
    ]
    if broken:
        message = f"listeners with unresolved references: {', '.join(broken)}"
        return fails("ResolvedRefs", "ListenersNotResolved", message, generation)
    if draft.certificate is not None or any(
        one.tls is not None or one.name in filters for one in draft.own_listeners
    ):
        message = "All references are resolved"
        return holds("ResolvedRefs", "ResolvedRefs", message, generation)
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
        GatewayStatusAddress(type="IPAddress" if read_address(one) else "Hostname", value=one)
        for one in found[:MAX_ADDRESSES]
    )


def compute_listener_status(
    one: ListenerDraft,
    draft: GatewayDraft,
    attached: int,
    generation: int,
    policies: Attached,
    filters: Filtered,
) -> ListenerStatus:
    """Return the status of a listener of the Gateway or of one of its ListenerSets, whose generation it is."""
    report, filtered = one.report, filters.get(one.name)
    refused = [*report.refused, *one.closed, *(filtered.refused if filtered else ())]
    unresolved = [*report.unresolved, *(filtered.unresolved if filtered else ())]
    # A set may well be told first that another has the place.
    wrong = [*one.conflicts, *refused] if one.set else [*refused, *one.conflicts]
    conditions = [
        condition_of(
            "Accepted",
            wrong,
            generation,
            reason="Accepted",
            message="Listener is accepted",
        ),
        _listener_programmed(one, draft, generation, filtered),
        condition_of(
            "ResolvedRefs",
            unresolved,
            generation,
            reason="ResolvedRefs",
            message="All references are resolved",
        ),
    ]
    if one.conflicts:
        message = render_problems(one.conflicts)
        conditions.append(holds("Conflicted", one.conflicts[0].reason, message, generation))
    if one.overlaps:
        # A set is not told what others call theirs.
        names = f"listener {', '.join(one.overlaps[:_NAMED])}"
        rival = names if one.set is None else "another listener of the Gateway"
        message = f"hostname {one.hostname} overlaps with {rival}"
        conditions.append(
            holds("OverlappingTLSConfig", "OverlappingHostnames", message, generation)
        )
    if one.tls is not None and one.tls.doubtful:
        first, message = one.tls.doubtful[0], render_problems(one.tls.doubtful)
        conditions.append(
            fails(f"{EDGE_GROUP}/CertificateValid", first.reason, message, generation)
        )
    conditions += _affected(one, draft, generation, policies)
    return ListenerStatus(
        name=one.spec.name,
        supported_kinds=tuple(RouteKind.of(kind) for kind in one.kinds),
        attached_routes=attached,
        conditions=tuple(conditions),
    )


def _affected(
    one: ListenerDraft, draft: GatewayDraft, generation: int, policies: Attached
) -> tuple[Condition, ...]:
    """Say which policies are attached to a listener; a ListenerSet as a whole is its listeners."""
    gateway: Target = ("Gateway", *draft.key, "")
    if one.set is None:
        place: Target = ("Gateway", *draft.key, one.spec.name)
        return report_affected(policies, (gateway,), (place,), generation)
    places = (("ListenerSet", *one.set, ""), ("ListenerSet", *one.set, one.spec.name))
    return report_affected(policies, (gateway,), places, generation)


def _listener_programmed(
    one: ListenerDraft, draft: GatewayDraft, generation: int, filtered: FilterOutcome | None
) -> Condition:
    if draft.report.refused or draft.closed or draft.closed_by:
        return fails("Programmed", "Invalid", "the Gateway is not accepted", generation)
    if one.served and filtered is not None and filtered.broken:
        message = f"all requests get 500: {render_problems(filtered.broken)}"
        return fails("Programmed", "Invalid", message, generation)
    if one.served:
        return holds("Programmed", "Programmed", "Listener is served", generation)
    found = [*one.report.refused, *one.closed, *one.conflicts, *one.report.unresolved]
    if one.unbound and not found:
        return fails("Programmed", "Invalid", "no requested address is usable", generation)
    reason = one.conflicts[0].reason if one.set and one.conflicts else "Invalid"
    return fails("Programmed", reason, render_problems(found), generation)
