"""Policy target: the targets of edgefast's policies, and their merge with policies above and below.

In: `targetRefs` and `mergeType` of SecurityPolicy and BackendTrafficPolicy. Out: Structs; nothing
is looked up here.
Source: Gateway API GEP-713 (policy attachment); the fields are those of Envoy Gateway.
Must never: hold a target of another namespace; the owner of the target owns its policies.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fields import Element, Group, Kind, ObjectName, SectionName
from edgefast.api.model.policy_target import Newer as Newer
from edgefast.api.model.policy_target import PolicyTarget as PolicyTarget
from edgefast.api.model.reference import GATEWAY_GROUP

#: Routes of layer 4 that a policy may be attached to.
LAYER4_TARGETS = ("TLSRoute", "TCPRoute", "UDPRoute")

#: All routes that a policy may be attached to.
ROUTE_TARGETS = ("HTTPRoute", "GRPCRoute", *LAYER4_TARGETS)

#: Kinds of the Gateway API that a policy may be attached to.
TARGET_KINDS = ("Gateway", "ListenerSet", *ROUTE_TARGETS)

#: What requests are sent to, and its group: a BackendTrafficPolicy may be attached to it as well.
BACKEND_TARGETS = {
    "Service": "",
    "Backend": "gateway.edge.io",
    "XBackend": "gateway.networking.x-k8s.io",
}

#: What each kind of policy may be attached to; the standard's is for backends alone.
TARGETS_OF: dict[str, tuple[str, ...]] = {
    "SecurityPolicy": TARGET_KINDS,
    "BackendTrafficPolicy": (*TARGET_KINDS, *BACKEND_TARGETS),
    "XBackendTrafficPolicy": tuple(BACKEND_TARGETS),
}
#: Policies whose targets have no parts.
WHOLE = ("XBackendTrafficPolicy",)

#: What is said of a target that is none.
PASSES = "requests pass without it"


def is_target(policy: str, group: str, kind: str) -> bool:
    """Tell whether policies of a kind may be attached to objects of another kind."""
    return kind in TARGETS_OF[policy] and group == group_of_target(kind)


def group_of_target(kind: str) -> str:
    """Return the group of a kind of target."""
    return BACKEND_TARGETS.get(kind, GATEWAY_GROUP)


class PolicyTargetReference(Element, frozen=True, kw_only=True):
    """An object that a policy applies to, including everything below it."""

    group: Annotated[Group, Meta(description='gateway.networking.k8s.io, or "" for a Service.')]
    kind: Annotated[
        Kind,
        Meta(
            description="Gateway, ListenerSet, HTTPRoute, GRPCRoute, TLSRoute, TCPRoute or UDPRoute. For a "
            "BackendTrafficPolicy also Service, Backend of gateway.edge.io, and XBackend of "
            "gateway.networking.x-k8s.io."
        ),
    ]
    name: Annotated[ObjectName, Meta(description="Name of the object, in the policy's namespace.")]
    section_name: Annotated[
        SectionName | None,
        Meta(
            description="One part of the object: a listener of a Gateway or ListenerSet, a named rule "
            "of a route, or a named port of a Service."
        ),
    ] = None


TargetReferences = Annotated[
    tuple[PolicyTargetReference, ...],
    Meta(min_length=1, max_length=16, description="Objects that the policy applies to."),
]

MergeType = Annotated[
    Literal["Inherit", "Replace", "Override"],
    Meta(
        description="How the policy merges with policies of other levels (Gateway, its listener, "
        "ListenerSet, its listener, route, rule). Inherit: its features replace those of "
        "higher levels, feature by feature. Replace (not on Gateways and ListenerSets): "
        "features of higher levels do not apply, except for overrides. Override (on "
        "Gateways and ListenerSets): lower levels can make it stricter, but cannot relax "
        "it."
    ),
]
