"""Cases of the v1.7.0 suite for GRPCRoute, by name, with real calls through a controller's proxies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import grpc
import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.controller_parts import own_address
from cluster.newer import attach, bring_up, grow_older
from cluster.world.apiserver import ApiServer
from wire.grpc.backend import CEILING, PLAIN, GrpcBackend
from wire.harness.certificates import Authority

HOST, WILD = "abc.example.com", "*.example.com"
LISTENERS = {"any": "", "exact": HOST, "wild": WILD}
BACKENDS = ("v1", "v2", "v3")
_Metadata = tuple[tuple[str, str], ...]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def bench(newest: ApiServer, authority: Authority) -> Iterator[Bench]:
    """Backends in plain text, one with a certificate of HOST, and one with that of another authority."""
    pairs = {
        **dict.fromkeys(BACKENDS),
        "inside": authority.issue([HOST]),
        "stranger": Authority("another").issue([HOST]),
    }
    with ExitStack() as stack, Bench(newest) as made:
        made.add_class()
        made.ports = bring_up(made, "gw", LISTENERS)
        for name, pair in pairs.items():
            backend = stack.enter_context(GrpcBackend(name, pair, own_address()))
            made.add_backend(name, backend.port)
            if name == "inside":
                made.add_backend("mismatch", backend.port)
        yield made


def to(backend: str, service: str = "", **more: Any) -> dict[str, Any]:
    """Return a rule for a service, or for all of them."""
    rule = {"backendRefs": [{"name": backend, "port": 80}], **more}
    return {**rule, "matches": [{"method": {"service": service}}]} if service else rule


def call(
    port: int, service: str = "test.One", host: str = "a.test", metadata: _Metadata = ()
) -> tuple[str, list[tuple[str, str]]]:
    """Make a call; returns who answered and the metadata that it saw, or the status."""
    options = [*PLAIN, ("grpc.default_authority", host)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        asked: Any = channel.unary_unary(f"/{service}/Echo")
        try:
            _, done = asked.with_call(b"", metadata=metadata, timeout=CEILING)
        except grpc.RpcError as error:
            return str(error.code().name), []
        seen = [(str(key), str(value)) for key, value in done.initial_metadata()]
        return dict(seen)["backend"], [one for one in seen if one[0].startswith("my-")]


def expect(want: str, port: int, service: str = "test.One", host: str = "a.test") -> None:
    """Wait until a backend answers calls, or they have this status."""
    wait_for(f"{want} answers {host} at {port}", lambda: call(port, service, host)[0] == want)


def is_accepted(bench: Bench, name: str, gateway: str) -> bool:
    found = bench.conditions("GRPCRoute", f"multiple-{name}", gateway).get("Accepted")
    return found is not None and found["status"] == "True"


def test_multiple_gateways(bench: Bench) -> None:
    """GRPCRouteMultipleGateways: a route of two Gateways is at both, each one's own nowhere else."""
    other = bring_up(bench, "other", {"any": ""})["any"]
    here = bench.ports["any"]
    both = [{"name": one, "sectionName": "any"} for one in ("gw", "other")]
    for name, parents, rule in (
        ("shared", both, to("v1", "test.One")),
        ("own", both[:1], to("v2", "test.Two")),
        ("others", both[1:], to("v3", "test.Two")),
    ):
        bench.apply("GRPCRoute", f"multiple-{name}", {"parentRefs": parents, "rules": [rule]})
    for port, own in ((here, "v2"), (other, "v3")):
        expect("v1", port)
        expect(own, port, "test.Two")
    for name, gateway in (
        ("shared", "gw"),
        ("shared", "other"),
        ("own", "gw"),
        ("others", "other"),
    ):
        wait_for(f"{name} is accepted at {gateway}", partial(is_accepted, bench, name, gateway))


