"""Statuses never run ahead of the data plane; a straggler is waited for with patience, and named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.controller_bench import Bench
from cluster.world.apiserver import ApiServer


@pytest.fixture(scope="module")
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    with Bench(apiserver) as made:
        made.add_class()
        made.add_backend("web", made.add_origin("one").port)
        yield made


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
