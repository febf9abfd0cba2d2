"""Hierarchies: one Gateway with listeners and a ListenerSet, routes with named rules, backends with ports, and policies anywhere on them."""

from __future__ import annotations

from random import Random
from typing import Any

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import Object
from tests.translate import world
from tests.translate.policy.naive import At, Plain

GROUP = "gateway.networking.k8s.io"
EDGE = "gateway.edge.io/v1alpha1"
EXPERIMENTAL = "gateway.networking.x-k8s.io/v1alpha1"
GROUPS = {"Service": "", "Backend": "gateway.edge.io"}
RULES = ("first", "second", "")
FRONTS: tuple[At, ...] = (
    ("Gateway", "gw", ""),
    ("Gateway", "gw", "http"),
    ("Gateway", "gw", "more"),
    ("Gateway", "gw", "none"),
    ("ListenerSet", "set", ""),
    ("ListenerSet", "set", "http"),
)
BELOW: tuple[At, ...] = tuple(
    (kind, name, section)
    for kind, name in (("HTTPRoute", "web"), ("GRPCRoute", "calls"), ("HTTPRoute", "gone"))
    for section in ("", "first", "second", "none")
)
#: What rules send to, and how much of it.
SHARES = (("Service", "web", 3), ("Service", "side", 1), ("Backend", "far", 1))
BACKENDS: tuple[At, ...] = (
    ("Service", "web", ""),
    ("Service", "web", "plain"),
    ("Service", "web", "other"),
    ("Service", "side", ""),
    ("Service", "side", "plain"),
    ("Service", "gone", ""),
    ("Backend", "far", ""),
    ("Backend", "far", "plain"),
)
#: Levels of clusters, below rules.
CLUSTERS: dict[str, tuple[At, ...]] = {
    "service/default/web/80": BACKENDS[:2],
    "service/default/web/80/h2": BACKENDS[:2],
    "service/default/side/80": BACKENDS[3:4],  # its port has no name
    "service/default/side/80/h2": BACKENDS[3:4],
    "backend/default/far": BACKENDS[6:7],
    "backend/default/far/h2": BACKENDS[6:7],
}
#: Levels above routes, by listener.
LISTENERS: dict[str, tuple[At, ...]] = {
    "default/gw/http": (FRONTS[0], FRONTS[1]),
    "default/gw/more": (FRONTS[0], FRONTS[2]),
    "default/gw/default/set/http": (FRONTS[0], FRONTS[4], FRONTS[5]),
}
#: A key of nobody's (RFC 8037 A.2).
KEYS = '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
_TIMES = ("", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


def base() -> list[Object]:
    """Return everything but policies."""
    gateway = world.make(
        "Gateway default/gw",
        {
            "gatewayClassName": "edge",
            "allowedListeners": {"namespaces": {"from": "Same"}},
            "listeners": [
                {"name": "http", "port": 80, "protocol": "HTTP"},
                {"name": "more", "port": 81, "protocol": "HTTP"},
            ],
        },
    )
    return [
        world.gateway_class(),
        gateway,
        world.listener_set("set"),
        route("HTTPRoute", "web"),
        route("GRPCRoute", "calls"),
        world.service("web", name="plain"),
        *(world.service(name) for name in ("side", "auth")),
        *(world.endpoints(name, "10.0.0.1") for name in ("side", "auth")),
        world.endpoints("web", "10.0.0.1", name="plain"),
        world.make(
            "Backend default/far", {"endpoints": [{"ip": {"address": "10.0.0.7", "port": 80}}]}
        ),
        world.secret("keys", alice="k-alice"),
        world.secret("users", **{".htpasswd": "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}),
    ]


def route(kind: str, name: str) -> Object:
    """Return a route with a rule for each of RULES, on all listeners."""
    rules: list[dict[str, Any]] = [{"name": one} if one else {"matches": []} for one in RULES]
    for at, one in enumerate(rules):
        path = (
            {"path": {"value": f"/{at}"}}
            if kind == "HTTPRoute"
            else {"method": {"service": f"s{at}"}}
        )
        one |= {"matches": [path], "backendRefs": [backend_ref(*share) for share in SHARES]}
    return world.make(
        f"{kind} default/{name}",
        {
            "parentRefs": [{"name": "gw"}, {"kind": "ListenerSet", "name": "set"}],
            "hostnames": [f"{name}.example.com"],
            "rules": rules,
        },
    )


def backend_ref(kind: str, name: str, weight: int) -> dict[str, Any]:
    """Return a share of a rule."""
    if kind == "Backend":
        return {"group": EDGE.partition("/")[0], "kind": kind, "name": name, "weight": weight}
    return {"name": name, "port": 80, "weight": weight}


def policy_object(plain: Plain, timeout: str = "1s") -> Object:
    """Return a policy as an API server may have let it in; `timeout` is a content that no shape shows."""
    spec: dict[str, Any] = {
        "targetRefs": [
            {"group": GROUPS.get(kind, GROUP), "kind": kind, "name": name}
            | ({"sectionName": section} if section else {})
            for kind, name, section in plain.targets
        ],
        "mergeType": plain.merge,
    }
    if plain.kind == "XBackendTrafficPolicy":
        return _constraint(plain, timeout)
    if "authorization" in plain.features:
        spec["authorization"] = {"defaultAction": "Allow"}
    if "apiKeyAuth" in plain.features:
        keys = {"credentialRefs": [{"name": "keys"}], "extractFrom": [{"headers": ["x-key"]}]}
        spec["apiKeyAuth"] = keys | {"forwardClientIDHeader": f"x-client-{timeout}"}
    if "basicAuth" in plain.features:
        spec["basicAuth"] = {"users": {"name": "users"}}
    if "jwt" in plain.features:
        claims = [{"header": f"x-sub-{timeout}", "claim": "sub"}]
        spec["jwt"] = {
            "providers": [{"name": "a", "localJWKS": {"inline": KEYS}, "claimToHeaders": claims}]
        }
    if "extAuth" in plain.features:
        http = {"backendRef": {"name": "auth", "port": 80}}
        spec["extAuth"] = {"http": http, "timeout": timeout}
    if "traffic" in plain.features:
        spec["timeout"] = {"http": {"requestTimeout": timeout}}
        spec["compressor"] = [{"type": "Gzip"}]
        spec["loadBalancer"] = {"type": "RoundRobin"}
        spec["faultInjection"] = {"abort": {"httpStatus": 503, "percentage": 1}}
    if "endpoints" in plain.features:
        spec.setdefault("timeout", {"http": {}})["http"]["sendTimeout"] = timeout
        spec["loadBalancer"] = {"type": "Random"}
        spec["healthCheck"] = {"active": {"type": "TCP", "tcp": {}}}
    metadata = {"name": plain.name, "namespace": "default", "creationTimestamp": plain.created}
    raw = {"apiVersion": EDGE, "kind": plain.kind, "metadata": metadata, "spec": spec}
    return decode_api_object(raw, plain.kind)


def _constraint(plain: Plain, timeout: str) -> Object:
    targets = {
        one: {"group": GROUPS.get(one[0], GROUP), "kind": one[0], "name": one[1]}
        for one in plain.targets
    }
    spec: dict[str, Any] = {"targetRefs": list(targets.values())}
    if plain.features:
        spec["retryConstraint"] = {"budget": {"interval": timeout}}
    metadata = {"name": plain.name, "namespace": "default", "creationTimestamp": plain.created}
    raw = {"apiVersion": EXPERIMENTAL, "kind": plain.kind, "metadata": metadata, "spec": spec}
    return decode_api_object(raw, plain.kind)


def random_policies(random: Random) -> list[Plain]:
    """Return policies with targets of all levels; targets collide, some are not there, some policies are closed."""
    return [random_policy(random, f"p{at}") for at in range(random.randint(0, 8))]


def random_policy(random: Random, name: str) -> Plain:
    """Return one policy."""
    kind = random.choice((*("SecurityPolicy", "BackendTrafficPolicy") * 3, "XBackendTrafficPolicy"))
    if kind == "XBackendTrafficPolicy":
        targets = tuple(random.sample((*BACKENDS, FRONTS[0]), random.randint(1, 3)))
        return Plain(
            kind,
            name,
            random.choice(_TIMES),
            "Inherit",
            targets,
            ("repeats",)[: random.randint(0, 4)],
        )
    merge = random.choice(("Inherit", "Inherit", "Replace", "Override"))
    lower = BELOW + BACKENDS
    pool = {"Inherit": FRONTS + lower, "Replace": lower, "Override": FRONTS}[merge]
    features: tuple[str, ...] = random.choice(
        (("traffic",), ("endpoints",), ("traffic", "endpoints"))
    )
    if kind == "BackendTrafficPolicy" and random.random() < 0.3:
        pool, features = BACKENDS, ("endpoints",)
    if random.random() < 0.1:
        pool = FRONTS + lower
    if kind == "SecurityPolicy":
        named = ("authorization", "apiKeyAuth", "basicAuth", "jwt", "extAuth")
        features = tuple(one for one in named if random.random() < 0.6)
    elif random.random() < 0.1:
        features = ()
    if kind == "SecurityPolicy" and random.random() < 0.9:
        pool = tuple(one for one in pool if one not in BACKENDS)
    targets = tuple(random.sample(pool, random.randint(1, 3)))
    return Plain(kind, name, random.choice(_TIMES), merge, targets, features)
