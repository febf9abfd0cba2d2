"""A cluster made of documents, for `--live`: objects without files, proxies that say what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.cli import diff, explain
from edgefast.cli.live import LiveError, Objects, Proxy, Where
from edgefast.collections.sorted_map import EMPTY
from edgefast.explain import serve_translation
from edgefast.providers.files import FileSource
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import settings_from
from tests.support.manifest import manifest

AGE = "2026-01-01T00:00:00Z"


def meta(name: str, namespace: str = "", generation: int = 1, **more: Any) -> dict[str, Any]:
    made = {"name": name, "generation": generation, "uid": name, "creationTimestamp": AGE, **more}
    return made | ({"namespace": namespace} if namespace else {})


def gateway(namespace: str, name: str, hostname: str = "", port: int = 80) -> dict[str, Any]:
    listener = {"name": "http", "protocol": "HTTP", "port": port}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": meta(name, namespace),
        "spec": {
            "gatewayClassName": "edge",
            "listeners": [listener | ({"hostname": hostname} if hostname else {})],
        },
    }


def route(
    namespace: str, name: str, parent: str, host: str, service: str = "web", path: str = "/"
) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": meta(name, namespace, generation=3),
        "spec": {
            "parentRefs": [{"name": parent}],
            "hostnames": [host],
            "rules": [
                {
                    "matches": [{"path": {"value": path}}],
                    "backendRefs": [{"name": service, "port": 80}],
                }
            ],
        },
    }


def service(namespace: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": {"ports": ports, "selector": {"app": "x"}, **spec},
    }


def endpoints(namespace: str, name: str = "web") -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": name}
    return manifest(
        f"EndpointSlice {namespace}/{name}-1",
        labels=labels,
        addressType="IPv4",
        ports=[{"name": "http", "port": 8080}],
        endpoints=[{"addresses": ["10.0.0.1"]}],
    )


CLASS = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "GatewayClass",
    "metadata": meta("edge"),
    "spec": {"controllerName": "gateway.edge.io/gatewayclass-controller"},
}
BASE = [
    CLASS,
    gateway("shop", "front"),
    gateway("shop", "back", "*.inside.test"),
    gateway("blog", "front"),
    route("shop", "web", "front", "www.shop.test"),
    route("shop", "in", "back", "a.inside.test"),
    route("blog", "web", "front", "www.blog.test"),
    *(one for namespace in ("shop", "blog") for one in (service(namespace), endpoints(namespace))),
]


class FakeCluster:
    """A cluster of documents; `proxies` is what a fleet's proxies say."""

    def __init__(self, folder: Path, documents: list[dict[str, Any]]) -> None:
        path = folder / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        reading = FileSource([path]).read()
        assert not [one for one in reading.problems if one.severity == "error"]
        # Objects of an API server have no file.
        snapshot = msgspec.structs.replace(reading.snapshot, loaded=EMPTY)
        self.objects = Objects(
            snapshot=snapshot,
            settings=settings_from(standalone=False),
            server="https://cluster.test",
            config="ConfigMap a/b",
            namespace="shop",
            addresses={("shop", "front"): ("192.0.2.10",), ("blog", "front"): ("2001:db8::1",)},
        )
        self.proxies: tuple[Proxy, ...] | LiveError = ()
        self.completed: list[Snapshot] = []
        self.opened = self.closed = 0

    @property
    def version(self) -> str:
        """The table of shop/front."""
        made = translate(self.objects.snapshot, self.objects.settings)
        (fleet,) = [one for one in made.infra if "shop/front" in one.gateways]
        return serve_translation(made, fleet.name).shards.version

    def read_objects(self) -> Objects:
        return self.objects

    def complete(self, objects: Objects, snapshot: Snapshot) -> Objects:
        self.completed.append(snapshot)
        return msgspec.structs.replace(objects, snapshot=snapshot)

    def ask_proxies(self, fleet: ir.Infra) -> tuple[Proxy, ...]:
        if isinstance(self.proxies, LiveError):
            raise self.proxies
        return self.proxies

    def watch(self, namespace: str | None, *, everywhere: bool) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    made = FakeCluster(tmp_path, BASE)

    def provide(where: Where) -> FakeCluster:
        made.opened += 1
        return made

    for module in (explain, diff):
        monkeypatch.setattr(module, "open_cluster", provide)
    yield made
    assert made.closed == made.opened
