"""Our CRDs at a real API server: applied again and again, shown by kubectl, and each of their rules kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from api.test_cel import DOCUMENTS
from cluster.backend_wraps import BACKEND_RULES, BACKEND_WRAPS, hashed, treated
from cluster.world.api import ApiError
from cluster.world.apiserver import ApiServer
from controller.manifests.crds import LOOKS, render_crds
from edgefast.api.decode.decode import decode_documents
from edgefast.api.edge.backend import (
    BackendEndpoint,
    BackendSpec,
    BackendTLS,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicySpec,
    FaultAbort,
    FaultDelay,
    FaultInjection,
)
from edgefast.api.edge.credentials import ExtractFrom
from edgefast.api.edge.edgeproxy import ProxyAccessLog
from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetHPA,
    FleetPDB,
    FleetService,
    FleetShutdown,
)
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress
from edgefast.api.edge.httproutefilter import (
    DirectResponse,
    DirectResponseBody,
    HTTPCookieMatch,
    HTTPRouteFilterSpec,
    RegexPathModifier,
    ReplaceRegexMatch,
)
from edgefast.api.edge.jwt import JWT, JWTExtractor, JWTProvider, LocalJWKS, RemoteJWKS
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.edge.ratelimitfilter import (
    LocalRateLimitRule,
    RateLimitFilterSpec,
    RateLimitHeaderMatch,
    RateLimitSelector,
    RateLimitSourceCIDR,
)
from edgefast.api.edge.response_override import ResponseOverride, StatusCodeMatch, StatusCodeRange
from edgefast.api.edge.securitypolicy import (
    AuthorizationOperation,
    AuthorizationPrincipal,
    AuthorizationRule,
    ClientCertificateNames,
    ExtAuth,
    ExtAuthCache,
    ExtAuthGRPC,
    ExtAuthHTTP,
    OperationPath,
    SecurityPolicySpec,
)
from edgefast.api.kinds import EDGE_GROUP, KINDS
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.unsupported_fields import UNSERVED
from edgefast.api.validation import edge, jwt, policy, route_filter, traffic
from edgefast.api.validation.policy_target import BOOK

Document = dict[str, Any]
Wrap = Callable[[Document], tuple[str, Document]]

_FQDN = {"fqdn": {"hostname": "a.example", "port": 1}}


def _proxy(field: str) -> Wrap:
    return lambda part: ("EdgeProxy", {field: part})


def _backend(**spec: Any) -> tuple[str, Document]:
    return "Backend", {"endpoints": [_FQDN], **spec}


def _selector(part: Document) -> tuple[str, Document]:
    rule = {"clientSelectors": [part], "limit": {"requests": 1, "unit": "Hour"}}
    return "RateLimitFilter", {"type": "Global", "global": {"rules": [rule]}}


_TARGET = {"group": GATEWAY_GROUP, "kind": "Gateway", "name": "g"}


def _security(**spec: Any) -> tuple[str, Document]:
    return "SecurityPolicy", {"targetRefs": [_TARGET], **spec}


def _rule(part: Document) -> tuple[str, Document]:
    return _security(authorization={"rules": [part]})


def _service(protocol: str) -> Wrap:
    return lambda part: _security(extAuth={protocol: part})


def _cached(part: Document, protocol: str = "http") -> tuple[str, Document]:
    return _security(extAuth={protocol: {"backendRef": {"name": "a", "port": 80}}, "cache": part})


def _overriding(part: Document) -> tuple[str, Document]:
    return "BackendTrafficPolicy", {"targetRefs": [_TARGET], "responseOverride": [part]}


def _provider(part: Document) -> tuple[str, Document]:
    return _security(jwt={"providers": [{"name": "a", **part}]})


def _rewrite(part: Document) -> tuple[str, Document]:
    return "HTTPRouteFilter", {"urlRewrite": {"path": part}}


def _replace(part: Document) -> tuple[str, Document]:
    return _rewrite({"type": "ReplaceRegexMatch", "replaceRegexMatch": part})


def _answer(part: Document) -> tuple[str, Document]:
    return "HTTPRouteFilter", {"directResponse": part}


#: Part -> an object around it.
WRAPS: dict[type, Wrap] = {
    **BACKEND_WRAPS,
    FleetDeployment: _proxy("deployment"),
    FleetHPA: _proxy("hpa"),
    FleetPDB: _proxy("pdb"),
    FleetService: _proxy("service"),
    FleetShutdown: _proxy("shutdown"),
    ProxyClientAddress: _proxy("clientAddress"),
    ProxyAccessLog: _proxy("accessLog"),
    BackendEndpoint: lambda part: _backend(endpoints=[part]),
    IPEndpoint: lambda part: _backend(endpoints=[{"ip": part}]),
    FQDNEndpoint: lambda part: _backend(endpoints=[{"fqdn": part}]),
    BackendTLS: lambda part: _backend(tls=part),
    BackendSpec: lambda part: ("Backend", part),
    RateLimitFilterSpec: lambda part: ("RateLimitFilter", part),
    LocalRateLimitRule: lambda part: (
        "RateLimitFilter",
        {"type": "Local", "local": {"rules": [part]}},
    ),
    RateLimitHeaderMatch: lambda part: _selector({"headers": [part]}),
    RateLimitSelector: _selector,
    RateLimitSourceCIDR: lambda part: _selector({"sourceCIDR": part}),
    PolicyTargetReference: lambda part: treated(targetRefs=[part]),
    SecurityPolicySpec: lambda part: ("SecurityPolicy", part),
    BackendTrafficPolicySpec: lambda part: ("BackendTrafficPolicy", part),
    AuthorizationRule: _rule,
    AuthorizationOperation: lambda part: _rule({"action": "Deny", "operation": part}),
    AuthorizationPrincipal: lambda part: _rule({"action": "Deny", "principal": part}),
    ClientCertificateNames: lambda part: _rule(
        {"action": "Deny", "principal": {"clientCertificate": part}}
    ),
    OperationPath: lambda part: _rule({"action": "Deny", "operation": {"path": part}}),
    ExtractFrom: lambda part: _security(
        apiKeyAuth={"credentialRefs": [{"name": "keys"}], "extractFrom": [part]}
    ),
    FaultInjection: lambda part: treated(faultInjection=part),
    FaultDelay: lambda part: treated(faultInjection={"delay": part}),
    FaultAbort: lambda part: treated(faultInjection={"abort": part}),
    ResponseOverride: _overriding,
    StatusCodeMatch: lambda part: _overriding({"match": {"statusCodes": [part]}, "response": {}}),
    StatusCodeRange: lambda part: _overriding(
        {"match": {"statusCodes": [{"type": "Range", "range": part}]}, "response": {}}
    ),
    JWT: lambda part: _security(jwt=part),
    JWTProvider: _provider,
    JWTExtractor: lambda part: _provider({"localJWKS": {"inline": "{}"}, "extractFrom": part}),
    LocalJWKS: lambda part: _provider({"localJWKS": part}),
    RemoteJWKS: lambda part: _provider({"remoteJWKS": part}),
    ExtAuth: lambda part: _security(extAuth=part),
    ExtAuthCache: _cached,
    ExtAuthGRPC: _service("grpc"),
    ExtAuthHTTP: _service("http"),
    HTTPRouteFilterSpec: lambda part: ("HTTPRouteFilter", part),
    RegexPathModifier: _rewrite,
    ReplaceRegexMatch: _replace,
    DirectResponse: _answer,
    DirectResponseBody: lambda part: _answer({"body": part}),
    HTTPCookieMatch: lambda part: ("HTTPRouteFilter", {"matches": [{"cookies": [part]}]}),
}
RULES = [*BOOK.rules, *BACKEND_RULES]
for _one in (edge, jwt, policy, route_filter, traffic):
    RULES += _one.BOOK.rules


def _object(struct: type, part: Document) -> Document:
    kind, spec = WRAPS[struct](part)
    return {
        "apiVersion": f"{EDGE_GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "one", "namespace": "default"},
        "spec": spec,
    }


def _refusal(apiserver: ApiServer, manifest: Document) -> str:
    """What the API server says against an object, "" when it would take it; nothing is stored."""
    path = apiserver.admin.path_of(manifest, collection=True)
    try:
        apiserver.admin.post(f"{path}?dryRun=All&fieldValidation=Strict", manifest)
    except ApiError as error:
        assert error.status in (400, 422), error
        return error.message
    return ""


def test_every_part_with_a_rule_is_asked_about() -> None:
    assert set(WRAPS) == {rule.struct for rule in RULES}


@pytest.mark.parametrize("struct", WRAPS, ids=lambda struct: struct.__name__)
def test_the_api_server_refuses_what_the_decoder_refuses(
    apiserver: ApiServer, struct: type
) -> None:
    rules = [rule for rule in RULES if rule.struct is struct]
    said: dict[str, int] = {rule.message: 0 for rule in rules}
    accepted = 0
    for part in DOCUMENTS[struct]:
        manifest = _object(struct, part)
        refusal = _refusal(apiserver, manifest)
        decoded = decode_documents(json.dumps(manifest).encode(), "one.json")
        assert bool(decoded.problems) == bool(refusal), (part, refusal, decoded.problems)
        accepted += not refusal
        for message in said:
            said[message] += message in refusal
    assert accepted, "every document is refused"
    assert all(said.values()), said


@pytest.mark.parametrize(
    ("struct", "part", "words"),
    [
        (RateLimitHeaderMatch, {"name": "a", "value": "x", "typ": "Exact"}, "unknown field"),
        (RateLimitHeaderMatch, {"name": "a b", "value": "x"}, "should match"),
        (FleetDeployment, {"replicas": -1}, "should be greater than or equal to 0"),
        (FleetDeployment, {"kind": "StatefulSet"}, "Unsupported value"),
        (BackendSpec, {"endpoints": []}, "should have at least 1 items"),
        (IPEndpoint, {"address": "10.0.0.1"}, "Required value"),
        (FleetShutdown, {"drainTimeout": "soon"}, "should match"),
    ],
)
def test_limits_of_single_fields_are_the_schema_s(
    apiserver: ApiServer, struct: type, part: Document, words: str
) -> None:
    manifest = _object(struct, part)
    assert words in _refusal(apiserver, manifest)
    assert decode_documents(json.dumps(manifest).encode(), "one.json").problems


def _parent(spec: Document, path: list[str]) -> Document | None:
    """What holds the field at `path`, when this object has it."""
    part: Any = spec
    for name in path[:-1]:
        part = part.get(name)
        if part is None:
            return None
    return part


def test_fields_that_are_not_served_yet_are_kept(apiserver: ApiServer) -> None:
    """Dropped silently, a policy would hold without what was written into it."""
    namespace = apiserver.namespace("unserved")
    value = {"any": [1, {"thing": "x"}]}
    kept = set()
    for number, (kind, spec) in enumerate(
        [
            _cached({"ttl": "1s"}, "http"),
            _cached({"ttl": "1s"}, "grpc"),
            treated(
                timeout={"http": {}},
                healthCheck={"active": {"type": "HTTP", "http": {"path": "/"}}},
            ),
            hashed({"type": "SourceIP"}),
            _security(
                oidc={
                    "clientID": "shop",
                    "clientSecret": {"name": "client"},
                    "provider": {"issuer": "https://issuer.example.com"},
                }
            ),
            treated(
                bandwidthLimit={
                    "response": {"scope": "Response", "limit": {"value": "1Mi", "unit": "Second"}}
                }
            ),
        ]
    ):
        here = []
        for field in UNSERVED[kind]:
            path = field.split(".")[1:]
            parent = _parent(spec, path) if "[]" not in field else None
            if parent is not None:
                parent[path[-1]] = value
                here.append((field, path))
        manifest = {
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": kind,
            "metadata": {"name": f"one-{number}", "namespace": namespace},
            "spec": spec,
        }
        (made,) = apiserver.admin.apply(manifest)
        for field, path in here:
            parent = _parent(made["spec"], path)
            assert parent is not None and parent[path[-1]] == value, field
            kept.add((kind, field))
    kinds = ("SecurityPolicy", "BackendTrafficPolicy")
    assert kept == {(k, f) for k in kinds for f in UNSERVED[k] if "[]" not in f}


def test_defaults_are_filled_in(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("defaults")
    manifest = _object(RateLimitSelector, {"headers": [{"name": "a", "value": "x"}]})
    manifest["metadata"]["namespace"] = namespace
    (made,) = apiserver.admin.apply(manifest)
    rule = made["spec"]["global"]["rules"][0]
    assert rule["clientSelectors"][0]["headers"] == [{"name": "a", "type": "Exact", "value": "x"}]
    assert (rule["algorithm"], rule["shadow"]) == ("FixedWindow", False)


def test_applied_again_they_do_not_change(apiserver: ApiServer) -> None:
    first = apiserver.admin.apply(*render_crds(), manager="edgefast")
    again = apiserver.admin.apply(*render_crds(), manager="edgefast")
    assert [one["metadata"]["generation"] for one in again] == [
        one["metadata"]["generation"] for one in first
    ]
    for one in again:
        conditions = {c["type"]: c["status"] for c in one["status"]["conditions"]}
        assert conditions["NamesAccepted"] == conditions["Established"] == "True"
        assert "NonStructuralSchema" not in conditions


def test_names_for_people(apiserver: ApiServer) -> None:
    group = f"/apis/{EDGE_GROUP}/v1alpha1"
    # A status is a resource of the same kind, with a slash in its name, and comes in any order.
    listed = apiserver.admin.get(group)["resources"]
    served = {one["kind"]: one for one in listed if "/" not in one["name"]}
    for kind, looks in LOOKS.items():
        one = served[kind]
        assert one["name"] == KINDS[EDGE_GROUP, kind].plural
        assert one["singularName"] == looks.singular
        assert one["shortNames"] == list(looks.short)
        assert one["categories"] == ["edge"]
    short = [name for looks in LOOKS.values() for name in looks.short]
    core = {
        name
        for one in apiserver.admin.get("/api/v1")["resources"]
        for name in (*one.get("shortNames", ()), one["name"])
    }
    assert not core & set(short) and len(short) == len(set(short))


def test_columns_show_what_there_is(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("columns")
    filled = [
        ("EdgeProxy", {"mergeGateways": True, "deployment": {"replicas": 2}}, ["true", "2", ""]),
        ("RateLimitFilter", _selector({"sourceCIDR": {"value": "10.0.0.0/8"}})[1], None),
        ("Backend", {"endpoints": [_FQDN]}, ["a.example", "", ""]),
        ("SecurityPolicy", _security()[1], ["gateway", "g", "inherit"]),
        ("BackendTrafficPolicy", {"targetRefs": [_TARGET]}, ["gateway", "g", "inherit"]),
        ("HTTPRouteFilter", {"directResponse": {"statusCode": 404}}, ["404"]),
    ]
    for kind, spec, wanted in filled:
        manifest = {
            "apiVersion": f"{EDGE_GROUP}/v1alpha1",
            "kind": kind,
            "metadata": {"name": "one", "namespace": namespace},
            "spec": spec,
        }
        apiserver.admin.apply(manifest)
        connection = apiserver.admin._connect(10.0)
        headers = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
        try:
            connection.request("GET", apiserver.admin.path_of(manifest), headers=headers)
            table = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        titles = [one["name"] for one in table["columnDefinitions"]]
        assert titles == ["Name", *(title for title, _, _ in LOOKS[kind].columns), "Age"]
        cells = [str(cell or "").lower() for cell in table["rows"][0]["cells"][1:-1]]
        assert cells == (wanted if wanted is not None else ["global", "1", "hour"])
