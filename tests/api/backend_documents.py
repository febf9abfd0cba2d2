"""Documents of how backends are treated, for the rules of parts of BackendTrafficPolicies."""

from __future__ import annotations

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

Document = dict[str, Any]

_SESSIONS: list[Document] = [
    *({}, {"cookie": {}}, {"header": {"name": "x-s"}}, {"sessionName": "s"}),
    *({"cookie": {"lifetimeType": one}} for one in ("Session", "Permanent")),
    *({"cookieConfig": {"lifetimeType": one}} for one in ("Session", "Permanent")),
    {"cookie": {}, "sessionName": "s"},
    {"cookie": {}, "cookieConfig": {}},
    {"cookieConfig": {}, "header": {"name": "x-s"}},
]
_HASH: Document = {"type": "SourceIP"}
_PARTS: list[Document] = [
    {},
    {"header": {"name": "x"}},
    *({"headers": [{"name": one} for one in names]} for names in ("x", "xy", "xX", "xyX")),
    {"cookie": {"name": "c"}},
    {"queryParams": [{"name": "q"}, {"name": "Q"}]},
    {"header": {"name": "x"}, "cookie": {"name": "c"}},
]
BACKEND_DOCUMENTS: dict[type, list[Document]] = {
    RetryBudget: [
        {"percent": {"numerator": numerator, **denominator}}
        for numerator in (0, 50, 100, 101)
        for denominator in ({}, {"denominator": 100}, {"denominator": 1000})
    ],
    ActiveHealthCheck: [
        *(
            {"type": kind, **parts}
            for kind in ("HTTP", "TCP", "GRPC")
            for parts in (
                *({}, {"http": {"path": "/"}}, {"tcp": {}}, {"grpc": {}}),
                {"http": {"path": "/"}, "tcp": {}},
            )
        ),
        *(
            {"type": "TCP", **times}
            for times in (
                *({"interval": one} for one in ("99ms", "100ms", "1h", "1h1ms")),
                *({"timeout": one} for one in ("0s", "1ms", "1h", "61m")),
                *({"initialJitter": one} for one in ("0s", "1m", "61s")),
            )
        ),
    ],
    HTTPActiveHealthChecker: [
        {"path": "/", **method, **body}
        for method in ({}, *({"method": one} for one in ("GET", "POST", "PUT")))
        for body in ({}, {"requestBody": {"type": "Text", "text": "a"}})
    ],
    ActiveHealthCheckPayload: [
        {"type": kind, **text, **binary}
        for kind in ("Text", "Binary")
        for text in ({}, {"text": "a"})
        for binary in ({}, {"binary": "YQ=="})
    ],
    PassiveHealthCheck: [
        {**base, **interval}
        for base in ({}, *({"baseEjectionTime": one} for one in ("0s", "1ms", "1h", "1h1ms")))
        for interval in ({}, *({"interval": one} for one in ("0s", "1ms", "60m", "61m")))
    ],
    LoadBalancer: [
        {"type": kind, **hashed}
        for kind in ("ConsistentHash", "LeastRequest", "RoundRobin", "Random")
        for hashed in (
            *({}, {"consistentHash": _HASH}, {"slowStart": {"window": "1s"}}),
            {"zoneAware": {"preferLocal": {}}},
        )
    ],
    ZoneAware: [
        {**near, **weighs}
        for near in ({}, {"preferLocal": {"force": {}}})
        for weighs in ({}, {"weightedZones": [{"zone": "a", "weight": 1}]})
    ],
    TrafficSession: [
        {**kind, **lasts, **part}
        for kind in ({}, {"type": "Cookie"}, {"type": "Header"})
        for lasts in ({}, {"absoluteTimeout": "1h"}, {"idleTimeout": "1m"})
        for part in _SESSIONS
    ],
    SlowStart: [{"window": one} for one in ("0s", "1ms", "1h", "61m")],
    ConsistentHash: [
        {"type": kind, **part}
        for kind in ("SourceIP", "Header", "Headers", "Cookie", "QueryParams", "Parts")
        for part in (*_PARTS, {"parts": [{"type": "Path"}]})
    ],
    HashPart: [
        {"type": kind, **name}
        for kind in ("SourceIP", "RequestURI", "Header", "Cookie", "QueryParam")
        for name in ({}, {"name": "a"})
    ],
    HashCookie: [
        {"name": "c", **ttl, **attributes}
        for ttl in ({}, {"ttl": "0s"}, {"ttl": "1h30m"})
        for attributes in ({}, {"attributes": {}}, {"attributes": {"Path": "/"}})
    ],
}
