"""No field and no word passes silently: wherever in any kind something unknown stands, it closes what it may decide and is told."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from edgefast.api.decode.decode import decode_api_object, decode_documents
from edgefast.api.kinds import KINDS, Object
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.model.unsupported_fields import PLACES, UNSERVED, Closes, check_supported
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.translate import Settings, Translation, translate

pytestmark = pytest.mark.pure

#: One object of each kind; all of them are in service. Rules of the route: of its own, and one for each kind that it depends on.
WORLD = yaml.safe_load("""
GatewayClass:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: edge}
  spec:
    controllerName: gateway.edge.io/gatewayclass-controller
    parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: tuned, namespace: default}
EdgeProxy:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: tuned, namespace: default}
  spec: {}
Gateway:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: gw, namespace: default}
  spec:
    gatewayClassName: edge
    allowedListeners: {namespaces: {from: All}}
    listeners:
    - {name: http, port: 80, protocol: HTTP}
    - {name: grpc, port: 81, protocol: HTTP}
    - {name: tls, port: 82, protocol: TLS, tls: {mode: Passthrough}}
    - {name: tcp, port: 83, protocol: TCP}
    - {name: udp, port: 83, protocol: UDP}
ListenerSet:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: set, namespace: default}
  spec:
    parentRef: {name: gw}
    listeners: [{name: http, port: 8080, protocol: HTTP}]
HTTPRoute:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: web, namespace: default}
  spec:
    parentRefs: [{name: gw, sectionName: http}, {name: set, kind: ListenerSet}]
    rules:
    - {matches: [{path: {value: /own}}], backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]}
    - {matches: [{path: {value: /BackendTLSPolicy}}], backendRefs: [{name: web, port: 80}]}
    - {matches: [{path: {value: /Backend}}], backendRefs: [{group: gateway.edge.io, kind: Backend, name: origin}]}
    - {matches: [{path: {value: /ReferenceGrant}}], backendRefs: [{name: far, namespace: other, port: 80}]}
    - matches: [{path: {value: /RateLimitFilter}}]
      filters: [{type: ExtensionRef, extensionRef: {group: gateway.edge.io, kind: RateLimitFilter, name: limits}}]
      backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]
    - matches: [{path: {value: /HTTPRouteFilter}}]
      filters: [{type: ExtensionRef, extensionRef: {group: gateway.edge.io, kind: HTTPRouteFilter, name: moved}}]
      backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]
    - {matches: [{path: {value: /SecurityPolicy}}], name: guarded, backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]}
    - matches: [{path: {value: /BackendTrafficPolicy}}]
      name: treated
      backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]
    - {matches: [{path: {value: /XBackend}}], backendRefs: [{group: gateway.networking.x-k8s.io, kind: XBackend, name: outside}]}
GRPCRoute:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: web, namespace: default}
  spec:
    parentRefs: [{name: gw, sectionName: grpc}]
    rules:
    - matches: [{method: {service: shop.Own}}]
      backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]
TLSRoute:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: names, namespace: default}
  spec:
    parentRefs: [{name: gw, sectionName: tls}]
    hostnames: [a.example]
    rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]}]
TCPRoute:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: all, namespace: default}
  spec:
    parentRefs: [{name: gw, sectionName: tcp}]
    rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]}]
UDPRoute:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: all, namespace: default}
  spec:
    parentRefs: [{name: gw, sectionName: udp}]
    rules: [{backendRefs: [{group: gateway.edge.io, kind: Backend, name: plain}]}]
BackendTLSPolicy:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: policy, namespace: default}
  spec:
    targetRefs: [{group: "", kind: Service, name: web}]
    validation: {hostname: web.example.com, wellKnownCACertificates: System}
ReferenceGrant:
  apiVersion: gateway.networking.k8s.io/v1
  metadata: {name: grant, namespace: other}
  spec:
    from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}]
    to: [{group: "", kind: Service}]
Backend:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: origin, namespace: default}
  spec: {endpoints: [{ip: {address: 10.0.0.9, port: 80}}]}
RateLimitFilter:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: limits, namespace: default}
  spec: {type: Global, global: {rules: [{limit: {requests: 1, unit: Hour}}]}}
XBackend:
  {apiVersion: gateway.networking.x-k8s.io/v1alpha1, metadata: {name: outside, namespace: default},
    spec: {type: ExternalHostname, port: {number: 80}, externalHostname: {hostname: a.example.com}}}
XBackendTrafficPolicy:
  apiVersion: gateway.networking.x-k8s.io/v1alpha1
  metadata: {name: budget, namespace: default}
  spec: {targetRefs: [{group: gateway.edge.io, kind: Backend, name: plain}], retryConstraint: {budget: {percent: 20}, minRetryRate: {count: 10}}}
HTTPRouteFilter:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: moved, namespace: default}
  spec: {urlRewrite: {path: {type: ReplaceRegexMatch, replaceRegexMatch: {pattern: a, substitution: b}}}}
