"""Gateways, listeners, classes and TLS policies with a mistake, one for each field and mistake that an API server lets through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.installed import GATEWAY, Manifest, gateway, listener, route
from cluster.invalid import Case, Ground
from tests.support.manifest import manifest


def gateway_cases(ground: Ground) -> Iterator[Case]:
    """Yield every case."""
    yield from _listeners(ground)
    yield from _gateways(ground)
    yield from _classes(ground)
    yield from _policies(ground)


def _gateway(
    ground: Ground, name: str, type_: str, reason: str, *listeners: Manifest, **spec: Any
) -> Case:
    wrong = gateway(ground.namespace, name, ground.merged, *listeners or [_mine(name)])
    wrong["spec"].update(spec)
    right = gateway(ground.namespace, name, ground.merged, _mine(name))
    return Case(name, (wrong,), (right,), "gateways", type_, "False", reason)


def _mine(name: str, **more: Any) -> Manifest:
    return {**listener(hostname=f"{name}.mine.example"), **more}


def _secure(name: str, reference: Manifest, **tls: Any) -> Manifest:
    made = {"certificateRefs": [reference], **tls}
    return _mine(name, port=8443, protocol="HTTPS", tls=made)


def _listeners(ground: Ground) -> Iterator[Case]:
    """Listeners: the Gateway's other ones, here none, go on."""
    for protocol in ("SCTP", "HTPS", "example.com/own"):
        name = f"protocol-{protocol.lower().replace('/', '-').replace('.', '-')}"
        made = {"name": "http", "port": 9000, "protocol": protocol}
        yield _gateway(ground, name, "Accepted", "UnsupportedProtocol", made)
    ended = {**_mine("x", port=9000, protocol="TLS"), "tls": {"certificateRefs": [{"name": "no"}]}}
    yield _gateway(ground, "tls-ended", "ResolvedRefs", "InvalidCertificateRef", ended)
    references: dict[str, tuple[str, Manifest]] = {
        "missing": ("InvalidCertificateRef", {"name": "missing"}),
        "kind": ("InvalidCertificateRef", {"kind": "ConfigMap", "name": "sound"}),
        "group": ("InvalidCertificateRef", {"group": "example.com", "name": "sound"}),
        "foreign": ("RefNotPermitted", {"name": "sound", "namespace": ground.other}),
        "opaque": ("InvalidCertificateRef", {"name": "opaque"}),
        "broken-crt": ("InvalidCertificateRef", {"name": "broken-crt"}),
        "broken-key": ("InvalidCertificateRef", {"name": "broken-key"}),
        "other-key": ("InvalidCertificateRef", {"name": "other-key"}),
        "swapped": ("InvalidCertificateRef", {"name": "swapped"}),
    }
    for what, (reason, reference) in references.items():
        name = f"certificate-{what}"
        yield _gateway(ground, name, "ResolvedRefs", reason, _secure(name, reference))
    name = "certificate-partly"
    both = _secure(name, {"name": "sound"})
    both["tls"]["certificateRefs"].append({"name": "missing"})
    yield _gateway(ground, name, "ResolvedRefs", "PartiallyInvalidCertificateRef", both)
    options = {"gateway.edge.io/tls-min-version": "1.1"}
    name = "tls-version"
    yield _gateway(
        ground,
        name,
        "Accepted",
        "UnsupportedValue",
        _secure(name, {"name": "sound"}, options=options),
    )
    for what, kind in (
        ("unknown", {"kind": "HTTPRoutes"}),
        ("grpc", {"kind": "TLSRoute"}),
        ("group", {"group": "example.com", "kind": "HTTPRoute"}),
    ):
        name = f"kinds-{what}"
        made = _mine(name, allowedRoutes={"kinds": [kind]})
        yield _gateway(ground, name, "ResolvedRefs", "InvalidRouteKinds", made)
    yield _gateway(
        ground, "hostname-address", "Accepted", "UnsupportedValue", listener(hostname="10.1.2.3")
    )
    yield _gateway(
        ground, "port-taken", "Accepted", "PortUnavailable", _mine("port-taken", port=10080)
    )
    name = "conflict-hostname"
    same = _mine(name, hostname="held.mine.example")
    yield _gateway(ground, name, "Accepted", "HostnameConflict", same)
    name = "conflict-protocol"
    secure = {**_secure(name, {"name": "sound"}), "port": 80}
    yield _gateway(ground, name, "Accepted", "ProtocolConflict", secure)


