"""Mistakes: what a case of an invalid object is, and what there must be for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster.installed import EDGE, Manifest, gateway, listener
from cluster.world.world import World


@dataclass(frozen=True)
class Case:
    """One mistake of an HTTPRoute, the last of `wrong`."""

    name: str
    wrong: tuple[Manifest, ...]
    right: tuple[Manifest, ...]
    type: str
    status: str
    reason: str
    host: str
    answers: int = 0  # while it is wrong; 0 is not asked


@dataclass(frozen=True)
class Ground:
    """What there is already: all in `namespace` but `other`, a namespace with a Service `echo`."""

    namespace: str
    other: str
    gateway: str  # takes routes of its namespace on listener "http", port 80; `closed` takes none
    merged: str  # a merged class
    controller: str
    certificate: Mapping[str, str]  # ca.crt: a sound authority


def certificate_of(world: World) -> dict[str, str]:
    """Return a sound authority: that of the API server does."""
    return {"ca.crt": (world.plane.site.pki / "ca.crt").read_text()}


def ground_gateways(ground: Ground) -> list[Manifest]:
    """Return the Gateways that cases refer to, in the merged class."""
    closed = {**listener("closed", 8081), "allowedRoutes": {"kinds": [{"kind": "TLSRoute"}]}}
    return [
        gateway(
            ground.namespace,
            ground.gateway,
            ground.merged,
            listener(),
            listener("narrow", 8082, "narrow.example"),
            closed,
        ),
        gateway(ground.other, "eg", ground.merged, listener(port=8083)),
    ]


def ground_objects(ground: Ground) -> list[Manifest]:
    """Return what the cases refer to: Services of all kinds, Backends and ConfigMaps, sound and not."""
    meta = {"namespace": ground.namespace}
    endpoint = {"fqdn": {"hostname": "origin.example", "port": 443}}

    def service(name: str, **spec: Any) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {**meta, "name": name},
            "spec": spec,
        }

    def backend(name: str, **tls: Any) -> Manifest:
        spec = {"endpoints": [endpoint], **({"tls": tls} if tls else {})}
        return {
            "apiVersion": EDGE,
            "kind": "Backend",
            "metadata": {**meta, "name": name},
            "spec": spec,
        }

    def authority(kind: str, name: str) -> Manifest:
        return {"caCertificateRefs": [{"group": "", "kind": kind, "name": name}]}

    pair, text = ground.certificate, {"apiVersion": "v1", "metadata": meta}
    return [
        service("outside", type="ExternalName", externalName="example.com"),
        service("datagrams", ports=[{"port": 53, "protocol": "UDP"}]),
        service("speaks-grpc", ports=[{"port": 80, "appProtocol": "grpc"}]),
        service("speaks-tls", ports=[{"port": 443, "appProtocol": "https"}]),
        backend("plain"),
        backend("no-authority", **authority("ConfigMap", "missing")),
        backend("authority-kind", **authority("Service", "echo")),
        backend("authority-broken", **authority("ConfigMap", "broken")),
        backend("authority-empty", **authority("ConfigMap", "empty")),
        backend(
            "no-certificate",
            **authority("ConfigMap", "sound"),
            clientCertificateRef={"group": "", "kind": "Secret", "name": "missing"},
        ),
        *(
            {**text, "kind": "ConfigMap", "metadata": {**meta, "name": name}, "data": data}
            for name, data in (
                ("sound", {"ca.crt": pair["ca.crt"]}),
                ("broken", {"ca.crt": "not PEM"}),
                ("empty", {"other": "x"}),
            )
        ),
    ]
