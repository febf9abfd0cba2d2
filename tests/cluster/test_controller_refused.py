"""What does not go over the stream is told where a person looks: in conditions, metrics and logs. Real controller, real proxies."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.world.apiserver import ApiServer


@pytest.fixture(scope="module")
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    with Bench(apiserver) as made:
        made.add_class()
        made.add_backend("web", made.add_origin("one").port)
        yield made


def listener(bench: Bench, gateway: str, name: str) -> dict[str, Any]:
    """Return the Programmed condition of a Gateway's listener."""
    listeners = bench.get("Gateway", gateway)["status"].get("listeners") or ()
    conditions = next((one["conditions"] for one in listeners if one["name"] == name), ())
    return next((one for one in conditions if one["type"] == "Programmed"), {})


def test_what_a_proxy_refuses_becomes_a_condition_and_heals(bench: Bench) -> None:
    port, fleet = bench.bring_up("nack")
    bench.add_route("nack", host="nack.example.com", gateway="nack")
    bench.expect_condition("Gateway", "nack", "Programmed", "True")
    assert listener(bench, "nack", "http")["status"] == "True"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = {"http": port, "taken": taken.getsockname()[1]}
        bench.apply(
            "Gateway",
            "nack",
            {
                "gatewayClassName": bench.gateway_class,
                "listeners": [
                    {"name": name, "protocol": "HTTP", "port": one} for name, one in ports.items()
                ],
            },
        )
        wait_for(
            "the refused listener is told",
            lambda: listener(bench, "nack", "taken").get("reason") == "Invalid",
        )
        told = listener(bench, "nack", "taken")
        assert told["status"] == "False"
        place = f"{fleet}-0: listener {bench.namespace}/nack/taken"
        assert place in told["message"] and str(ports["taken"]) in told["message"]
        # The rest of the batch is in force: only what was refused is not.
        gateway = bench.expect_condition("Gateway", "nack", "Programmed", "True", generation=2)
        assert "refused by proxies" in gateway["message"] and place in gateway["message"]
        assert listener(bench, "nack", "http")["status"] == "True"
        assert bench.request(port, host="nack.example.com") == (200, "one")
        assert bench.metric("nacks_total", '{type="listener"}') == 1
    wait_for(
        "the listener is told as served",
        lambda: listener(bench, "nack", "taken").get("status") == "True",
    )
    assert bench.request(ports["taken"], host="nack.example.com") == (200, "one")
    gateway = bench.conditions("Gateway", "nack")["Programmed"]
    assert gateway["status"] == "True" and "refused" not in gateway["message"]


def test_a_proxy_of_another_table_format_keeps_its_table_and_is_told(bench: Bench) -> None:
    """The controller is upgraded, the proxy is not: nothing is lost, nothing is claimed, and somebody can find out why."""
    port, fleet = bench.bring_up("old")
    bench.add_route("old", host="old.example.com", gateway="old")
    bench.expect_condition("HTTPRoute", "old", "Accepted", "True")
    bench.expect_condition("Gateway", "old", "Programmed", "True")
    address = bench.controller.find(r"serving xds=(\S+)")
    bench.controller.stop(signal.SIGTERM)
    bench.controller = bench.start_controller(
        "upgraded", wrapper="tests.cluster.other_release", xds=address
    )

    def told() -> str:
        assert bench.request(port, host="old.example.com") == (200, "one")
        condition = bench.conditions("Gateway", "old")["Programmed"]
        assert condition["status"] == "True"  # it is only behind
        return str(condition["message"])

    reason = f"proxy {fleet}-0 does not support a table format of this controller"
    wait_for("the log of the controller", lambda: told() and reason in bench.controller.text())
    proxy = next(one for one in bench.processes if one.name == f"{fleet}-0")
    wait_for("the log of the proxy", lambda: told() and reason in proxy.text())
    bench.add_route("next", host="next.example.com", gateway="old")
    behind = f"0/1 proxies at version 1, behind: {fleet}-0 ({reason}"
    wait_for("the status of the Gateway", lambda: behind in told())
    assert bench.conditions("HTTPRoute", "next") == {}
    # One that has no table to go on with is not ready, and nothing else would say why.
    late = f"{fleet}-1"
    second = bench.start_proxy(fleet, "1", bind="127.0.0.2")
    bench.set_pods(fleet, f"{fleet}-0", late, unready=late)
    why = f"{late} is not ready: proxy {late} does not support a table format"
    wait_for("the status names it", lambda: why in told())
    events = f"/apis/events.k8s.io/v1/namespaces/{bench.namespace}/events"
    wait_for(
        "an Event",
        lambda: any(
            one["reason"] == "FleetFailed" and why in one["note"] for one in bench.api.items(events)
        ),
    )
    second.stop(signal.SIGKILL)  # else the first one would be the straggler of two
    bench.set_pods(fleet, f"{fleet}-0")
    wait_for("it is gone", lambda: late not in told())
    bench.controller.stop(signal.SIGTERM)
    bench.controller = bench.start_controller("downgraded", xds=address)
    bench.expect_condition("HTTPRoute", "next", "Accepted", "True")
    assert bench.request(port, host="next.example.com") == (200, "one")
