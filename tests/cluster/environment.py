"""Surroundings: what a manifest refers to and does not bring along, so that it can be judged on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wire.harness.certificates import Authority

_API = "gateway.networking.k8s.io/v1"
_EVERYWHERE = {"namespaces": {"from": "All"}}
_PROTOCOLS = {"TLSRoute": "TLS", "TCPRoute": "TCP", "UDPRoute": "UDP"}

_Document = dict[str, Any]


class Surroundings:
    """Makes what is missing; one authority for all."""

    def __init__(self) -> None:
        authority = Authority()
        pair = authority.issue(["*.example.com"])
        self._pair = {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}
        self._authority = {"ca.crt": authority.pem.decode()}

    def of(self, documents: list[_Document]) -> list[_Document]:
        """Return what these documents refer to and do not have."""
        found: dict[tuple[str, str, str], _Document] = {}
        for document in documents:
            for one in self._of_one(document):
                known = found.setdefault(_name(one), one)
                if known is not one and one["kind"] == "Service":
                    ports = {
                        port["port"]: port
                        for port in (*known["spec"]["ports"], *one["spec"]["ports"])
                    }
                    known["spec"]["ports"] = [*ports.values()]
        if "Gateway" not in {one["kind"] for one in (*documents, *found.values())}:
            one = _gateway({"name": "surroundings"}, "default", "HTTPRoute")
            found[_name(one)] = one
        here = {_name(one) for one in documents}
        return [one for name, one in found.items() if name not in here]

    def _of_one(self, document: _Document) -> Iterator[_Document]:
        namespace = document.get("metadata", {}).get("namespace", "default")
        spec = document.get("spec") or {}
        for parent in spec.get("parentRefs", ()):
            if parent.get("kind", "Gateway") == "Gateway":
                yield _gateway(parent, namespace, document["kind"])
        for ref in _references(spec, "backendRefs", "backendRef"):
            if ref.get("group", "") == "" and ref.get("kind", "Service") == "Service":
                yield _service(ref, namespace, document["kind"])
        for ref in _references(spec, "targetRefs"):
            if ref["kind"] == "Service":
                port = {"port": 443, "name": ref.get("sectionName", "https")}
                yield _object("v1", "Service", ref, namespace, spec={"ports": [port]})
        for ref in _references(spec, "certificateRefs", "clientCertificateRef"):
            yield _object(
                "v1", "Secret", ref, namespace, type="kubernetes.io/tls", stringData=self._pair
            )
        for ref in _references(spec, "caCertificateRefs"):
            yield _object("v1", "ConfigMap", ref, namespace, data=self._authority)


def _references(value: Any, *fields: str) -> Iterator[_Document]:
    """Give every reference in fields of these names, however deep."""
    if isinstance(value, list):
        for one in value:
            yield from _references(one, *fields)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name in fields:
                yield from one if isinstance(one, list) else (one,)
            yield from _references(one, *fields)


def _object(version: str, kind: str, ref: _Document, namespace: str, **content: Any) -> _Document:
    metadata = {"name": ref["name"], "namespace": ref.get("namespace", namespace)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def _service(ref: _Document, namespace: str, route: str) -> _Document:
    port = {"port": ref["port"], "protocol": "UDP" if route == "UDPRoute" else "TCP"}
    return _object("v1", "Service", ref, namespace, spec={"ports": [port]})


def _gateway(ref: _Document, namespace: str, route: str) -> _Document:
    listener = {
        "name": ref.get("sectionName", "only"),
        "port": ref.get("port", 80),
        "protocol": _PROTOCOLS.get(route, "HTTP"),
        "allowedRoutes": _EVERYWHERE,
    }
    if route == "TLSRoute":
        listener["tls"] = {"mode": "Passthrough"}
    spec = {"gatewayClassName": "example", "listeners": [listener]}
    return _object(_API, "Gateway", ref, namespace, spec=spec)


def _name(document: _Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", "default"), metadata["name"]
