"""A thousand routes: few writes, and one more costs what it touches."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from cluster.controller_bench import GATEWAY_API, Bench, wait_for
from cluster.world.apiserver import ApiServer
from controller.status.write_throttle import SPACE

ROUTES = 1000


def test_a_thousand_routes(apiserver: ApiServer) -> None:
    with Bench(apiserver) as bench:
        bench.add_class()
        port, _ = bench.bring_up()
        bench.add_backend("web", bench.add_origin("one").port)
        bench.expect_condition("Gateway", "gw", "Programmed", "True")
        before, began = bench.metric("status_writes_total"), time.monotonic()

        def add(index: int) -> None:
            bench.add_route(f"r{index}", host=f"h{index}.example.com")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(add, range(ROUTES)))
        path = f"/apis/{GATEWAY_API}/namespaces/{bench.namespace}/httproutes"

        def all_accepted() -> bool:
            return all(
                any(
                    one["type"] == "Accepted" and one["status"] == "True"
                    for parent in (route.get("status") or {}).get("parents") or ()
                    for one in parent["conditions"]
                )
                for route in bench.api.items(path)
            )

        def attached() -> int:
            count: int = bench.get("Gateway", "gw")["status"]["listeners"][0]["attachedRoutes"]
            return count

        wait_for("all are accepted", all_accepted, 300)
        wait_for("all are counted", lambda: attached() == ROUTES, 120)
        for index in range(0, ROUTES, 97):
            assert bench.request(port, host=f"h{index}.example.com") == (200, "one")
        # Each route once; the Gateway's counts as often as writes of one object may follow one another.
        others = 50 + (time.monotonic() - began) / SPACE
        assert bench.metric("status_writes_total") - before <= ROUTES + others
        assert bench.metric("status_conflicts_total") <= 10

        # One more, one edited, one removed: each is one.
        for change in (
            lambda: bench.add_route("r5", host="moved.example.com"),
            lambda: bench.add_route("more", host="more.example.com"),
            lambda: bench.delete("HTTPRoute", "r7"),
        ):
            routes = bench.metric("translated_total", '{what="route"}')
            sent = bench.metric("pushed_bytes_total")
            resources = bench.metric("pushed_resources_total")
            answered = bench.metric("acks_total")
            change()
            # What is counted of a batch is counted by the time of its answer.
            wait_for(
                "it is sent and answered",
                lambda sent=sent, answered=answered: (  # type: ignore[misc]
                    bench.metric("pushed_bytes_total") > sent
                    and bench.metric("acks_total") > answered
                ),
            )
            assert bench.metric("translated_total", '{what="route"}') - routes <= 1
            assert bench.metric("pushed_resources_total") - resources <= 2
            assert bench.metric("pushed_bytes_total") - sent < 4000
        bench.expect(port, (200, "one"), host="more.example.com")
        bench.expect(port, 404, host="h7.example.com")
        assert "Traceback" not in bench.controller.text()
