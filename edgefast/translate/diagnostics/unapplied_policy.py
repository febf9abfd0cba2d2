"""Unapplied policy: served objects that a policy of another project targets; edgefast does not apply it.

In: the policies of other projects in files, and what is served. Out: a problem for each served
target, at the policy's place. The policy may control access, so the problem is an error and never a
remark.
Must never: guess what a policy would do, or report a target that is not served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from edgefast.api.edge.policy_target import BACKEND_TARGETS, LAYER4_TARGETS, TARGET_KINDS
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS, Object
from edgefast.api.migration.annotations import is_access_annotation
from edgefast.api.migration.field_mappings import hint_at
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.migration.target import Target, pod_labels
from edgefast.api.migration.target_kinds import spread_target
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.route_name import ref_of_key
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.deps.cluster_ref import KIND_OF_CLUSTER
from edgefast.translate.diagnostics.foreign_filter import find_foreign_filters
from edgefast.translate.gateway.gateway import GatewayDraft
from edgefast.translate.route.outcome import RouteOutcome

#: Problems of one snapshot; a selector may choose ten thousand routes, and nobody reads as many lines.
_MOST = 1_000
#: The effect on requests to an object that is closed.
_FATE = {
    **dict.fromkeys((*TARGET_KINDS, *BACKEND_TARGETS, "GatewayClass"), "answers 500"),
    **dict.fromkeys(LAYER4_TARGETS, "refuses connections"),
}
_BACKENDS = frozenset(BACKEND_TARGETS)
_OPEN = "write a SecurityPolicy, or serve it without the policy (--ignore-foreign-policies)"
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
    snapshot: Snapshot,
    gateways: Sequence[GatewayDraft],
    routes: Mapping[Key, RouteOutcome],
    *,
    closes: bool,
    adopt: bool,
) -> Iterator[Problem]:
    """Report each served object that a policy of another project is attached to; `closes`: one that decides access closes it.

    `adopt`: objects of Envoy Gateway are read with `--adopt`.
    """
    if not snapshot.foreign_policies:
        return
    served = _find_served(gateways, routes)
    found = (
        problem
        for policy in snapshot.foreign_policies
        for problem in _evaluate(policy, served, snapshot, closes=closes, adopt=adopt)
    )
    yield from (one for _, one in zip(range(_MOST), found, strict=False))
    yield from find_foreign_filters(snapshot, adopt=adopt)


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


def _evaluate(
    policy: ForeignPolicy,
    served: set[tuple[str, Key]],
    snapshot: Snapshot,
    *,
    closes: bool,
    adopt: bool,
) -> Iterator[Problem]:
    if (policy.ref.group, policy.ref.kind) in KINDS:
        if policy.access_policies:
            yield from _check_annotated(policy, served, closes=closes)
        return  # else one of ours with a mistake: its targets are closed, see translate/policy
    reported: set[tuple[str, Key, str]] = set()
    if policy.access_policies and policy.lost and closes:
        message = f"a target of {policy.ref.group} cannot be read; all of namespace {policy.ref.namespace} answers 500"
        yield Problem(policy.ref, "spec", "PolicyIgnored", message, _OPEN, policy.source)
    spread = (
        (guess, source)
        for target, source in policy.targets
        for guess in ((policy.access_policies and spread_target(target)) or (target,))
    )
    for target, source in spread:
        table = _TABLES.get((target.group, target.kind))
        if table is None:
            continue
        for key in _keys_of(target, table(snapshot)):
            at = (target.kind, key, target.section)
            if (target.kind, key) in served and at not in reported:
                reported.add(at)
                ref = ObjectRef(target.kind, *key, target.group)
                part = f" ({target.section})" if target.section else ""
                message, hint = (
                    f"{ref}{part} is served WITHOUT {policy.ref}",
                    _hint(policy, adopt=adopt),
                )
                if policy.access_policies and closes:
                    why = f"{policy.ref} of {policy.ref.group} decides access ({', '.join(policy.access_policies)}) and is not applied"
                    message, hint = f"{ref}{part} {_FATE[target.kind]}: {why}", f"{_OPEN}; {hint}"
                yield Problem(ref, "", "PolicyIgnored", message, hint, source)


def _check_annotated(
    policy: ForeignPolicy, served: set[tuple[str, Key]], *, closes: bool
) -> Iterator[Problem]:
    """Report annotations that decide access, except those that report/foreign_annotations.py reports."""
    for target, source in policy.targets:
        name = str(target.path[-1])
        reported = target.kind not in _BACKENDS and is_access_annotation(name)
        if reported or (target.kind, (target.namespace, target.name)) not in served:
            continue
        message, hint = "requests pass WITHOUT it", "annotations of other projects are not applied"
        if closes:
            message = f"decides access and is not applied; {policy.ref} {_FATE[target.kind]}"
            hint = _OPEN
        yield Problem(
            policy.ref, f"metadata.annotations[{name}]", "PolicyIgnored", message, hint, source
        )


def _hint(policy: ForeignPolicy, *, adopt: bool) -> str:
    hint = f"policies of {policy.ref.group or 'this kind'} are not applied"
    known = hint_at(policy.ref.group, policy.ref.kind, policy.fields, adopt=adopt)
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
