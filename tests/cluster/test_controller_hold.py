"""Statuses never run ahead of the data plane; a straggler is waited for with patience, and named."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, Process, wait_for
from cluster.world.apiserver import ApiServer
from controller.status.progress import PATIENCE

PODS = ("127.0.0.1", "127.0.0.2")


@pytest.fixture(scope="module")
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    with Bench(apiserver) as made:
        made.add_class()
        made.add_backend("web", made.add_origin("one").port)
        yield made


def freeze(proxy: Process) -> None:
    proxy.process.send_signal(signal.SIGSTOP)


def thaw(proxy: Process) -> None:
    proxy.process.send_signal(signal.SIGCONT)


def test_a_gateway_is_not_programmed_before_its_proxies_serve_it(bench: Bench) -> None:
    port = bench.add_gateway("late")
    fleet = bench.fleet("late")
    bench.give_address(fleet)
    bench.expect_condition("Gateway", "late", "Accepted", "True")
    bench.expect_condition("Gateway", "late", "Programmed", "False", "NoResources")
    # A pod that is ready, as its cluster says, and that nobody has heard of.
    bench.set_pods(fleet, f"{fleet}-0")
    held = bench.expect_condition("Gateway", "late", "Programmed", "False", "Pending")
    assert "waiting for the proxies" in held["message"]
    bench.add_route("late", host="late.example.com", gateway="late")
    bench.start_proxy(fleet)
    bench.expect_condition("HTTPRoute", "late", "Accepted", "True")
    # What is said is so, at the moment it is said.
    assert bench.request(port, host="late.example.com") == (200, "one")
    bench.expect_condition("Gateway", "late", "Programmed", "True")


def test_a_straggler_is_named_and_holds_nobody_for_long(bench: Bench) -> None:
    port = bench.add_gateway("two")
    fleet = bench.fleet("two")
    bench.give_address(fleet)
    proxies = [bench.start_proxy(fleet, str(i), address) for i, address in enumerate(PODS)]
    bench.set_pods(fleet, f"{fleet}-0", f"{fleet}-1")
    done = bench.expect_condition("Gateway", "two", "Programmed", "True")

    def says(text: str) -> Any:
        one = bench.conditions("Gateway", "two")["Programmed"]
        assert one["status"] == "True"  # at no moment anything else
        return text in one["message"]

    # One that takes longer to start than patience lasts is a straggler as well.
    wait_for("both are told", lambda: says("2/2 proxies at version 1"))
    bench.add_route("both", host="both.example.com", gateway="two")
    bench.expect_condition("HTTPRoute", "both", "Accepted", "True")
    for address in PODS:
        assert bench.request(port, host="both.example.com", address=address) == (200, "one")
    freeze(proxies[1])
    try:
        began = time.monotonic()
        bench.add_route("next", host="next.example.com", gateway="two")
        bench.expect_condition("HTTPRoute", "next", "Accepted", "True")
        assert time.monotonic() - began >= PATIENCE - 1
        wait_for("the straggler is named", lambda: says(f"behind: {fleet}-1"))
        # It has been waited for: the next change does not wait again. One that did would show it every time.
        took = []
        for name in ("third", "fourth", "fifth"):
            began = time.monotonic()
            bench.add_route(name, host=f"{name}.example.com", gateway="two")
            bench.expect_condition("HTTPRoute", name, "Accepted", "True")
            took.append(time.monotonic() - began)
            if took[-1] < PATIENCE - 1:
                break
        assert took[-1] < PATIENCE - 1, took
        assert bench.metric("proxies_behind", f'{{fleet="{bench.namespace}/{fleet}"}}') == 1
    finally:
        thaw(proxies[1])
    wait_for("it has caught up", lambda: says("2/2 proxies at version 1"))
    after = bench.conditions("Gateway", "two")["Programmed"]
    assert after["lastTransitionTime"] == done["lastTransitionTime"]
