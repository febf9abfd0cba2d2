"""Two Gateways on one port at different addresses: each has the port to itself, in statuses, in the IR and for `explain`."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.explain.diff import diff_translations
from edgefast.explain.explain import explain
from edgefast.explain.render import render_explanation
from edgefast.explain.request_spec import read_request_spec
from edgefast.explain.served_fleet import Served
from edgefast.translate import Settings, Translation, translate
from tests.translate.world import GATEWAY, gateway_class, make

pytestmark = pytest.mark.pure

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
ALL = (A, B, C)
#: Of a Gateway: its name and what it asks for.
Asked = tuple[str, tuple[str, ...]]


def _gateway(name: str, addresses: tuple[str, ...], **listener: Any) -> Object:
    spec = {
        "gatewayClassName": "edge",
        "addresses": [{"value": one} for one in addresses],
        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP", **listener}],
    }
    meta = {"name": name, "namespace": "default"}
    return make({"apiVersion": GATEWAY, "kind": "Gateway", "metadata": meta, "spec": spec})


def _route(name: str) -> Object:
    away = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{name}.example"}}
    spec = {"parentRefs": [{"name": name}], "rules": [{"filters": [away]}]}
    meta = {"name": name, "namespace": "default"}
    return make({"apiVersion": GATEWAY, "kind": "HTTPRoute", "metadata": meta, "spec": spec})


def _translate(*gateways: Object, bind: tuple[str, ...] = ALL) -> Translation:
    routes = [_route(one.metadata.name) for one in gateways]
    snapshot = Snapshot().replace([gateway_class(), *gateways, *routes])
    return translate(snapshot, Settings(standalone=True, addresses=bind))


def _served(*asked: Asked, bind: tuple[str, ...] = ALL) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each Gateway that is served."""
    found = _translate(*(_gateway(*one) for one in asked), bind=bind)
    return {
        one.name.split("/")[1]: one.addresses
        for fleet in found.ir.fleets
        for one in fleet.listeners
    }


@pytest.mark.parametrize(
    ("asked", "bind", "served"),
    [
        # Each its own, with --bind or on loopback.
        ((("a", (A,)), ("b", (B,))), ALL, {"a": (A,), "b": (B,)}),
        ((("a", ("127.0.0.1",)), ("b", ("127.0.0.2", "::1"))), (), {"a": ("127.0.0.1",), "b": ("127.0.0.2", "::1")}),
        # One text of an address or another.
        ((("a", ("::1",)), ("b", ("0:0:0:0:0:0:0:1",))), (), {"a": ("::1",)}),
        # They overlap, one way or another: the first has the hostname.
        ((("a", (A,)), ("b", (A,))), ALL, {"a": (A,)}),
        ((("a", (A,)), ("b", (A, B))), ALL, {"a": (A,)}),
        ((("a", (A,)), ("b", ())), ALL, {"a": (A,)}),
        ((("a", ()), ("b", (A,))), ALL, {"a": ()}),
        ((("a", ("127.0.0.1",)), ("b", ())), (), {"a": ("127.0.0.1",)}),
        # By a third one; which of two is at an address that nobody else has stays apart.
        ((("a", (A,)), ("b", (B,)), ("c", (A, B))), ALL, {"a": (A,)}),
        ((("a", (A,)), ("b", (B, C)), ("c", (C,))), ALL, {"a": (A,), "b": (B, C)}),
        # One without a usable address is not bound, and takes nothing from others.
        ((("b", ("192.0.2.1",)), ("a", (A,))), ALL, {"a": (A,)}),
        # Under a wildcard each literal address of its family is allowed.
        ((("a", ("192.0.2.2",)), ("b", ("127.0.0.1",))), (), {"a": ("192.0.2.2",), "b": ("127.0.0.1",)}),
        ((("a", ("192.0.2.2", "2001:db8::1")),), ("0.0.0.0",), {"a": ("192.0.2.2",)}),
        ((("a", ("www.test",)), ("b", ())), (), {"b": ()}),
        # All that are bound need no list.
        ((("a", ALL),), ALL, {"a": ()}),
        ((("a", ()),), ALL, {"a": ()}),
    ],
)  # fmt: skip
def test_gateways_conflict_where_their_addresses_overlap(
    asked: tuple[Asked, ...], bind: tuple[str, ...], served: dict[str, tuple[str, ...]]
) -> None:
    assert _served(*asked, bind=bind) == served


@pytest.mark.parametrize(
    ("first", "second", "bind"), [((A,), (A, B), ALL), ((A, B), (B,), ALL), ((A,), (), ())]
)
def test_a_listener_is_never_served_at_an_address_that_its_gateway_does_not_request(
    first: tuple[str, ...], second: tuple[str, ...], bind: tuple[str, ...]
) -> None:
    found = _translate(
        _gateway("a", first, hostname="a.test"), _gateway("b", second, hostname="b.test"), bind=bind
    )
    (fleet,) = found.ir.fleets
    assert [(one.name, one.addresses) for one in fleet.listeners] == [
        ("default/a/http", first),
        ("default/b/http", first),  # holds its hostname, with 404
    ]
    (said,) = (one.text() for one in found.problems if "port 80" in one.message)
    assert said.startswith(
        "Gateway default/b spec.listeners[0].port: PortUnavailable port 80 is served for Gateway default/a"
    )
    assert "Gateway default/a" not in {str(one.object) for one in found.problems}


def test_a_gateway_without_a_usable_address_is_an_error() -> None:
    found = _translate(_gateway("a", ("192.0.2.1",)))
    assert [one.listeners for one in found.ir.fleets] in ([], [()])
    errors = [one.text() for one in found.problems if one.severity == "error"]
    assert (
        "Gateway default/a spec.addresses: AddressNotUsable no requested address is usable"
        in errors[0]
    )


def test_one_that_is_not_served_opens_no_address() -> None:
    found = _translate(
        _gateway("a", ("127.0.0.1",), hostname="a.test"),
        _gateway("b", (), hostname="b.test", protocol="HTTPS"),
        bind=(),
    )
    (fleet,) = found.ir.fleets
    assert {one.addresses for one in fleet.listeners} == {("127.0.0.1",)}


def test_explain_and_diff_know_the_address() -> None:
    old = _translate(_gateway("a", (A,)), _gateway("b", (B,)))
    new = _translate(_gateway("a", (A,)), _gateway("b", (C,)))
    before = Served(old.ir.fleets[0])
    for url, address, to in (
        (f"http://{A}/", "", "http://a.example/"),
        (f"http://{B}/", "", "http://b.example/"),
        ("http://x.test/", B, "http://b.example/"),
        ("http://x.test/", C, ""),
    ):
        found = explain(before, read_request_spec("GET", url, address=address))
        assert [one.location for one in found.answers] == [to]
    assert f"no listener on port 80 of {C}" in found.answers[0].why
    said = explain(before, read_request_spec("GET", f"http://{B}/"))
    assert f"(port 80 of {B}, HTTP, any host)" in "\n".join(render_explanation(said))
    changes = diff_translations(old, new).changes
    told = {(one.kind, one.example.address) for one in changes if one.example}
    assert told >= {("answer", B), ("answer", C)} and not any(at == A for _, at in told)