def _gateways(ground: Ground) -> Iterator[Case]:
    """Mistakes of a Gateway as a whole."""
    yield _gateway(
        ground,
        "address-type",
        "Accepted",
        "UnsupportedAddress",
        addresses=[{"type": "example.com/vip", "value": "x"}],
    )
    yield _gateway(
        ground,
        "address-unusable",
        "Programmed",
        "AddressNotUsable",
        addresses=[{"type": "IPAddress", "value": "203.0.113.9"}],
    )
    for what, reference in (
        ("missing", {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "missing"}),
        ("kind", {"group": "gateway.edge.io", "kind": "Backend", "name": "plain"}),
        ("group", {"group": "example.com", "kind": "EdgeProxy", "name": "x"}),
    ):
        yield _gateway(
            ground,
            f"parameters-{what}",
            "Accepted",
            "InvalidParameters",
            infrastructure={"parametersRef": reference},
        )
    for what, reason, reference in (
        ("missing", "InvalidClientCertificateRef", {"name": "missing"}),
        ("kind", "InvalidClientCertificateRef", {"kind": "ConfigMap", "name": "sound"}),
        ("broken", "InvalidClientCertificateRef", {"name": "broken-key"}),
        ("foreign", "RefNotPermitted", {"name": "sound", "namespace": ground.other}),
    ):
        backend = {"clientCertificateRef": reference}
        yield _gateway(
            ground, f"client-certificate-{what}", "ResolvedRefs", reason, tls={"backend": backend}
        )
    for what, reason, reference in (
        ("missing", "InvalidCACertificateRef", {"kind": "ConfigMap", "name": "missing"}),
        ("kind", "InvalidCACertificateKind", {"kind": "Service", "name": "echo"}),
        ("broken", "InvalidCACertificateRef", {"kind": "ConfigMap", "name": "broken"}),
        (
            "foreign",
            "RefNotPermitted",
            {"kind": "ConfigMap", "name": "x", "namespace": ground.other},
        ),
    ):
        name = f"authority-{what}"
        frontend = {"default": {"validation": {"caCertificateRefs": [{"group": "", **reference}]}}}
        # A port of its own: what one port asks of clients must be the same for all Gateways.
        number = 8450 + ("missing", "kind", "broken", "foreign").index(what)
        secure = {**_secure(name, {"name": "sound"}), "port": number}
        yield _gateway(ground, name, "ResolvedRefs", reason, secure, tls={"frontend": frontend})


def _classes(ground: Ground) -> Iterator[Case]:
    """EdgeProxies that a class names and that are none."""
    references: dict[str, Manifest] = {
        "missing": {"kind": "EdgeProxy", "name": "missing", "namespace": ground.namespace},
        "kind": {"kind": "Backend", "name": "plain", "namespace": ground.namespace},
        "group": {"group": "example.com", "kind": "EdgeProxy", "name": "x", "namespace": "default"},
        "namespace": {"kind": "EdgeProxy", "name": "x"},
    }
    for what, reference in references.items():
        name = f"{ground.namespace}-{what}"
        spec = {"controllerName": ground.controller}
        right = manifest(f"GatewayClass {name}", spec)
        wrong = {
            **right,
            "spec": {**spec, "parametersRef": {"group": "gateway.edge.io", **reference}},
        }
        yield Case(
            name, (wrong,), (right,), "gatewayclasses", "Accepted", "False", "InvalidParameters"
        )


# --- policies -----------------------------------------------------------------------------------


def _policies(ground: Ground) -> Iterator[Case]:
    """TLS towards a Service that cannot be had: never plain HTTP instead, but 500."""
    meta = {"namespace": ground.namespace}
    authority = {"group": "", "kind": "ConfigMap", "name": "sound"}
    sound = {"hostname": "origin.example", "caCertificateRefs": [authority]}
    validations: dict[str, tuple[str, Manifest]] = {
        "missing": ("NoValidCACertificate", {"caCertificateRefs": [{**authority, "name": "none"}]}),
        "kind": ("NoValidCACertificate", {"caCertificateRefs": [{**authority, "kind": "Bundle"}]}),
        "broken": (
            "NoValidCACertificate",
            {"caCertificateRefs": [{**authority, "name": "broken"}]},
        ),
        "empty": ("NoValidCACertificate", {"caCertificateRefs": [{**authority, "name": "empty"}]}),
        "address": ("Invalid", {"hostname": "10.1.2.3"}),
    }
    for what, (reason, wrong) in validations.items():
        name = f"policy-{what}"
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "name": name},
            "spec": {"ports": [{"port": 443}]},
        }
        host = f"{name}.bad.example"
        used = route(ground.namespace, name, ground.gateway, [host])
        used["spec"]["rules"][0]["backendRefs"] = [{"name": name, "port": 443}]
        policies = [
            {
                "apiVersion": GATEWAY,
                "kind": "BackendTLSPolicy",
                "metadata": {**meta, "name": name},
                "spec": {
                    "targetRefs": [{"group": "", "kind": "Service", "name": name}],
                    "validation": validation,
                },
            }
            for validation in ({**sound, **wrong}, sound)
        ]
        yield Case(
            name,
            (service, used, policies[0]),
            (policies[1],),
            "backendtlspolicies",
            "Accepted",
            "False",
            reason,
            host,
            500,
        )
