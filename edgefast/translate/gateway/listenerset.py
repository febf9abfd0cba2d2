"""ListenerSet: listeners that other teams add to a Gateway, where it allows them.

In: the world. Out: for each Gateway the ListenerSets that name it, in order of precedence, each
allowed or with the reason why not. gateway.py adds the listeners of the allowed ones to the
Gateway; from there on they are listeners like its own.
Source: Gateway API ListenerSet, AllowedListeners. The Gateway's own listeners come first, then
those of the oldest set.
Must never: look at a set of a namespace that is not watched, or that names another controller's
Gateway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from edgefast.api.core.namespace import NAME_LABEL
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.gateway.fail_closed import warn_closed
from edgefast.translate.gateway.listener import ListenerDraft
from edgefast.translate.match.precedence import age_order
from edgefast.translate.report.report import Report


class ListenerSetDraft:
    """A ListenerSet while the Gateway that it names is translated."""

    def __init__(self, listener_set: ListenerSet, gateway: Key) -> None:
        self.listener_set = listener_set
        self.key: Key = (listener_set.metadata.namespace, listener_set.metadata.name)
        self.gateway = gateway
        self.report = Report(ref_of(listener_set))
        self.listeners: list[ListenerDraft] = []  # none unless it is allowed

    @property
    def allowed(self) -> bool:
        """Tell whether the Gateway lets it attach."""
        return not self.report.refused

    @property
    def served(self) -> bool:
        """Tell whether one listener at least is."""
        return any(one.served for one in self.listeners)


def index_listener_sets(world: World) -> Mapping[Key, list[ListenerSetDraft]]:
    """Return the ListenerSets by the Gateway that they name, those of each oldest first."""
    found: dict[Key, list[ListenerSetDraft]] = defaultdict(list)
    for one in world.snapshot.listener_sets.values():
        parent, namespace = parent_of(one), one.metadata.namespace
        if parent is not None and world.settings.watches(
            namespace, _labels(world.snapshot, namespace)
        ):
            found[parent].append(ListenerSetDraft(one, parent))
    for group in found.values():
        group.sort(key=lambda draft: age_order(draft.listener_set.metadata))
    return found


def parent_of(listener_set: ListenerSet) -> Key | None:
    """Return the Gateway that a ListenerSet names, None when it names something else."""
    ref = listener_set.spec.parent_ref
    if (ref.group, ref.kind) != (GATEWAY_GROUP, "Gateway"):
        return None
    return (ref.namespace or listener_set.metadata.namespace, ref.name)


def check_allowed(gateway: Gateway, draft: ListenerSetDraft, world: World) -> None:
    """Refuse a ListenerSet that its Gateway does not allow."""
    own, namespace = gateway.metadata.namespace, draft.key[0]
    if allows_sets(gateway, namespace, world.snapshot):
        return
    allowed = gateway.spec.allowed_listeners
    from_ = allowed.namespaces.from_ if allowed else "None"
    read = " , partly unreadable" if gateway.closed is not None else ""
    message = (
        f"Gateway {own}/{gateway.metadata.name} allows no ListenerSet of namespace {namespace} "
        f"(spec.allowedListeners{read}: from {from_})"
    )
    draft.report.refuse("spec.parentRef", "NotAllowed", message)


def allows_sets(gateway: Gateway, namespace: str, snapshot: Snapshot) -> bool:
    """Tell whether a Gateway allows ListenerSets of a namespace."""
    allowed = gateway.spec.allowed_listeners
    if allowed is None:
        return False
    from_, selector = allowed.namespaces.from_, allowed.namespaces.selector
    if from_ == "All" or (from_ == "Same" and namespace == gateway.metadata.namespace):
        return True
    found = snapshot.namespaces.get(("", namespace))
    if from_ != "Selector" or selector is None or (found is not None and found.closed):
        return False
    return selector.matches(_labels(snapshot, namespace))


def find_lost_sets(world: World) -> Iterator[Problem]:
    """Report, in standalone, sets whose Gateway is in no file; in a cluster it may be another's, or come yet."""
    for one in world.snapshot.listener_sets.values() if world.settings.standalone else ():
        parent = parent_of(one)
        if one.closed is not None and not one.spec.parent_ref.name:
            report = Report(ref_of(one))
            warn_closed(one, report)
            yield from report.problems
        elif parent is None or parent not in world.gateways:
            ref = one.spec.parent_ref
            message = f"{ref.kind} {ref.namespace or one.metadata.namespace}/{ref.name} not found"
            yield Report(ref_of(one)).refuse("spec.parentRef.name", "Invalid", message)


def _labels(snapshot: Snapshot, namespace: str) -> dict[str, str]:
    found = snapshot.namespaces.get(("", namespace))
    return found.metadata.labels if found else {NAME_LABEL: namespace}
