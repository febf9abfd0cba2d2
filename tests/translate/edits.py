"""Edits of the world of incremental tests, for histories of any order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import Object
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings
from edgefast.translate.deps.policy_summary import GROUP_OF
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.policy.hierarchy import EDGE, EXPERIMENTAL, policy_object, random_policy
from tests.translate.policy.hierarchy import base as hierarchy

PLAIN = Settings()
_SERVICES = tuple({"group": "", "kind": "Service", "name": name} for name in ("web", "api"))
_FRONT = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
#: What a policy says of backends, and of requests besides.
_TREATED: tuple[dict[str, Any], ...] = (
    {"healthCheck": {"active": {"type": "TCP", "tcp": {}}}},
    {"healthCheck": {"active": {"type": "TCP", "interval": "7s"}}},
    {"loadBalancer": {"type": "LeastRequest", "zoneAware": {"preferLocal": {}}}},
    {"circuitBreaker": {"maxConnections": 5}},
    {"circuitBreaker": {"maxConnections": 5}, "requestBuffer": {"limit": "1Ki"}},
    {"retryConstraint": {"budget": {"percent": 3}}},
)


def treats(name: str, target: dict[str, str], said: dict[str, Any], merge: str) -> Object:
    """Return a policy of backends, of the standard's kind or ours."""
    own = "retryConstraint" not in said
    kind = "BackendTrafficPolicy" if own else "XBackendTrafficPolicy"
    raw = manifest(
        f"{kind} default/{name}",
        {"targetRefs": [target], **({"mergeType": merge} if own else {}), **said},
        api=EDGE if own else EXPERIMENTAL,
    )
    return decode_api_object(raw, kind)


def near_service(name: str, distribution: str) -> Object:
    """Return a Service whose requests stay in their zone."""
    spec = {"ports": [{"port": 80}], "trafficDistribution": distribution}
    metadata = {"name": name, "namespace": "default"}
    raw = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    return world.make(raw)


#: Edits that hit everything that outcomes read; names are few so that they collide.
EDITS = st.one_of(
    st.builds(
        world.route,
        st.integers(0, 3),
        path=st.sampled_from(["/", "/a"]),
        host=st.sampled_from(["a.example.com", "*.example.com", "b.org"]),
        backend=st.sampled_from(["web", "api"]),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        host=st.just("a.example.com"),
        matches=st.sampled_from(
            [
                [],
                [{"path": {"type": "RegularExpression", "value": "/a/(?=x)"}}],
                [{"path": {"type": "RegularExpression", "value": "(?=x)"}}],
            ]
        ),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        parents=st.sampled_from(
            [[{"kind": "Gatway", "name": "gw"}], [{"group": "", "name": "gw"}]]
        ),
    ),
    st.builds(world.service, st.sampled_from(["web", "api"])),
    st.builds(world.service, st.just("api"), appProtocol=st.sampled_from(["http", "grpc"])),
    st.builds(world.endpoints, st.just("web")),
    st.builds(
        world.endpoints, st.sampled_from(["web", "api"]), st.sampled_from(["10.0.0.1", "bad"])
    ),
    st.builds(world.gateway, port=st.sampled_from([80, 81])),
    st.builds(world.gateway, hostname=st.sampled_from(["*.example.com", "b.org"])),
    st.builds(
        world.nested_gateway, st.just(""), st.just("*.example.com"), st.just("a.example.com")
    ),
    st.builds(world.nested_gateway, st.just("*.com"), st.sampled_from(["*.org", "*.example.com"])),
    st.builds(world.gateway, st.just("second"), protocol=st.sampled_from(["HTTP", "TCP"])),
    st.builds(world.gateway_class, st.sampled_from(["example.com/other", PLAIN.controller_name])),
    st.builds(
        world.gateway,
        allowedRoutes=st.sampled_from(
            [
                {"namespaces": {"from": "All"}},
                {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "blue"}}}},
            ]
        ),
    ),
    st.builds(world.namespace, st.just("team"), team=st.sampled_from(["blue", "red"])),
    st.builds(world.grant, st.sampled_from(["team", "other"])),
    st.builds(world.policy, st.sampled_from(["p", "q"]), st.sampled_from(["web", "api"])),
    st.builds(
        world.policy,
        st.just("p"),
        created=st.sampled_from(["2026-01-01T00:00:00+14:00", "2026-01-01T00:00:00Z", ""]),
    ),
    st.builds(world.authority, st.booleans()),
    st.builds(world.backend, st.just("own"), st.booleans()),
    st.builds(world.rate_limit_filter, st.just("limits"), requests=st.integers(0, 1)),
    st.builds(world.route, st.integers(0, 3), filters=st.just(world.limited("limits"))),
    st.builds(
        world.far_route,
        st.lists(
            st.sampled_from(
                [
                    {"name": "web", "namespace": "default", "port": 80},
                    {"name": "missing", "port": 80},
                ]
            ),
            max_size=2,
        ),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        backendRefs=st.just([{"group": "gateway.edge.io", "kind": "Backend", "name": "own"}]),
    ),
    st.builds(
        policy_object,
        st.builds(
            random_policy, st.randoms(use_true_random=False), st.sampled_from(["p0", "p1", "p2"])
        ),
        st.sampled_from(["1s", "2s", "wrong"]),
    ),
    st.builds(
        treats,
        st.sampled_from(["p0", "p1", "p2"]),
        st.sampled_from([*_SERVICES, *_SERVICES, _FRONT]),
        st.sampled_from(_TREATED),
        st.sampled_from(["Inherit", "Replace"]),
    ),
    st.builds(
        near_service, st.sampled_from(["web", "api"]), st.sampled_from(["PreferSameZone", "Other"])
    ),
    st.builds(world.service, st.just("auth")),
    st.builds(
        world.gateway,
        filters=st.builds(
            world.filters,
            st.lists(st.sampled_from(["web", "api", "auth", "missing"]), max_size=2),
            st.sampled_from(["x-user", "host"]),
        ),
    ),
    st.builds(world.listener_set, st.just("set")),
    st.sampled_from(hierarchy()),
    st.sampled_from(
        [
            *(
                ObjectRef(kind, "default", name, group)
                for kind, group in GROUP_OF.items()
                for name in ("p0", "p1", "p2")
            ),
            ObjectRef("Service", "default", "auth"),
            ObjectRef("ListenerSet", "default", "set"),
            ObjectRef("HTTPRoute", "default", "web"),
            ObjectRef("GRPCRoute", "default", "calls"),
            ObjectRef("HTTPRoute", "default", "r0"),
            ObjectRef("ReferenceGrant", "default", "grant"),
            ObjectRef("BackendTLSPolicy", "default", "p"),
            ObjectRef("ConfigMap", "default", "ca"),
            ObjectRef("Backend", "default", "own"),
            ObjectRef("RateLimitFilter", "default", "limits"),
            ObjectRef("HTTPRoute", "default", "r1"),
            ObjectRef("Service", "default", "web"),
            ObjectRef("Service", "default", "api"),
            ObjectRef("EndpointSlice", "default", "web-1"),
            ObjectRef("Gateway", "default", "gw"),
            ObjectRef("GatewayClass", "", "edge"),
        ]
    ),
)
