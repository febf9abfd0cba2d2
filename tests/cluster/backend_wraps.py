"""Parts of BackendTrafficPolicies about backends, each in an object that is sound otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgefast.api.edge.active_health_check import (
    ActiveHealthCheck,
    ActiveHealthCheckPayload,
    HTTPActiveHealthChecker,
)
from edgefast.api.edge.backendtrafficpolicy import TrafficSession
from edgefast.api.edge.circuit_breaker import RetryBudget
from edgefast.api.edge.health_check import PassiveHealthCheck
from edgefast.api.edge.load_balancer import (
    ConsistentHash,
    HashCookie,
    HashPart,
    LoadBalancer,
    SlowStart,
)
from edgefast.api.edge.zone_aware import ZoneAware
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.validation import (
    backend,
    health_check,
    load_balancer,
    session_persistence,
    zone_aware,
)
from edgefast.api.validation.rule import Rule

Document = dict[str, Any]
Wrap = Callable[[Document], tuple[str, Document]]

_TARGET = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": "g"}


def treated(**spec: Any) -> tuple[str, Document]:
    """A BackendTrafficPolicy."""
    return "BackendTrafficPolicy", {"targetRefs": [_TARGET], **spec}


def hashed(part: Document) -> tuple[str, Document]:
    """One of a consistent hash."""
    return treated(loadBalancer={"type": "ConsistentHash", "consistentHash": part})


def _was_requested(**part: Any) -> tuple[str, Document]:
    return treated(healthCheck={"active": part})


BACKEND_WRAPS: dict[type, Wrap] = {
    LoadBalancer: lambda part: treated(loadBalancer=part),
    SlowStart: lambda part: treated(loadBalancer={"type": "LeastRequest", "slowStart": part}),
    ZoneAware: lambda part: treated(loadBalancer={"type": "Random", "zoneAware": part}),
    ConsistentHash: hashed,
    HashPart: lambda part: hashed({"type": "Parts", "parts": [part]}),
    HashCookie: lambda part: hashed({"type": "Cookie", "cookie": part}),
    TrafficSession: lambda part: treated(sessionPersistence=part),
    RetryBudget: lambda part: treated(circuitBreaker={"retryBudget": part}),
    PassiveHealthCheck: lambda part: treated(healthCheck={"passive": part}),
    ActiveHealthCheck: lambda part: _was_requested(**part),
    HTTPActiveHealthChecker: lambda part: _was_requested(type="HTTP", http=part),
    ActiveHealthCheckPayload: lambda part: _was_requested(type="TCP", tcp={"send": part}),
}
#: Rules about these parts.
BACKEND_RULES: list[Rule] = [
    rule
    for one in (backend, health_check, load_balancer, session_persistence, zone_aware)
    for rule in one.BOOK.rules
    if rule.cel
]