def test_request_header_modifier(bench: Bench) -> None:
    """GRPCRouteRequestHeaderModifier: set, add, remove, several at once, whatever the case of their names."""

    def modify(service: str, **what: Any) -> dict[str, Any]:
        one = {"type": "RequestHeaderModifier", "requestHeaderModifier": what}
        return to("v1", service, filters=[one])

    def value(name: str, text: str) -> dict[str, str]:
        return {"name": name, "value": text}

    rules = [
        modify("test.Set", set=[value("My-Set", "set-overwrites-values")]),
        modify("test.Add", add=[value("My-Add", "add-appends-values")]),
        modify("test.Remove", remove=["My-Remove"]),
        modify(
            "test.Several",
            set=[value("My-Set-1", "header-set-1"), value("My-Set-2", "header-set-2")],
            add=[value("My-Add-1", "header-add-1"), value("My-Add-2", "header-add-2")],
            remove=["My-Remove-1", "My-Remove-2"],
        ),
    ]
    bench.apply("GRPCRoute", "modified", attach("gw", "any", *rules))
    port = bench.ports["any"]
    expect("v1", port, "test.Set")
    other = ("my-other", "stays")

    def seen(service: str, *metadata: tuple[str, str]) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for name, text in call(port, service, metadata=(other, *metadata))[1]:
            found.setdefault(name, []).extend(text.split(","))
        return {name: ",".join(texts) for name, texts in found.items()}

    kept = {"my-other": "stays"}
    assert seen("test.Set") == {**kept, "my-set": "set-overwrites-values"}
    assert seen("test.Set", ("my-set", "old")) == {**kept, "my-set": "set-overwrites-values"}
    assert seen("test.Add") == {**kept, "my-add": "add-appends-values"}
    assert seen("test.Add", ("my-add", "old")) == {**kept, "my-add": "old,add-appends-values"}
    assert seen("test.Remove", ("my-remove", "old")) == kept
    came = [(f"my-{what}-{at}", "old") for what in ("set", "add", "remove") for at in (1, 2)]
    assert seen("test.Several", *came) == {
        **kept,
        "my-set-1": "header-set-1",
        "my-set-2": "header-set-2",
        "my-add-1": "old,header-add-1",
        "my-add-2": "old,header-add-2",
    }


def test_multiple_routes_attachment_same_hostname_intersection(bench: Bench) -> None:
    """GRPCRouteMultipleRoutesAttachmentSameHostnameIntersection: the names that routes have decide, not their age."""
    older = {"exact": WILD, "wild": "*.com"}
    newer = {"exact": HOST, "wild": WILD}
    made = []
    for listener, hostname in older.items():
        spec = attach("gw", listener, to("v1"), hostname=hostname)
        made.append(bench.apply("GRPCRoute", f"older-{listener}", spec))
    grow_older(*made)
    for listener, hostname in newer.items():
        spec = attach("gw", listener, to("v2"), hostname=hostname)
        bench.apply("GRPCRoute", f"newer-{listener}", spec)
        expect("v2", bench.ports[listener], host=HOST)
    for listener in older:
        for name in (f"older-{listener}", f"newer-{listener}"):
            bench.expect_condition("GRPCRoute", name, "Accepted", "True")


def test_backend_tls_policy(bench: Bench, authority: Authority) -> None:
    """BackendTLSPolicyGRPCRoute: calls over TLS; another name or another authority is refused, and the policies are accepted."""
    bench.apply("ConfigMap", "ca", None, "v1", data={"ca.crt": authority.pem.decode()})
    refs = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    rules = []
    for name, hostname in (("inside", HOST), ("mismatch", "other.test"), ("stranger", HOST)):
        spec = {
            "targetRefs": [{"group": "", "kind": "Service", "name": name}],
            "validation": {"hostname": hostname, "caCertificateRefs": refs},
        }
        bench.apply("BackendTLSPolicy", name, spec)
        rules.append(to(name, f"tls.{name}"))
    bench.apply("GRPCRoute", "inside", attach("gw", "any", *rules))
    port = bench.ports["any"]
    expect("inside", port, "tls.inside")
    expect("UNAVAILABLE", port, "tls.mismatch")
    expect("UNAVAILABLE", port, "tls.stranger")
    for name in ("inside", "mismatch", "stranger"):
        bench.expect_condition("BackendTLSPolicy", name, "Accepted", "True")
        bench.expect_condition("BackendTLSPolicy", name, "ResolvedRefs", "True")