SecurityPolicy:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: who, namespace: default}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: guarded}]
    authorization: {rules: [{action: Allow, principal: {clientCIDRs: [10.0.0.0/8]}}]}
    extAuth: {http: {backendRef: {name: web, port: 80}}}
    jwt:
      providers:
      - name: issuer
        localJWKS: {inline: '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'}
BackendTrafficPolicy:
  apiVersion: gateway.edge.io/v1alpha1
  metadata: {name: how, namespace: default}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: treated}]
    requestBuffer: {limit: 1Mi}
    responseOverride: [{match: {statusCodes: [{value: 599}]}, response: {statusCode: 599}}]
""")
#: Of a kind: a field that cannot stand beside another one.
EXCLUDES = {("HTTPRouteFilter", "directResponse"): "urlRewrite"}
#: Of a kind: a field that stands in another one's place, with what that has.
INSTEAD = {("SecurityPolicy", "extAuth", "grpc"): "http"}
FETCHED = {"uri": "https://issuer.example.com/keys"}
CLIENT = {
    "clientID": "shop",
    "clientSecret": {"name": "client"},
    "provider": {"issuer": "https://issuer.example.com"},
    "passThroughAuthHeader": True,
}
HASHED = {"type": "ConsistentHash", "consistentHash": {"type": "SourceIP"}}
JUDGED = list(PLACES)
BESIDE = """
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: plain}
spec: {endpoints: [{ip: {address: 10.0.0.8, port: 80}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: client}
stringData: {client-secret: secret of the client}
---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: other}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
ports: [{port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: far, namespace: other, labels: {kubernetes.io/service-name: far}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.2]}]
ports: [{port: 80}]
"""
#: Where the rules are that a kind may close.
STREAMS = {"TLSRoute": "tls", "TCPRoute": "tcp", "UDPRoute": "udp"}
LISTENERS = {"ListenerSet": "default/gw/default/set/http", "GRPCRoute": "default/gw/grpc"}
#: The rule of the route that a kind may close, by its place.
RULES = {
    "BackendTLSPolicy": 1,
    "Backend": 2,
    "ReferenceGrant": 3,
    "RateLimitFilter": 4,
    "HTTPRouteFilter": 5,
    "SecurityPolicy": 6,
    "BackendTrafficPolicy": 7,
    "XBackendTrafficPolicy": 7,
    "XBackend": 8,
}
NEW = "notYetKnown"
SETTINGS = Settings(enable_backend=True, standalone=True)


def _serve(kind: str, raw: dict[str, Any]) -> Translation:
    world = {**WORLD, kind: raw}
    objects: list[Object] = [
        decode_api_object({**one, "kind": name}, name) for name, one in world.items()
    ]
    beside = decode_documents(BESIDE.encode(), "beside.yaml")
    assert not beside.problems
    return translate(Snapshot.of([*objects, *(one.obj for one in beside.objects)]), SETTINGS)


def _is_open(kind: str, served: Translation) -> bool:
    """Tell whether requests still come to a backend by what an object of the kind says."""
    (fleet,) = served.ir.fleets
    if kind in STREAMS:
        name = f"default/gw/{STREAMS[kind]}"
        return any(one.backends for one in fleet.stream_routes if one.listener == name)
    listener = LISTENERS.get(kind, "default/gw/http")
    hosts = [one for one in fleet.virtual_hosts if one.listener == listener]
    rules = [one.rules[RULES.get(kind, 0)] for one in hosts]
    shut = {one.name for one in fleet.policies if one.status}
    return any(one.status == 0 and shut.isdisjoint(one.units()) for one in rules)


def _problems_at(kind: str, path: str, served: Translation) -> list[Problem]:
    return [
        one for one in served.problems if one.object and (one.object.kind, one.path) == (kind, path)
    ]


# --- places in objects ----------------------------------------------------------------------------


def _containers(shape: Shape, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give the path of each Struct within one; "[]" is an entry of a list."""
    yield at
    for one in shape.fields:
        below, path = one.shape, (*at, one.name)
        while below.kind == "list":
            assert below.item is not None
            below, path = below.item, (*path, "[]")
        if below.kind == "struct" and path[0] != "metadata":
            yield from _containers(below, path)


