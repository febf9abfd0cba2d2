"""Targets: the objects of a snapshot that adopted policies name, and which policy applies to a rule.

In: adopted policies. Out: policies by target, oldest first; the policies of the nearest level that has a setting.
Source: Envoy Gateway: the most specific policy wins, without `mergeType` it replaces those above it; of two with one target the
older one wins.
Must never: look into a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.policy_target import BACKEND_TARGETS, PolicyTargetReference
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.grpcroute import Route
from edgefast.api.gateway.layer4_route import StreamRoute
from edgefast.api.gateway.listener import Listener
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import ref_of
from edgefast.api.model.policy_target import PolicyTarget
from edgefast.api.model.reference import GATEWAY_GROUP, ParentReference
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate.policy.policy_targets import TARGETS

__all__ = ["Policy", "TargetIndex", "resolve_selectors", "select_names"]

Policy = SecurityPolicy | BackendTrafficPolicy
#: (kind, namespace, name, section)
_Target = tuple[str, str, str, str]


def select_names(target: PolicyTarget, namespace: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield the names of the objects of a target."""
    if target.selector is None:
        yield target.name
        return
    for (where, name), one in TARGETS[target.kind](snapshot).items():
        if where == namespace and target.selector.matches(one.metadata.labels):
            yield name


def resolve_selectors(policy: Policy, snapshot: Snapshot) -> Policy:
    """Return a policy with the objects that its selectors choose as targetRefs."""
    adopted = policy.adopted
    if adopted is None or not adopted.selectors:
        return policy
    refs = list(policy.spec.target_refs)
    named = {(one.kind, one.name, one.section_name or "") for one in refs}
    for target in adopted.selectors:
        for name in select_names(target, policy.metadata.namespace, snapshot):
            if (target.kind, name, target.section) in named:
                continue
            named.add((target.kind, name, target.section))
            group = BACKEND_TARGETS.get(target.kind, GATEWAY_GROUP)
            section = target.section or None
            refs.append(
                PolicyTargetReference(
                    group=group, kind=target.kind, name=name, section_name=section
                )
            )
    spec = msgspec.structs.replace(policy.spec, target_refs=tuple(refs))
    return msgspec.structs.replace(policy, spec=spec)


class TargetIndex:
    """Adopted policies of one kind by target."""

    def __init__(self, policies: Iterable[Policy], snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._found: dict[_Target, Policy] = {}
        #: Policies that a target does not get, and the older one that it gets.
        self.unused: dict[ObjectRef, ObjectRef] = {}
        for policy in sorted(policies, key=_age):
            namespace = policy.metadata.namespace
            for ref in policy.spec.target_refs:
                key = (ref.kind, namespace, ref.name, ref.section_name or "")
                first = self._found.setdefault(key, policy)
                if first is not policy:
                    self.unused[ref_of(policy)] = ref_of(first)

    def find_for(
        self, route: Route, rule: str, has: Callable[[Policy], bool]
    ) -> tuple[tuple[Policy, ...], bool]:
        """Return the policies with a setting for a rule, and whether all parents of the route agree about it.

        One policy of the rule or the route, else one for each parent.
        """
        meta, kind = route.metadata, type(route).__name__
        for section in dict.fromkeys((rule, "")):
            one = self._found.get((kind, meta.namespace, meta.name, section))
            if one is not None and has(one):
                return (one,), True
            if one is not None and one.spec.merge_type == "Replace":
                return (), True
        above = [
            self._find_at(levels, has)
            for ref in route.spec.parent_refs
            for levels in self._levels_of(ref, meta.namespace)
        ]
        found = tuple({id(one): one for one in above if one is not None}.values())
        return found, len({id(one) for one in above}) <= 1

    def list_parents(
        self, route: Route | StreamRoute, rule: str
    ) -> Iterator[tuple[Policy, Policy]]:
        """Yield each policy of a rule or its route, with each policy above it."""
        meta, kind = route.metadata, type(route).__name__
        sections = dict.fromkeys((rule, ""))
        own = [self._found.get((kind, meta.namespace, meta.name, one)) for one in sections]
        levels = (
            level
            for ref in route.spec.parent_refs
            for levels in self._levels_of(ref, meta.namespace)
            for level in levels
        )
        above = [self._found.get(level) for level in levels]
        found = [*own, *above]
        for at, one in enumerate(own):
            for other in found[at + 1 :]:
                if one is not None and other is not None:
                    yield one, other

    def _find_at(self, levels: Iterable[_Target], has: Callable[[Policy], bool]) -> Policy | None:
        """Return the nearest policy with a setting."""
        for level in levels:
            one = self._found.get(level)
            if one is not None and has(one):
                return one
        return None

    def _levels_of(self, ref: ParentReference, namespace: str) -> Iterator[list[_Target]]:
        """Yield the levels above a route for each listener of a parent, the nearest first."""
        where = ref.namespace or namespace
        above: list[_Target] = []
        parent: Gateway | ListenerSet | None
        if ref.kind == "ListenerSet":
            parent = self._snapshot.listener_sets.get((where, ref.name))
            if parent is not None:
                gateway = parent.spec.parent_ref
                above.append(("Gateway", gateway.namespace or where, gateway.name, ""))
        else:
            parent = self._snapshot.gateways.get((where, ref.name))
        sections = [ref.section_name] if ref.section_name else []
        if not sections and parent is not None:
            listeners: Iterable[Listener] = parent.spec.listeners
            sections = [one.name for one in listeners if ref.port in (None, one.port)]
        for section in sections or [""]:
            yield [(ref.kind, where, ref.name, section), (ref.kind, where, ref.name, ""), *above]


def _age(policy: Policy) -> tuple[str, str, str]:
    meta = policy.metadata
    return meta.creation_timestamp or "9", meta.namespace, meta.name
