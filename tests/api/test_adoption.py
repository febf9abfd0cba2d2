"""Effects of `--adopt` on each field of Envoy Gateway's kinds, as the table of the page lists them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from edgefast.api.decode.decode import Decoded, decode_documents
from edgefast.api.loaded import render_path
from edgefast.api.migration.adoption.adopt import adopt_document
from edgefast.api.migration.adoption.client_fields import CLIENT_FIELDS
from edgefast.api.migration.adoption.envoy_proxy import PROXY_FIELDS, PROXY_NAMED
from edgefast.api.migration.adoption.own_fields import OWN_FIELDS
from edgefast.api.migration.adoption.route_settings import RATE_LIMIT_REFUSED

pytestmark = pytest.mark.pure

GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}
ROUTE = {**GATEWAY, "kind": "HTTPRoute"}
VALIDATION = {"caCertificateRefs": [{"name": "authority"}]}
#: Values of fields; the others get 7.
VALUES: dict[str, Any] = {
    "clientIPDetection.xForwardedFor.trustedCIDRs": ["10.0.0.0/8"],
    "enableProxyProtocol": True,
    "grpc.enableWeb": True,
    "headers.disableRateLimitHeaders": True,
    "headers.preserveXRequestID": True,
    "headers.requestID": "Disable",
    "headers.withUnderscoresAction": "Allow",
    "headers.xForwardedClientCert.certDetailsToAdd": ["Subject"],
    "headers.xForwardedClientCert.mode": "Sanitize",
    "http1.http10": {},
    "path.escapedSlashesAction": "KeepUnchanged",
    "proxyProtocol": {},
    "proxyProtocol.optional": True,
    "tls.alpnProtocols": ["http/1.1"],
    "tls.clientValidation.caCertificateRefs": [{"name": "authority"}],
    "tls.clientValidation.mode": "VerifyIfGiven",
    "tls.clientValidation.optional": True,
    "tls.minVersion": "1.3",
}


def document(kind: str, path: str, value: Any, target: dict[str, Any] = GATEWAY) -> dict[str, Any]:
    """Return a document that sets one field; `[]` in its path is a list of one."""
    spec: dict[str, Any] = {} if kind == "EnvoyProxy" else {"targetRefs": [target]}
    if path.startswith("tls.clientValidation."):
        spec["tls"] = {"clientValidation": dict(VALIDATION)}
    place: Any = spec
    *above, last = path.split(".")
    for name in above:
        place = place.setdefault(name.removesuffix("[]"), [{}] if name.endswith("[]") else {})
        place = place[0] if isinstance(place, list) else place
    place[last] = value
    metadata = {"name": "a", "namespace": "default"}
    api = "gateway.envoyproxy.io/v1alpha1"
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def decode(raw: dict[str, Any]) -> Decoded:
    return decode_documents(yaml.safe_dump(raw).encode(), "a.yaml", adopt=True)


@pytest.mark.parametrize("path", CLIENT_FIELDS)
def test_fields_of_clients(path: str) -> None:
    timed = path.startswith("timeout") or path.endswith(("interval", "Duration"))
    value = VALUES.get(path, "7s" if timed else 7)
    effect = CLIENT_FIELDS[path].effect
    raw = document("ClientTrafficPolicy", path, value)
    if path == "http1.http10.useDefaultHost":
        raw["spec"]["http1"]["http10"] = {"useDefaultHost": True}
    decoded = decode(raw)
    errors = [one.text() for one in decoded.problems if one.severity == "error"]
    if effect == "closes":
        assert errors and f"spec.{path}" in errors[0] and not decoded.objects
        (policy,) = decoded.policies
        assert policy.access_policies and [one.name for one, _ in policy.targets] == ["edge"]
        return
    assert not errors and len(decoded.objects) == 1
    named = [one.path for one in decoded.problems]
    assert (f"spec.{path}" in named) is (
        effect == "named" or bool(CLIENT_FIELDS[path].note and named)
    )


@pytest.mark.parametrize("path", [*PROXY_FIELDS, *PROXY_NAMED])
def test_fields_of_proxies(path: str) -> None:
    adopted = adopt_document(document("EnvoyProxy", path, {"a": 7}))
    assert adopted is not None
    named = [".".join(map(str, one.path[1:])) for one in adopted.notes]
    silent = path in PROXY_FIELDS or path == "provider.type"
    assert (named == []) if silent else named[0].startswith(path)
    assert bool(adopted.raw["spec"]) is (path in PROXY_FIELDS)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("EnvoyProxy", "concurrency"),
        ("EnvoyProxy", "provider.kubernetes.envoyService.type"),
        ("ClientTrafficPolicy", "timeout.http.idleTimeout"),
        ("ClientTrafficPolicy", "headers.withUnderscoresAction"),
        ("BackendTrafficPolicy", "retry.numRetries"),
        ("BackendTrafficPolicy", "retry.perRetry.backOff.baseInterval"),
    ],
)
def test_errors_name_the_field_of_the_document(kind: str, path: str) -> None:
    decoded = decode(document(kind, path, "x"))
    errors = [one for one in decoded.problems if one.severity == "error"]
    assert [one.path for one in errors] == [f"spec.{path}"]


@pytest.mark.parametrize("path", RATE_LIMIT_REFUSED)
@pytest.mark.parametrize("where", ["global", "local"])
def test_parts_of_limits(where: str, path: str) -> None:
    full = f"rateLimit.{where}.rules[].{path}"
    raw = document("BackendTrafficPolicy", full, True, ROUTE)
    rule = raw["spec"]["rateLimit"][where]["rules"][0]
    rule["limit"] = {"requests": 3, "unit": "Hour", **rule.get("limit", {})}
    decoded = decode(raw)
    errors = [one for one in decoded.problems if one.severity == "error"]
    if (where, path) == ("local", "shared"):
        assert not errors
        return
    paths = [one.path for one in errors]
    assert "spec." + full.replace("[]", "[0]") in paths and not decoded.objects
    (refused,) = decoded.refused
    assert refused.closed is not None


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in OWN_FIELDS.items() for path in paths]
)
def test_fields_that_envoy_gateway_lacks_are_refused(kind: str, path: str) -> None:
    decoded = decode(document(kind, path, True, ROUTE))
    errors = [one for one in decoded.problems if one.message.endswith("has no such field")]
    assert [one.path for one in errors] == ["spec." + path.replace("[]", "[0]")]
    assert errors[0].severity == "error" and errors[0].hint and not decoded.objects


ELSEWHERE = {"kind": "HTTPRoute", "matchLabels": {}, "namespaces": {"from": "All"}}


@pytest.mark.parametrize(
    "part", ["version", "namespaces", "repeated", "repeated targets", "repeated spec"]
)
@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("BackendTrafficPolicy", "rateLimit"),
        ("ClientTrafficPolicy", "clientIPDetection"),
        ("ClientTrafficPolicy", "proxyProtocol"),
        ("ClientTrafficPolicy", "enableProxyProtocol"),
        ("ClientTrafficPolicy", "path"),
    ],
)
def test_policies_that_are_not_adopted_close_their_targets(
    kind: str, field: str, part: str
) -> None:
    raw = document(kind, field, {}, ROUTE)
    if part == "version":
        raw["apiVersion"] = raw["apiVersion"].replace("v1alpha1", "v1")
    if part == "namespaces":
        raw["spec"]["targetSelectors"] = [ELSEWHERE]
    text = yaml.safe_dump(raw)
    if part == "repeated":
        text += f"  {field}: {{}}\n"
    if part == "repeated targets":
        text += "  targetRefs: []\n"
    if part == "repeated spec":
        text += "spec: {}\n"
    decoded = decode_documents(text.encode(), "a.yaml", adopt=True)
    assert not decoded.objects
    texts = [one.text() for one in decoded.problems]
    assert any("the version is not known" in one for one in texts) is (part == "version")
    assert any("other namespaces" in one for one in texts) is (
        part in ("namespaces", "repeated targets", "repeated spec")
    )
    assert any("given twice" in one for one in texts) is part.startswith("repeated")
    closed = [one for one in decoded.policies if one.access_policies]
    assert closed or decoded.refused
    if part in ("repeated targets", "repeated spec") and closed:
        assert closed[0].lost


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        ({"local": [1]}, "local"),
        ({"local": "x"}, "local"),
        ({"local": {"rules": {}}}, "local.rules"),
        ({"global": {"rule": []}}, "global.rule"),
        (
            {"global": {"rules": [{"limit": {"requests": 3, "unit": "Hour"}}], "extra": 1}},
            "global.extra",
        ),
        ({"type": "Local"}, "type"),
        ({"type": "Local", "global": {"rules": []}}, "type"),
        ({"type": ["Local"]}, "type"),
    ],
)
def test_limits_that_cannot_be_read_close(limits: dict[str, Any], path: str) -> None:
    decoded = decode(document("BackendTrafficPolicy", "rateLimit", limits, ROUTE))
    errors = [one.path for one in decoded.problems if one.severity == "error"]
    assert errors == [f"spec.rateLimit.{path}"]
    assert not decoded.objects and decoded.refused


@pytest.mark.parametrize(
    "spec",
    [
        {"targetRefs": [{**ROUTE, "namespace": "other"}]},
        {"targetRefs": [7]},
        {"targetSelectors": [{"kind": "HTTPRoute", "namespaces": {"from": "All"}}]},
        {"targetSelectors": [{"kind": "HTTPRoute", "matchLabels": 7}]},
        {"targetSelectors": "all"},
        {},
        None,
    ],
)
def test_targets_that_cannot_be_read_are_not_adopted(spec: Any) -> None:
    for kind in ("SecurityPolicy", "BackendTrafficPolicy", "ClientTrafficPolicy"):
        raw = document(kind, "jwt", {"providers": []})
        raw["spec"] = {**spec, "jwt": {}, "tls": {}} if spec is not None else None
        assert adopt_document(raw) is None
        assert not decode(raw).objects


@pytest.mark.parametrize(
    ("kind", "spec", "paths"),
    [
        ("ClientTrafficPolicy", {"a.b": 1}, ["spec[a.b]"]),
        ("ClientTrafficPolicy", {"tls.minVersion": "1.3"}, ["spec[tls.minVersion]"]),
        ("ClientTrafficPolicy", {1: {2: 3}}, ["spec[1][2]"]),
        (
            "ClientTrafficPolicy",
            {"tls": {"client.Validation": {"a": 1}}},
            ["spec.tls[client.Validation].a"],
        ),
        ("ClientTrafficPolicy", {"newAuth": {}}, ["spec.newAuth"]),
        ("ClientTrafficPolicy", {"http3": {}}, ["spec.http3"]),
        ("ClientTrafficPolicy", {"tls": {}, "http1": {"http10": {}}, "timeout": {"http": {}}}, []),
        (
            "ClientTrafficPolicy",
            {"tls": {"clientValidation": {**VALIDATION, "mode": ["a"]}}},
            ["spec.tls.clientValidation.mode"],
        ),
        (
            "ClientTrafficPolicy",
            {"tls": {"clientValidation": 7}},
            ["spec.tls.clientValidation.caCertificateRefs", "spec.tls.clientValidation"],
        ),
        (
            "ClientTrafficPolicy",
            {"tls": {"clientValidation": {**VALIDATION, "allowExpiredCertificate": False}}},
            [],
        ),
        ("ClientTrafficPolicy", {"enableProxyProtocol": "true"}, ["spec.enableProxyProtocol"]),
        ("ClientTrafficPolicy", {"proxyProtocol": "x"}, ["spec.proxyProtocol"]),
        (
            "ClientTrafficPolicy",
            {"proxyProtocol": {"optional": 1}},
            ["spec.proxyProtocol.optional"],
        ),
        ("EnvoyProxy", [1], ["spec"]),
        ("EnvoyProxy", {"provider": {"kubernetes": {"envoyDeployment": {}}}}, []),
        ("Backend", [1], ["spec"]),
        ("HTTPRouteFilter", [1], ["spec"]),
        ("SecurityPolicy", {"cors": {"maxAge": [1]}}, ["spec.cors.maxAge"]),
        (
            "SecurityPolicy",
            {"jwt": {"providers": [{"remoteJWKS": {"failedRefetchDuration": "1s"}}]}},
            ["spec.jwt.providers[0].remoteJWKS.failedRefetchDuration"],
        ),
        ("BackendTrafficPolicy", {"retry": {"retryOn": {}, "perRetry": {"backOff": {}}}}, []),
    ],
)
def test_fields_that_are_named(kind: str, spec: Any, paths: list[str]) -> None:
    raw = document(kind, "a", 7)
    targets = {} if kind in ("EnvoyProxy", "Backend") else {"targetRefs": [GATEWAY]}
    raw["spec"] = {**targets, **spec} if isinstance(spec, dict) else spec
    adopted = adopt_document(raw)
    assert adopted is not None
    assert [render_path(one.path) for one in adopted.notes] == paths


@pytest.mark.parametrize("path", CLIENT_FIELDS)
@pytest.mark.parametrize(
    "value", [[], {}, [7], ["a", "Chain"], {"a": {"b": [None]}}, {"a.b": 1}, True, 1.5]
)
def test_values_of_clients_never_raise(path: str, value: Any) -> None:
    decode(document("ClientTrafficPolicy", path, value))


@pytest.mark.parametrize("value", [7, "x", [], {}, [7], {"a": {"b": [None]}}, None, True])
def test_values_of_no_sense_never_raise(value: Any) -> None:
    for kind, names in {
        "SecurityPolicy": ("cors", "mergeType", "jwt"),
        "BackendTrafficPolicy": ("rateLimit", "retry", "httpUpgrade", "responseOverride"),
        "ClientTrafficPolicy": ("tls", "proxyProtocol", "http1", "clientIPDetection", "headers"),
        "EnvoyProxy": ("provider", "shutdown"),
        "Backend": ("tls", "appProtocols", "endpoints"),
        "HTTPRouteFilter": ("urlRewrite", "directResponse"),
    }.items():
        for name in names:
            decode(document(kind, name, value))
    for name in ("global", "local"):
        for limits in (
            {name: value},
            {name: {"rules": value}},
            {name: {"rules": [{"limit": value}]}},
        ):
            decode(document("BackendTrafficPolicy", "rateLimit", limits))
