"""Restarts, leaders and signals: one replica writes, nothing is written twice, proxies notice nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.world.apiserver import ApiServer
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import send_command


@pytest.fixture
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    quick = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "500ms"}
    with Bench(apiserver, leaderElection=quick) as made:
        made.add_class()
        made.port, made.fleet_name = made.bring_up()
        made.add_backend("web", made.add_origin("one").port)
        made.add_route("r", host="a.example.com")
        made.expect(made.port, (200, "one"), host="a.example.com")
        made.expect_condition("HTTPRoute", "r", "Accepted", "True")
        made.expect_condition("Gateway", "gw", "Programmed", "True")
        yield made


def versions(bench: Bench) -> list[str]:
    found = [("HTTPRoute", "r"), ("Gateway", "gw"), ("GatewayClass", bench.gateway_class)]
    return [bench.get(*one)["metadata"]["resourceVersion"] for one in found]


def settle(bench: Bench) -> list[str]:
    """Return the resource versions once nothing has been written for a while."""
    seen, since = versions(bench), time.monotonic()
    while time.monotonic() - since < 5:
        time.sleep(0.1)
        now = versions(bench)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


def lease(bench: Bench) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{bench.namespace}/leases"
    (found,) = bench.api.items(path)
    holder: str = found["spec"].get("holderIdentity") or ""
    return holder


def test_a_restart_writes_nothing_and_proxies_go_on(bench: Bench) -> None:
    before = settle(bench)
    address = bench.controller.find(r"serving xds=(\S+)")
    assert bench.controller.stop() == 0
    assert lease(bench) == ""  # given back: nobody has to wait for it
    text = bench.controller.text()
    assert "stopping" in text and "ended" in text and "Traceback" not in text
    assert bench.request(bench.port, host="a.example.com") == (200, "one")
    bench.controller = bench.start_controller("controller-0", xds=address)
    wait_for("it leads", lambda: bench.metric("leader") == 1)
    # The proxy is back, with what it has: nothing is sent but the end of the batch.
    wait_for("the proxy is back", lambda: bench.metric("acks_total") >= 1)
    assert bench.metric("pushed_resources_total") == 0
    assert settle(bench) == before
    assert bench.metric("status_writes_total") == 0
    assert bench.metric("infra_deleted_total") == 0
    bench.add_route("r2", host="b.example.com")
    bench.expect(bench.port, (200, "one"), host="b.example.com")
    bench.expect_condition("HTTPRoute", "r2", "Accepted", "True")


def test_no_secret_is_logged_or_dumped(bench: Bench) -> None:
    keys = []
    for name in ("edge-gateway", "edge-gateway-ca", f"{bench.fleet_name}-xds"):
        folder = bench.folder / name
        folder.mkdir()
        bench.save_secret(name, folder)
        keys.append((folder / "tls.key").read_text().splitlines()[1])
    assert bench.ask(bench.controller, "admin", "/log-level?level=debug", "POST")[0] == 403
    host, port = bench.controller.find(r"serving .*\badmin=(\S+)").rsplit(":", 1)
    assert send_command(Address(host, int(port)), "/log-level?level=debug", 10)[0] == 200
    bench.add_route("r5", host="e.example.com")
    bench.expect(bench.port, (200, "one"), host="e.example.com")
    key = f"{bench.namespace}/{bench.fleet_name}"
    seen = [
        str(bench.ask(bench.controller, "admin", path))
        for path in ("/dump", f"/dump?fleet={key}", "/fleets")
    ]
    seen += [one.text() for one in bench.processes]
    assert all(key not in text and "PRIVATE KEY" not in text for key in keys for text in seen)
