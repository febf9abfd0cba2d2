"""Overlap on a port with TLS and HTTPS: what fits beside others is carried on, and a name that does not is nobody's meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from controller.fleets.migrated_listener import find_migrated_listener, reserve_listener
from edgefast import ir
from edgefast.api.kinds import Object
from tests.controller.fleets.test_migration import (
    Cluster,
    fleet_of,
    gateway,
    infra_of,
    listeners_of,
)
from tests.translate import world
from tests.translate.golden import BASES

pytestmark = pytest.mark.pure

Listener = dict[str, Any]


def certificate() -> Object:
    found = yaml.safe_load_all((BASES / "certificates.yaml").read_text())
    raw = next(one for one in found if one and one.get("type") == "kubernetes.io/tls")
    return world.make({**raw, "metadata": {"name": "cert", "namespace": "default"}})


def https(name: str, host: str, **tls: Any) -> Listener:
    return {
        "name": name,
        "port": 443,
        "protocol": "HTTPS",
        "hostname": host,
        "tls": {"certificateRefs": [{"name": "cert"}], **tls},
    }


def passed(name: str, host: str) -> Listener:
    tls = {"mode": "Passthrough"}
    return {"name": name, "port": 443, "protocol": "TLS", "hostname": host, "tls": tls}


def split(
    stay: list[Listener], leave: list[Listener], then: list[Listener] | None = None
) -> Cluster:
    """A merged fleet that one of two Gateways has left, with other listeners if so."""
    cluster = Cluster(
        certificate(), gateway("leaves", "merged", *leave), gateway("keeps", "merged", *stay)
    )
    cluster.see(cluster.run(), "merged")
    cluster.apply(gateway("leaves", "edge", *(leave if then is None else then)))
    return cluster


def listener_of(cluster: Cluster, name: str) -> ir.Listener:
    fleet = fleet_of(cluster.run(), "merged")
    return next(one for one in fleet.listeners if one.name == f"default/leaves/{name}")


@pytest.mark.parametrize(
    ("stay", "leave"),
    [
        ([https("s", "*.example")], passed("l", "l.example")),
        ([https("s", "*.example"), passed("t", "t.example")], https("l", "l.example")),
        ([https("s", "*.example"), passed("t", "t.example")], passed("l", "l.example")),
        ([passed("t", "*.example")], https("l", "l.example")),
    ],
    ids=["TLS beside HTTPS", "HTTPS beside both", "TLS beside both", "HTTPS beside TLS"],
)
def test_tls_and_https_stand_beside_each_other(stay: list[Listener], leave: Listener) -> None:
    cluster = split(stay, [leave])
    kept = listener_of(cluster, "l")
    assert (kept.protocol, kept.hostname) == (leave["protocol"], "l.example")
    assert bool(kept.tls and kept.tls.certificates) == (leave["protocol"] == "HTTPS")
    assert cluster.overlap.waiting
    cluster.see(cluster.run(), "default-leaves")
    outcome = cluster.run_out()
    assert "default/leaves/l" not in listeners_of(outcome, "merged")


@pytest.mark.parametrize("stays", [https("s", "*.example"), passed("s", "*.example")])
def test_a_name_that_cannot_be_carried_on_goes_to_nobody(stays: Listener) -> None:
    """Its certificate is gone: a wildcard of somebody else must not answer for it."""
    gone = https("l", "l.example", certificateRefs=[{"name": "gone"}])
    cluster = split([stays], [https("l", "l.example")], [gone])
    held = listener_of(cluster, "l")
    assert held.protocol == stays["protocol"] and held.hostname == "l.example"
    assert not (held.tls and held.tls.certificates)
    fleet = fleet_of(cluster.run(), "merged")
    assert "default/leaves/l" not in {one.listener for one in fleet.virtual_hosts}
    # Until the next fleet is there, as all of it.
    cluster.see(cluster.run(), "default-leaves")
    if cluster.overlap:
        cluster.run()
        cluster.now = cluster.overlap.next_end()
        cluster.run()
    assert not cluster.overlap


def test_another_way_of_tls_is_held_and_not_served() -> None:
    """Who stays asks for TLS 1.3, or for clients' certificates: the port has one way."""
    strict = ir.ListenerTls(certificates=("b",), min_version="1.3", client_ca="ca")
    there = ir.Listener("s", 443, 10443, "HTTPS", "*.example", tls=strict)
    plain = ir.ListenerTls(certificates=("a",))
    guest = ir.Listener("l", 443, 10443, "HTTPS", "l.example", tls=plain)
    passing = ir.Listener("p", 443, 10443, "TLS", "p.example")
    assert find_migrated_listener(guest, [passing, there]) is None
    held = reserve_listener(guest, [there, passing])
    assert held is not None and held.name == "l" and held.hostname == "l.example"
    assert held.tls == ir.ListenerTls(certificates=(), min_version="1.3", client_ca="ca")
    # What is passed on has no part in it.
    assert find_migrated_listener(passing, [there]) == passing
    assert find_migrated_listener(guest, [passing]) == guest


def test_what_belongs_to_the_port_is_that_of_those_who_stay() -> None:
    limits = ir.StreamSettings(max_connections=7)
    there = ir.Listener("s", 443, 10443, "TLS", "s.example", stream=limits)
    guest = ir.Listener("l", 443, 10443, "TLS", "l.example")
    found = find_migrated_listener(guest, [there])
    assert found is not None and found.stream == limits and found.name == "l"


@pytest.mark.parametrize(
    ("guest", "other"),
    [
        (ir.Listener("l", 90, 10090, "TCP"), ir.Listener("s", 90, 10090, "TCP")),
        (ir.Listener("l", 90, 10090, "TCP"), ir.Listener("s", 90, 10090, "HTTP", "a.test")),
        (ir.Listener("l", 90, 10090, "HTTP", "a.test"), ir.Listener("s", 90, 10090, "TCP")),
        (ir.Listener("l", 90, 10090, "UDP"), ir.Listener("s", 90, 10090, "UDP")),
        (ir.Listener("l", 90, 10090, "HTTP", "a.test"), ir.Listener("s", 10090, 10090, "HTTP")),
        (ir.Listener("l", 90, 10090, "HTTP", "a.test"), ir.Listener("s", 90, 10090, "HTTP", "a.test")),
    ],
    ids=["TCP", "TCP beside HTTP", "HTTP beside TCP", "UDP", "container port", "hostname"],
)  # fmt: skip
def test_a_place_of_those_who_stay_is_neither_shared_nor_held(
    guest: ir.Listener, other: ir.Listener
) -> None:
    assert (
        find_migrated_listener(guest, [other]) is None and reserve_listener(guest, [other]) is None
    )


def test_transports_of_one_number_are_two_ports() -> None:
    there = ir.Listener("s", 90, 10090, "TCP")
    guest = ir.Listener("l", 90, 10090, "UDP")
    assert find_migrated_listener(guest, [there]) == guest


def test_the_port_keeps_its_name_whoever_comes_or_goes() -> None:
    """kube-proxy finds endpoints by the name of the port: another one is a moment without any."""
    cluster = Cluster(certificate(), gateway("keeps", "merged", https("s", "s.example")))

    def names() -> list[str]:
        return [one.name for one in infra_of(cluster.run(), "merged").ports]

    before = names()
    assert "https-443" in before
    cluster.apply(gateway("newer", "merged", passed("t", "t.example")))
    assert names() == before
    cluster.apply(gateway("keeps", "merged", passed("s", "s.example")))
    assert names() == before
