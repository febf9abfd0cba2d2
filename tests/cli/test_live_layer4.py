"""`explain --live` and `diff --live` for connections and datagrams: which Gateway is meant, what changes, by the objects of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from cli.calling import call
from cli.fake_cluster import AGE, BASE, FakeCluster, cluster, gateway, meta
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

__all__ = ["cluster"]


def stream_gateway(name: str, *listeners: dict[str, Any]) -> dict[str, Any]:
    made = gateway("shop", name)
    made["spec"]["listeners"] = list(listeners)
    return made


def stream_route(kind: str, name: str, parent: str, backend: str, *hosts: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "parentRefs": [{"name": parent}],
        "rules": [{"backendRefs": [{"name": backend, "port": 53 if kind == "UDPRoute" else 5432}]}],
    }
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": meta(name, "shop", generation=2),
        "spec": spec | ({"hostnames": list(hosts)} if hosts else {}),
    }


def backend(name: str, protocol: str = "TCP", port: int = 5432) -> list[dict[str, Any]]:
    ports = [{"name": "p", "port": port, "protocol": protocol}]
    labels = {"kubernetes.io/service-name": name}
    return [
        manifest(f"Service shop/{name}", {"ports": ports, "selector": {"app": "x"}}),
        manifest(
            f"EndpointSlice shop/{name}-1",
            labels=labels,
            addressType="IPv4",
            ports=ports,
            endpoints=[{"addresses": ["10.0.0.5"]}],
        ),
    ]


TLS = {"name": "tls", "protocol": "TLS", "port": 443, "hostname": "*.shop.test"}
LAYER4 = [
    stream_gateway(
        "data",
        {"name": "tcp", "protocol": "TCP", "port": 5353},
        TLS | {"tls": {"mode": "Passthrough"}},
    ),
    stream_gateway("names", {"name": "udp", "protocol": "UDP", "port": 5353}),
    stream_route("TCPRoute", "db", "data", "db"),
    stream_route("TLSRoute", "safe", "data", "db", "db.shop.test"),
    stream_route("UDPRoute", "dns", "names", "dns"),
    *backend("db"),
    *backend("spare"),
    *backend("dns", "UDP", 53),
]


@pytest.fixture
def layer4(cluster: FakeCluster, tmp_path: Path) -> FakeCluster:
    """Gateways of HTTP, of TCP and TLS, and of UDP, in fleets of their own."""
    (tmp_path / "layer4").mkdir()
    cluster.objects = FakeCluster(tmp_path / "layer4", [*BASE, *LAYER4]).objects
    return cluster


def ask(*words: str) -> tuple[int, Any]:
    done = call("explain", "--live", "-o", "json", *words)
    assert done.out, done.err
    return done.status, orjson.loads(done.out)


@pytest.mark.parametrize(
    ("url", "listener", "route"),
    [
        ("tls://db.shop.test", "shop/data/tls", "tlsroute/shop/safe"),
        ("tcp://data.test:5353", "shop/data/tcp", "tcproute/shop/db"),
        ("udp://names.test:5353", "shop/names/udp", "udproute/shop/dns"),
    ],
)
def test_the_gateway_whose_protocol_has_the_port(
    layer4: FakeCluster, url: str, listener: str, route: str
) -> None:
    status, told = ask(url)
    assert (status, told["listener"]["name"]) == (0, listener)
    assert told["rule"]["route"] == route
    assert told["rule"]["place"]["source"] == "generation 2"
    assert [one["check"] for one in told["answers"]] == ["forwarded"]
    (to,) = told["backends"]
    assert [one["address"].partition(":")[0] for one in to["endpoints"]] == ["10.0.0.5"]
    assert "live: objects and endpoints of https://cluster.test" in "\n".join(told["notes"])


def test_a_name_that_nobody_has_and_a_listener_that_is_not_served(layer4: FakeCluster) -> None:
    status, told = ask("--gateway", "shop/data", "tls://mail.shop.test")
    assert (status, told["answers"][0]["check"]) == (1, "rule")
    status, told = ask("--gateway", "shop/names", "tcp://names.test:5353")
    assert (status, told["answers"][0]["check"]) == (1, "port")


def change(tmp_path: Path, *objects: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    path = tmp_path / "change.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    done = call("diff", "--live", "-o", "json", str(path))
    assert done.out, done.err
    return done.status, orjson.loads(done.out)["changes"]


def test_what_a_file_changes_for_connections(layer4: FakeCluster, tmp_path: Path) -> None:
    same = stream_route("TCPRoute", "db", "data", "db")
    assert change(tmp_path, same) == (0, [])
    status, changes = change(tmp_path, stream_route("TCPRoute", "db", "data", "spare"))
    assert status == 1
    assert [one["kind"] for one in changes] == ["answer"], changes
    status, changes = change(tmp_path, stream_route("UDPRoute", "dns", "names", "gone"))
    assert status == 3, changes  # datagrams that were passed on are refused


def test_a_younger_route_of_the_place_changes_nothing_but_is_told(
    layer4: FakeCluster, tmp_path: Path
) -> None:
    late = stream_route("TCPRoute", "late", "data", "spare")
    late["metadata"]["creationTimestamp"] = AGE.replace("2026", "2027")
    status, changes = change(tmp_path, late)
    assert status == 1
    assert any(one["kind"] == "shadowed" for one in changes), changes
    assert not any(one["kind"] == "answer" for one in changes), changes
