"""The fields of the Gateway API: the list that the product is held against is that of the CRDs, and the newest CRDs let nothing pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench
from cluster.tools.api_fields import LIST, RELEASES, render_list
from cluster.tools.versions import GATEWAY_API
from cluster.world.apiserver import ApiServer

AUTH: dict[str, Any] = {
    "type": "ExternalAuth",
    "externalAuth": {
        "protocol": "HTTP",
        "backendRef": {"name": "web", "port": 80},
        "http": {"path": "/auth"},
    },
}


def test_the_list_is_that_of_the_crds() -> None:
    """A new release is added to RELEASES; what it brings shows in tests/api/test_api_fields.py."""
    assert LIST.read_text() == render_list()
    assert GATEWAY_API in RELEASES


@pytest.fixture(scope="module")
def bench(newest: ApiServer) -> Iterator[Bench]:
    """A controller beside the experimental CRDs of the newest release."""
    with Bench(newest) as made:
        made.add_class()
        made.port, _ = made.bring_up()
        made.add_backend("web", made.add_origin("one").port)
        yield made


def listener_condition(bench: Bench, name: str) -> Any:
    """Return a condition of the Gateway's first listener."""
    (listener, *_) = bench.get("Gateway", "gw")["status"]["listeners"]
    return next(one for one in listener["conditions"] if one["type"] == name)


def test_the_release_is_supported(bench: Bench) -> None:
    said = bench.expect_condition(
        "GatewayClass", bench.gateway_class, "SupportedVersion", "True", "SupportedVersion"
    )
    assert RELEASES[-1] in said["message"]


def test_filters_of_a_listener(bench: Bench) -> None:
    """They are asked; nobody comes in without those that cannot be asked, nor where one is of a type that is not here; their removal opens it again."""
    bench.add_route("open")
    bench.expect(bench.port, (200, "one"))
    spec = bench.get("Gateway", "gw")["spec"]
    (listener,) = spec["listeners"]

    def apply(*requests: Any) -> None:
        filtered = {**listener, "filters": {"requests": list(requests)}}
        bench.apply("Gateway", "gw", {**spec, "listeners": [filtered]})

    apply(AUTH)  # which lets everybody in
    bench.expect_condition("Gateway", "gw", "Programmed", "True", generation=2)
    bench.expect(bench.port, (200, "one"))
    nobody = {**AUTH["externalAuth"], "backendRef": {"name": "nobody", "port": 80}}
    apply({**AUTH, "externalAuth": nobody})
    bench.expect(bench.port, 500)
    apply(
        AUTH, {"type": "ExtensionRef", "extensionRef": {"group": "a.b", "kind": "C", "name": "d"}}
    )
    bench.expect(bench.port, 404)
    bench.expect_condition("Gateway", "gw", "Accepted", "False", "ListenersNotValid", 4)
    bench.expect_condition("Gateway", "gw", "Programmed", "False", "Invalid", 4)
    for name in ("Accepted", "Programmed"):
        said = listener_condition(bench, name)
        assert said["status"] == "False"
        assert "spec.listeners[0].filters.requests[1]: UnsupportedValue" in said["message"]
    assert listener_condition(bench, "Accepted")["reason"] == "UnsupportedValue"
    bench.apply("Gateway", "gw", {**spec, "listeners": [listener]})
    bench.expect(bench.port, (200, "one"))
    bench.expect_condition("Gateway", "gw", "Programmed", "True", generation=5)


def test_fields_of_a_rule_close_it(bench: Bench) -> None:
    persistent = {"type": "Header", "header": {"name": "x-session"}, "absoluteTimeout": "0s"}
    bench.add_route("kept", host="kept.example.com", sessionPersistence=persistent)
    bench.expect(bench.port, 500, host="kept.example.com")
    said = bench.expect_condition("HTTPRoute", "kept", "Accepted", "False", "UnsupportedValue")
    assert "spec.rules[0].sessionPersistence.absoluteTimeout" in said["message"]
    persistent = {**persistent, "absoluteTimeout": "1h"}
    bench.add_route("kept", host="kept.example.com", sessionPersistence=persistent)
    bench.expect(bench.port, (200, "one"), host="kept.example.com")
    bench.add_route("kept", host="kept.example.com", retry={"attempts": 0})
    bench.expect(bench.port, (200, "one"), host="kept.example.com")