def _words(shape: Shape, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give the path of each field that takes one of a few words."""
    for one in shape.fields:
        below, path = one.shape, (*at, one.name)
        while below.kind == "list":
            assert below.item is not None
            below, path = below.item, (*path, "[]")
        if below.kind == "struct" and path[0] != "metadata":
            yield from _words(below, path)
        elif below.kind == "string" and below.enum:
            yield path


_SAMPLES = {
    "hostname": "a.example.com",
    "address": "10.0.0.9",
    "group": "",
    "kind": "Service",
    "path": "/x",
    "ttl": "1s",
}


def _sample(shape: Shape, name: str = "") -> Any:
    """Return as little as a value may be."""
    match shape.kind:
        case "struct":
            return {one.name: _sample(one.shape, one.name) for one in shape.fields if one.required}
        case "list":
            return [_sample(shape.item, name)] if shape.item and shape.min_length else []
        case "string":
            return shape.enum[0] if shape.enum else _SAMPLES.get(name, "web")
        case "integer":
            return int(shape.minimum or 1)
        case "choice":
            return _sample(shape.choices[0], name)
        case _:
            return {}


def _reach(raw: dict[str, Any], shape: Shape, path: tuple[str, ...]) -> dict[str, Any]:
    """Return the part of an object at a path, made as it has to be on the way; of lists the first entry."""
    here: Any = raw
    for name in path:
        if name == "[]":
            assert shape.item is not None
            shape = shape.item
            if not here:
                here.append(_sample(shape))
            here = here[0]
            continue
        field = shape.field(name)
        assert field is not None
        shape = field.shape
        here = here.setdefault(name, [] if shape.kind == "list" else _sample(shape, name))
    found: dict[str, Any] = here
    return found


def _reported(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[]", "[0]")


def _positions(path: tuple[str, ...]) -> tuple[str | int, ...]:
    return tuple(0 if part == "[]" else part for part in path)


def _shape(kind: str) -> Shape:
    return next(shape_of(info.struct) for info in KINDS.values() if info.kind == kind)


CONTAINERS = [(kind, path) for kind in JUDGED for path in _containers(_shape(kind))]
#: A method is one of the words of CORS, whichever: nothing else is done with it than to tell it browsers.
WORDS = [
    (kind, path)
    for kind in JUDGED
    for path in _words(_shape(kind))
    if path[-2:] != ("allowMethods", "[]")
]


def _check(kind: str, path: tuple[str, ...], closes: Closes, served: Translation) -> None:
    told = _problems_at(kind, _reported(path), served)
    assert told, [one.line() for one in served.problems]
    assert {one.severity for one in told} == {"warning" if closes == "nothing" else "error"}
    assert _is_open(kind, served) == (closes == "nothing")


def test_the_world_is_open() -> None:
    assert PLACES.keys() == WORLD.keys()
    served = _serve("Gateway", WORLD["Gateway"])
    assert [one.line() for one in served.problems] == []
    assert all(_is_open(kind, served) for kind in JUDGED)


@pytest.mark.parametrize(
    ("kind", "path"), CONTAINERS, ids=lambda one: one if isinstance(one, str) else _reported(one)
)
def test_a_field_that_nobody_knows(kind: str, path: tuple[str, ...]) -> None:
    """As an API server with newer CRDs sends it; a file with it is refused."""
    raw = copy.deepcopy(WORLD[kind])
    _reach(raw, _shape(kind), path)[NEW] = {"a": 1}
    at = (*path, NEW)
    found = check_supported(kind, _positions(at), _reported(at))
    assert found is not None and not found.known
    _check(kind, at, found.closes, _serve(kind, raw))
    decoded = decode_documents(yaml.safe_dump({**raw, "kind": kind}).encode(), "new.yaml")
    assert not decoded.objects
    assert _reported(at) in {one.path for one in decoded.problems if one.severity == "error"}


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, named in UNSERVED.items() if kind in JUDGED for field in named],
)
def test_a_field_that_is_not_available_yet(kind: str, field: str) -> None:
    """From files and from an API server alike."""
    path = tuple(field.replace("[]", ".[]").split("."))
    raw = copy.deepcopy(WORLD[kind])
    raw["spec"].pop(EXCLUDES.get((kind, path[1]), ""), None)
    if other := INSTEAD.get((kind, *path[1:3])):
        raw["spec"][path[1]][path[2]] = raw["spec"][path[1]].pop(other)
    if "loadBalancer" in path:
        raw["spec"]["loadBalancer"] = {**HASHED}
    if "oidc" in path:
        raw["spec"]["oidc"] = copy.deepcopy(CLIENT)
    if "remoteJWKS" in path:
        raw["spec"]["jwt"]["providers"] = [{"name": "issuer", "remoteJWKS": {**FETCHED}}]
    if "active" in path:
        raw["spec"]["healthCheck"] = {"active": {"type": "HTTP", "http": {"path": "/"}}}
    _reach(raw, _shape(kind), path[:-1])[path[-1]] = {"a": 1}
    _check(kind, path, UNSERVED[kind][field], _serve(kind, raw))
    raw["kind"] = kind
    decoded = decode_documents(yaml.safe_dump(raw).encode(), "new.yaml")
    (loaded,) = decoded.objects
    assert loaded.obj.unserved == decode_api_object(raw, kind).unserved != ()


@pytest.mark.parametrize(
    ("kind", "path"), WORDS, ids=lambda one: one if isinstance(one, str) else _reported(one)
)
def test_a_word_that_nobody_knows(kind: str, path: tuple[str, ...]) -> None:
    """Whatever it would have meant is told, at the field or what it is in."""
    raw = copy.deepcopy(WORLD[kind])
    listed = path[-1] == "[]"
    name = path[-2] if listed else path[-1]
    holder = _reach(raw, _shape(kind), path[:-2] if listed else path[:-1])
    holder[name] = ["Newer"] if listed else "Newer"
    served = _serve(kind, raw)
    at = _reported(path)
    said = [one for one in served.problems if one.object and one.object.kind == kind]
    assert [one for one in said if at.startswith(one.path) or one.path.startswith(at)], at
