"""A controller, an API server and a proxy: objects become answers, statuses say so, edits and removals follow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.world.apiserver import ApiServer


@pytest.fixture(scope="module")
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    with Bench(apiserver) as made:
        made.add_class()
        made.port, made.fleet_name = made.bring_up()
        made.add_backend("web", made.add_origin("one").port)
        made.add_backend("other", made.add_origin("two").port)
        yield made


def test_objects_become_answers(bench: Bench) -> None:
    route = bench.add_route("life", host="life.example.com")
    bench.expect(bench.port, (200, "one"), host="life.example.com")
    assert bench.request(bench.port, host="nobody.example.com")[0] == 404
    bench.expect_condition("GatewayClass", bench.gateway_class, "Accepted", "True")
    accepted = bench.expect_condition("HTTPRoute", "life", "Accepted", "True")
    assert accepted["observedGeneration"] == route["metadata"]["generation"]
    bench.expect_condition("HTTPRoute", "life", "ResolvedRefs", "True")
    programmed = bench.expect_condition("Gateway", "gw", "Programmed", "True")
    assert "1/1 proxies at version 1" in programmed["message"]
    status = bench.get("Gateway", "gw")["status"]
    assert status["addresses"] == [{"type": "IPAddress", "value": "127.0.0.1"}]
    # Another object than the route, and written for itself.
    wait_for("the route is counted", lambda: attached(bench, "gw") >= 1)
    assert bench.fleet_name.startswith(f"edge-{bench.namespace}-gw-")


def attached(bench: Bench, gateway: str) -> int:
    """Return the routes that the first listener says it has, -1 while it has no settings for this request."""
    listeners = (bench.get("Gateway", gateway).get("status") or {}).get("listeners")
    return listeners[0]["attachedRoutes"] if listeners else -1


def test_what_others_wrote_stays(bench: Bench) -> None:
    """Entries and conditions of other controllers, also when they write at the same time."""
    bench.add_route("shared", host="shared.example.com")
    bench.expect_condition("HTTPRoute", "shared", "Accepted", "True")
    path = bench.path("HTTPRoute", "shared")
    foreign = {
        "parentRef": {"name": "theirs", "group": "gateway.networking.k8s.io", "kind": "Gateway"},
        "controllerName": "example.com/other",
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Accepted",
                "message": "theirs",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    # They put their whole list in the place of ours, as careless controllers do: we come back, they stay.
    bench.api.patch(f"{path}/status", {"status": {"parents": [foreign]}})
    bench.expect_condition("HTTPRoute", "shared", "Accepted", "True")
    assert foreign in bench.get("HTTPRoute", "shared")["status"]["parents"]
    bench.add_route("shared", host="shared.example.com", backend="nothing")
    bench.expect_condition("HTTPRoute", "shared", "ResolvedRefs", "False")
    assert foreign in bench.get("HTTPRoute", "shared")["status"]["parents"]
    # And what is theirs alone is left when we have nothing to say any more.
    spec = {"parentRefs": [{"name": "theirs"}], "rules": []}
    bench.apply("HTTPRoute", "shared", {**spec, "rules": [{}]})
    wait_for(
        "only their entry",
        lambda: bench.get("HTTPRoute", "shared")["status"]["parents"] == [foreign],
    )


def test_trouble_becomes_an_event(bench: Bench) -> None:
    bench.add_route("trouble", host="trouble.example.com", backend="nothing")
    path = f"/apis/events.k8s.io/v1/namespaces/{bench.namespace}/events"

    def find() -> Any:
        return [one for one in bench.api.items(path) if one["regarding"]["name"] == "trouble"]

    (event,) = wait_for("an Event", find)
    assert (event["type"], event["reason"]) == ("Warning", "BackendNotFound")
    assert "nothing" in event["note"]
    assert event["regarding"]["uid"] == bench.get("HTTPRoute", "trouble")["metadata"]["uid"]


def test_operators_see_it(bench: Bench) -> None:
    bench.add_route("seen", host="seen.example.com")
    bench.expect_condition("HTTPRoute", "seen", "Accepted", "True")
    status, dump = bench.ask(bench.controller, "admin", "/dump")
    assert status == 200 and dump["leading"] and dump["synced"]
    assert dump["objects"]["HTTPRoute"] >= 1
    key = f"{bench.namespace}/{bench.fleet_name}"
    status, table = bench.ask(bench.controller, "admin", f"/dump?fleet={key}")
    assert status == 200 and any(
        one["hostname"] == "seen.example.com" for one in table["virtual_hosts"]
    )

    def is_current() -> bool:
        _, fleets = bench.ask(bench.controller, "admin", "/fleets")
        (fleet,) = [one for one in fleets if one["fleet"] == key]
        return bool([one["version"] for one in fleet["nodes"]] == [fleet["version"]])

    wait_for("its one proxy has the present table", is_current)
    assert bench.metric("leader") == 1
    assert bench.metric("acks_total") >= 1
    assert bench.metric("ack_seconds_count") >= 1
    assert bench.metric("stage_seconds_count", '{stage="translate"}') >= 1
    assert bench.ask(bench.controller, "admin", "/log-level")[1] == "info\n"
    assert bench.ask(bench.controller, "probes", "/healthz")[0] == 200


def test_the_command_line_shows_it(bench: Bench) -> None:
    bench.add_route("shown", host="shown.example.com", backend="nothing")
    bench.expect_condition("HTTPRoute", "shown", "ResolvedRefs", "False")
    added = {"name": "added", "protocol": "HTTP", "port": 8099}
    bench.apply("ListenerSet", "added", {"parentRef": {"name": "gw"}, "listeners": [added]})
    bench.expect_condition("ListenerSet", "added", "Accepted", "False")
    admin = bench.controller.find(r"serving .*\badmin=(\S+)")
    where = ["-n", bench.namespace, "--kubeconfig", str(bench.kubeconfig), "--admin", admin]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "edgefast.cli.main", "status", "--interval", "0", *where],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def proxy_of(done: subprocess.CompletedProcess[str]) -> list[str]:
        lines = map(str.split, done.stdout.splitlines())
        return next((line for line in lines if f"{bench.fleet_name}-0" in line), [])

    # Bad news is told before the proxies have it.
    ready = ["up", "to", "date"]
    done = wait_for("up to date", lambda: proxy_of(found := run())[-3:] == ready and found)
    assert done.returncode == 1, done.stderr  # something is wrong
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [bench.gateway_class, bench.controller_name, "True"] in lines
    route = f"{bench.namespace}/shown"
    assert [route, "shown.example.com", "gw", "True", "False"] in lines
    assert f"HTTPRoute {route} at gw" in done.stdout and "BackendNotFound" in done.stdout
    # A ListenerSet that its Gateway does not allow is there with its reason.
    assert [f"{bench.namespace}/added", f"{bench.namespace}/gw", "False", "False"] in lines
    assert f"ListenerSet {bench.namespace}/added" in done.stdout and "NotAllowed" in done.stdout
