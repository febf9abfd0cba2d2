"""A controller, an API server and a proxy: objects become answers, statuses say so, edits and removals follow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import GATEWAY_API, Bench, wait_for
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


def test_edits_are_followed(bench: Bench) -> None:
    bench.add_route("edit", host="edit.example.com")
    bench.expect(bench.port, (200, "one"), host="edit.example.com")
    route = bench.add_route("edit", host="edit.example.com", backend="other")
    bench.expect(bench.port, (200, "two"), host="edit.example.com")
    generation = route["metadata"]["generation"]
    assert generation == 2
    bench.expect_condition("HTTPRoute", "edit", "Accepted", "True", generation=generation)
    before = bench.conditions("HTTPRoute", "edit")["Accepted"]["lastTransitionTime"]
    bench.add_route("edit", host="moved.example.com", backend="other")
    bench.expect(bench.port, (200, "two"), host="moved.example.com")
    bench.expect(bench.port, 404, host="edit.example.com")
    after = bench.expect_condition("HTTPRoute", "edit", "Accepted", "True", generation=3)
    assert after["lastTransitionTime"] == before


def attached(bench: Bench, gateway: str) -> int:
    """Return the routes that the first listener says it has, -1 while it has no settings for this request."""
    listeners = (bench.get("Gateway", gateway).get("status") or {}).get("listeners")
    return listeners[0]["attachedRoutes"] if listeners else -1


def test_removals_are_followed(bench: Bench) -> None:
    port, _ = bench.bring_up("removals")
    bench.add_route("gone", host="gone.example.com", gateway="removals")
    bench.expect(port, (200, "one"), host="gone.example.com")
    wait_for("one attached route", lambda: attached(bench, "removals") == 1)
    bench.delete("HTTPRoute", "gone")
    bench.expect(port, 404, host="gone.example.com")
    wait_for("no attached route", lambda: attached(bench, "removals") == 0)


def test_endpoints_are_followed(bench: Bench) -> None:
    with bench.origin("moved") as origin:
        bench.add_backend("rolling", bench.add_origin("first").port)
        bench.add_route("rolling", host="rolling.example.com", backend="rolling")
        bench.expect(bench.port, (200, "first"), host="rolling.example.com")
        translated = bench.metric("translated_total", '{what="route"}')
        bench.add_backend("rolling", origin.port)
        bench.expect(bench.port, (200, "moved"), host="rolling.example.com")
        assert bench.metric("translated_total", '{what="route"}') == translated
    slice_ = f"/apis/discovery.k8s.io/v1/namespaces/{bench.namespace}/endpointslices/rolling-0"
    bench.api.delete(slice_)
    bench.expect(bench.port, 503, host="rolling.example.com")
    bench.expect_condition(
        "HTTPRoute", "rolling", "BackendsAvailable", "False", "EndpointsNotFound"
    )


def test_an_invalid_route_says_so_and_heals(bench: Bench) -> None:
    name, type_, reason = "nobackend", "ResolvedRefs", "BackendNotFound"
    broken = {"backendRefs": [{"name": "nothing", "port": 80}]}
    host = f"{name}.example.com"
    bench.add_route("fine", host="fine.example.com")
    bench.expect(bench.port, (200, "one"), host="fine.example.com")
    route = bench.add_route(name, host=host, **broken)
    generation = route["metadata"]["generation"]
    bench.expect_condition("HTTPRoute", name, type_, "False", reason, generation)
    bench.expect(bench.port, 500, host=host)
    assert bench.request(bench.port, host="fine.example.com") == (200, "one")
    bench.add_route(name, host=host)
    bench.expect(bench.port, (200, "one"), host=host)
    bench.expect_condition("HTTPRoute", name, type_, "True", generation=generation + 1)


def test_listeners_come_and_go(bench: Bench) -> None:
    def listener(name: str, port: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "port": port, "protocol": "HTTP", **more}

    port, fleet = bench.bring_up("listeners")
    bench.add_route("wide", gateway="listeners")
    bench.expect(port, (200, "one"))
    second = bench.add_gateway("unused")  # a port that is free
    bench.delete("Gateway", "unused")
    spec = {
        "gatewayClassName": bench.gateway_class,
        "listeners": [listener("http", port), listener("second", second)],
    }
    bench.apply("Gateway", "listeners", spec)
    bench.expect(second, (200, "one"))
    bench.expect_condition("Gateway", "listeners", "Programmed", "True", generation=2)
    spec["listeners"] = [listener("http", port)]
    bench.apply("Gateway", "listeners", spec)
    bench.expect(second, 0)
    assert bench.request(port) == (200, "one")

    def names() -> list[str]:
        found = bench.get("Gateway", "listeners")["status"]["listeners"]
        return [one["name"] for one in found]

    wait_for("one listener in the status", lambda: names() == ["http"])
    bench.delete("Gateway", "listeners")
    bench.api.wait_gone(f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/{fleet}")


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


def test_another_controllers_class_is_left_alone(bench: Bench) -> None:
    name = f"{bench.namespace}-foreign"
    bench.apply("GatewayClass", name, {"controllerName": "example.com/other"})
    listener = {"name": "http", "port": 8080, "protocol": "HTTP"}
    bench.apply("Gateway", "theirs", {"gatewayClassName": name, "listeners": [listener]})
    bench.add_route("sentinel", host="sentinel.example.com")
    bench.expect_condition("HTTPRoute", "sentinel", "Accepted", "True")
    for kind, one in (("GatewayClass", name), ("Gateway", "theirs")):
        reasons = {c["reason"] for c in bench.get(kind, one)["status"]["conditions"]}
        assert reasons == {"Pending"}
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments"
    label = "gateway.edge.io/owning-gateway-name=theirs"
    assert bench.api.items(path, labelSelector=label) == []
    bench.delete("Gateway", "theirs")
    bench.api.delete(f"/apis/{GATEWAY_API}/gatewayclasses/{name}")


def test_a_slip_of_the_pen_costs_no_fleet(bench: Bench) -> None:
    """A Gateway that is refused keeps its fleet and its tables; it heals."""
    port, fleet = bench.bring_up("slip")
    bench.add_route("slip", gateway="slip")
    bench.expect(port, (200, "one"))
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/{fleet}"
    uid = bench.api.get(path)["metadata"]["uid"]
    spec = bench.get("Gateway", "slip")["spec"]
    ref = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "nothing"}
    bench.apply("Gateway", "slip", {**spec, "infrastructure": {"parametersRef": ref}})
    bench.expect_condition("Gateway", "slip", "Accepted", "False", "InvalidParameters", 2)
    assert bench.request(port) == (200, "one")
    bench.api.patch(bench.path("Gateway", "slip"), {"spec": {"infrastructure": None}})
    bench.expect_condition("Gateway", "slip", "Accepted", "True", generation=3)
    bench.expect_condition("Gateway", "slip", "Programmed", "True", generation=3)
    assert bench.api.get(path)["metadata"]["uid"] == uid
    assert bench.request(port) == (200, "one")


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
