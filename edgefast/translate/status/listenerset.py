"""ListenerSet: statuses of ListenerSets.

In: the drafts after merging, the number of routes on each listener, the statuses of Gateways.
Out: a status for each ListenerSet that names a Gateway of edgefast. A set is accepted when one of
its listeners is served, and programmed when its Gateway is as well.
Source: Gateway API ListenerSetConditionType, ListenerEntryConditionType.
Must never: reveal to a set what is in the Gateway or in other sets, except that a hostname is
taken.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.translate.conditions.condition import Condition, fails, holds, render_problems
from edgefast.translate.conditions.status import GatewayStatus, ListenerSetStatus
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.gateway.listenerset import ListenerSetDraft
from edgefast.translate.status.affected_by_policies import Attached
from edgefast.translate.status.gateway import Filtered, compute_listener_status, serves


def compute_listener_set_status(
    one: ListenerSetDraft,
    draft: GatewayDraft,
    attached: Mapping[str, int],
    gateway: GatewayStatus,
    policies: Attached,
    filters: Filtered,
) -> ListenerSetStatus:
    """Return the status of a ListenerSet; `attached` counts routes by listener name, `gateway` is its parent's status."""
    generation = one.listener_set.metadata.generation
    return ListenerSetStatus(
        conditions=_evaluate(one, draft, gateway, generation, filters),
        listeners=tuple(
            compute_listener_status(
                listener, draft, attached.get(listener.name, 0), generation, policies, filters
            )
            for listener in one.listeners
            if listener.named
        ),
    )


def _evaluate(
    one: ListenerSetDraft,
    draft: GatewayDraft,
    gateway: GatewayStatus,
    generation: int,
    filters: Filtered,
) -> tuple[Condition, Condition]:
    if not one.allowed:
        message, reason = render_problems(one.report.refused), one.report.refused[0].reason
        return (
            fails("Accepted", reason, message, generation),
            fails("Programmed", reason, message, generation),
        )
    if draft.report.refused or draft.closed or draft.closed_by:
        message = "the Gateway is not accepted"
        return (
            fails("Accepted", "ParentNotAccepted", message, generation),
            fails("Programmed", "ParentNotProgrammed", message, generation),
        )
    broken = ", ".join(
        listener.spec.name for listener in one.listeners if not serves(listener, filters)
    )
    message = f"listeners not served: {broken}"
    if not any(serves(listener, filters) for listener in one.listeners):
        return (
            fails("Accepted", "ListenersNotValid", message, generation),
            fails("Programmed", "ListenersNotValid", message, generation),
        )
    if broken:
        accepted = holds("Accepted", "ListenersNotValid", message, generation)
    else:
        accepted = holds("Accepted", "Accepted", "ListenerSet is accepted", generation)
    return accepted, _programmed(one, gateway, generation, filters)


def _programmed(
    one: ListenerSetDraft, gateway: GatewayStatus, generation: int, filters: Filtered
) -> Condition:
    theirs = next(found for found in gateway.conditions if found.type == "Programmed")
    if theirs.status != "True":
        message = f"the Gateway is not programmed: {theirs.reason}"
        return fails("Programmed", "ParentNotProgrammed", message, generation)
    served = ", ".join(
        listener.spec.name for listener in one.listeners if serves(listener, filters)
    )
    return holds("Programmed", "Programmed", f"serving {served}", generation)
