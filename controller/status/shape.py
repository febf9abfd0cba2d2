"""Shape: the structure of each kind's status, as the merge needs it.

In: a kind.
Out: its `Shape`: the location of its conditions and entries, their maximum numbers, and the
condition types that this controller writes.
Source: the CRDs of the Gateway API (maxItems of `status`), translate/conditions/reasons.py (the
types).
Must never: contain a value.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.route_name import ROUTE_KINDS
from edgefast.translate.conditions.reasons import REASONS

#: A plain JSON object.
Json = dict[str, Any]

#: Condition types of which True is bad news; of all others True is good news.
BAD_WHEN_TRUE = frozenset(
    {
        "Conflicted",
        "OverlappingTLSConfig",
        "PartiallyInvalid",
        "RouteRulesOverlap",
        "RouteRulesShadowed",
        "InsecureFrontendValidationMode",
    }
)
MAX_CONDITIONS = 8


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One kind: `entries` names a list whose items carry `controllerName` and are of their writers."""

    group: str = GATEWAY_GROUP
    version: str = "v1"
    entries: str = ""  # "parents", "ancestors"; "": conditions stand at the root
    entry_ref: str = ""  # "parentRef", "ancestorRef"
    max_entries: int = 0
    own_types: frozenset[str] = frozenset()  # of root conditions
    own_listener_types: frozenset[str] = frozenset()  # of conditions of listeners
    lists: tuple[tuple[str, int], ...] = ()  # other lists that are ours as a whole, with maxItems
    counts: tuple[str, ...] = ()  # numbers that are ours; 0 and none say the same
    load_balancer: bool = False  # addresses at loadBalancer.ingress, and nothing else


def _types(kind: str) -> frozenset[str]:
    return frozenset(one.type for one in REASONS[kind])


SHAPES: dict[str, Shape] = {
    "GatewayClass": Shape(
        own_types=_types("GatewayClass"),
        lists=(("supportedFeatures", 64),),
    ),
    "Gateway": Shape(
        own_types=_types("Gateway"),
        own_listener_types=_types("Listener"),
        lists=(("addresses", 16),),
        counts=("attachedListenerSets",),
    ),
    "ListenerSet": Shape(own_types=_types("ListenerSet"), own_listener_types=_types("Listener")),
    **{
        kind: Shape(entries="parents", entry_ref="parentRef", max_entries=32)
        for kind in ROUTE_KINDS
    },
    "BackendTLSPolicy": Shape(entries="ancestors", entry_ref="ancestorRef", max_entries=16),
    **{
        kind: Shape(
            group=group,
            version="v1alpha1",
            entries="ancestors",
            entry_ref="ancestorRef",
            max_entries=16,
        )
        for kind, group in (
            ("SecurityPolicy", EDGE_GROUP),
            ("BackendTrafficPolicy", EDGE_GROUP),
            ("XBackendTrafficPolicy", EXPERIMENTAL_GROUP),
        )
    },
    "XBackend": Shape(
        group=EXPERIMENTAL_GROUP,
        version="v1alpha1",
        entries="ancestors",
        entry_ref="ancestorRef",
        max_entries=32,
    ),
    "Ingress": Shape(group=NETWORKING_GROUP, load_balancer=True),
}
#: The same, as CRDs of v1.6 have it.
_OLDER = {
    "XBackend": msgspec.structs.replace(
        SHAPES["XBackend"], entries="parents", entry_ref="parentRef"
    )
}


def shape_for(kind: str, *statuses: Json | None) -> Shape:
    """Return the shape of statuses of a kind: the wanted one's, else that of what is there."""
    older = _OLDER.get(kind)
    for one in statuses if older is not None else ():
        if one and (one.get("ancestors") or one.get("parents")):
            return older if older is not None and one.get("parents") else SHAPES[kind]
    return SHAPES[kind]


def is_bad(condition: Json) -> bool:
    """Tell whether a condition is news that somebody must act on."""
    return (condition.get("status") == "True") == (condition.get("type") in BAD_WHEN_TRUE)


def reference_key(reference: Json, namespace: str) -> tuple[object, ...]:
    """Return what makes two parentRefs or ancestorRefs of an object in `namespace` one (CRD defaults filled in)."""
    return (
        reference.get("group", GATEWAY_GROUP),
        reference.get("kind", "Gateway"),
        reference.get("namespace") or namespace,
        reference.get("name"),
        reference.get("sectionName"),
        reference.get("port"),
    )
