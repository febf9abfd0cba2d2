"""Unapplied policies: objects that are served without what a policy of another project says about them.

In: the policies of other projects in files, and what is served. Out: a problem for each target that is, at the policy's place:
it may be the one that decides who gets in, so this is an error and never a remark.
Must never: guess what a policy would do, or report a target that nothing is served of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from edgefast.problem import ObjectRef, Problem
from edgefast.resources.foreign.counterparts import hint_at
from edgefast.resources.foreign.foreignpolicy import ForeignPolicy
from edgefast.resources.foreign.target import Target, pod_labels
from edgefast.resources.gatewayapi.gateway import Gateway
from edgefast.resources.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS, Object
from edgefast.resources.model.reference import GATEWAY_GROUP
from edgefast.resources.model.routename import ref_of_key
from edgefast.resources.snapshot import Key, Snapshot
from edgefast.translate.facts.clusterref import KIND_OF_CLUSTER
from edgefast.translate.finding.foreignfilter import find_foreign_filters
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.route.outcome import RouteOutcome

#: Problems of one snapshot; a selector may choose ten thousand routes, and nobody reads as many lines.
_MOST = 1_000
#: (group, kind) -> the objects of it in a snapshot, for selectors.
_TABLES: dict[tuple[str, str], Callable[[Snapshot], Mapping[Key, Object]]] = {
    (GATEWAY_GROUP, "GatewayClass"): lambda snapshot: snapshot.gateway_classes,
    (GATEWAY_GROUP, "Gateway"): lambda snapshot: snapshot.gateways,
    (GATEWAY_GROUP, "HTTPRoute"): lambda snapshot: snapshot.http_routes,
    (GATEWAY_GROUP, "GRPCRoute"): lambda snapshot: snapshot.grpc_routes,
    (GATEWAY_GROUP, "TLSRoute"): lambda snapshot: snapshot.tls_routes,
    (GATEWAY_GROUP, "TCPRoute"): lambda snapshot: snapshot.tcp_routes,
    (GATEWAY_GROUP, "UDPRoute"): lambda snapshot: snapshot.udp_routes,
    (GATEWAY_GROUP, "ListenerSet"): lambda snapshot: snapshot.listener_sets,
    ("", "Service"): lambda snapshot: snapshot.services,
    (EDGE_GROUP, "Backend"): lambda snapshot: snapshot.backends,
    (EXPERIMENTAL_GROUP, "XBackend"): lambda snapshot: snapshot.x_backends,
}


def find_unapplied(
    snapshot: Snapshot, gateways: Sequence[GatewayDraft], routes: Mapping[Key, RouteOutcome]
) -> Iterator[Problem]:
    """Report each served object that a policy of another project is attached to."""
    if not snapshot.foreign_policies:
        return
    served = _find_served(gateways, routes)
    found = (
        problem
        for policy in snapshot.foreign_policies
        for problem in _judge(policy, served, snapshot)
    )
    yield from (one for _, one in zip(range(_MOST), found, strict=False))
    yield from find_foreign_filters(snapshot)


def _find_served(
    gateways: Sequence[GatewayDraft], routes: Mapping[Key, RouteOutcome]
) -> set[tuple[str, Key]]:
    """Return (kind, key) of all that requests can meet."""
    served: set[tuple[str, Key]] = set()
    for draft in gateways:
        if draft.accepted and any(one.served for one in draft.listeners):
            served.add(("Gateway", draft.key))
            served.add(("GatewayClass", ("", draft.gateway.spec.gateway_class_name)))
            served.update(("ListenerSet", one.key) for one in draft.sets if one.served)
    for key, outcome in routes.items():
        if outcome.hosts or outcome.streams:
            ref = ref_of_key(key)
            served.add((ref.kind, (ref.namespace, ref.name)))
            served.update(
                (KIND_OF_CLUSTER[one.kind], (one.namespace, one.name)) for one in outcome.clusters
            )
    return served


def _judge(
    policy: ForeignPolicy, served: set[tuple[str, Key]], snapshot: Snapshot
) -> Iterator[Problem]:
    if (policy.ref.group, policy.ref.kind) in KINDS:
        return  # one of ours with a mistake: its targets are closed, see translate/policy
    told: set[tuple[str, Key, str]] = set()
    for target, source in policy.targets:
        table = _TABLES.get((target.group, target.kind))
        if table is None:
            continue
        for key in _keys_of(target, table(snapshot)):
            at = (target.kind, key, target.section)
            if (target.kind, key) in served and at not in told:
                told.add(at)
                ref = ObjectRef(target.kind, *key, target.group)
                part = f" ({target.section})" if target.section else ""
                said = f"{ref}{part} is served WITHOUT {policy.ref}"
                hint = _hint(policy)
                yield Problem(ref, "", "PolicyIgnored", said, hint, source)


def _hint(policy: ForeignPolicy) -> str:
    hint = f"policies of {policy.ref.group or 'this kind'} are not applied"
    known = hint_at(policy.ref.group, policy.ref.kind, policy.fields)
    return f"{hint}: {known}" if known else hint


def _keys_of(target: Target, table: Mapping[Key, Object]) -> Iterable[Key]:
    namespace = "" if target.kind == "GatewayClass" else target.namespace
    if target.selector is None:
        return ((namespace, target.name),)
    return [
        key
        for key, one in table.items()
        if namespace in ("", key[0]) and target.selector.matches(_labels_of(one, target))
    ]


def _labels_of(one: Object, target: Target) -> dict[str, str]:
    return pod_labels(one) if target.of_pods and isinstance(one, Gateway) else one.metadata.labels
