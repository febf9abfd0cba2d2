"""Admin, probes, metrics: what they show, and what they never do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.admin import Servers, View, plain_fleet
from controller.cli.cluster_status import ask_controller
from controller.metrics import Metrics
from edgefast import ir
from edgefast.api.snapshot import Snapshot
from edgefast.cli.status_model import ProblemRow
from edgefast.httpd.address import Address
from edgefast.httpd.control_socket import send_command
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import Settings
from tests.controller.waiting import running
from tests.translate import world

DENIED = {
    "object": "ServiceAccount e/g",
    "reason": "AccessDenied",
    "message": "no",
    "severity": "error",
}
SECRETS = ("KEY-MATERIAL", "CHAIN-MATERIAL", "STORE-PASSWORD", "STORE-KEY")
FLEET = ir.Fleet(
    name="f",
    secrets=(
        ir.Secret(name="secret/a/b", certificate=b"CHAIN-MATERIAL", private_key=b"KEY-MATERIAL"),
    ),
    limit_store=ir.RateLimitStore(
        kind="redis", addresses=("r:6379",), password="STORE-PASSWORD", private_key=b"STORE-KEY"
    ),
)


@pytest.mark.pure
def test_no_key_is_shown() -> None:
    plain = plain_fleet(FLEET)
    assert not any(one in str(plain) for one in SECRETS)
    assert plain["secrets"] == [
        {
            "name": "secret/a/b",
            "certificate": True,
            "privateKey": True,
            "ca": False,
            "staple": False,
        }
    ]
    assert plain["limit_store"]["addresses"] == ("r:6379",)


@pytest.mark.pure
def test_what_translation_makes_can_be_shown() -> None:
    """Its collections are views of what it goes on with, which nobody else need know."""
    objects = [world.gateway_class(), world.gateway(), world.service("web"), world.route(0)]
    (fleet,) = translate(Snapshot.of(objects), Settings(standalone=False)).ir.fleets
    plain = plain_fleet(fleet)
    assert [one["hostname"] for one in plain["virtual_hosts"]] == ["h0.example.com"]
    assert [one["name"] for one in plain["clusters"]] == ["service/default/web/80"]


@pytest.mark.pure
def test_metrics_are_read_when_somebody_looks() -> None:
    metrics = Metrics()
    number = 1.0
    metrics.read("leader", lambda: [((), number)])
    metrics.read("watch_restarts_total", lambda: [(("Gateway", "expired"), 3.0)])
    metrics.observe("translate", 0.002)
    metrics.ack.observe(0.01)
    number = 0.0
    page = metrics.render().decode()
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert samples["edgefast_controller_leader",] == 0.0
    assert samples["edgefast_controller_watch_restarts_total", "Gateway", "expired"] == 3.0
    assert samples["edgefast_controller_stage_seconds_count", "translate"] == 1.0
    assert samples["edgefast_controller_ack_seconds_sum",] == 0.01


async def _ask(address: Address, line: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(f"{line} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode())
    raw = await reader.read()
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


@pytest.mark.wire
async def test_servers() -> None:
    state = {"ready": "not yet"}
    view = View(
        dump=lambda: {"revision": 7},
        table=lambda key: FLEET if key == "n/f" else None,
        fleets=lambda: [{"fleet": "n/f"}],
        metrics=lambda: b"page\n",
        healthy=lambda: "",
        ready=lambda: state["ready"],
        denials=lambda: [DENIED],
    )
    servers = Servers(view)
    loopback = Address("127.0.0.1", 0)
    admin = servers.open_admin(loopback)
    probes = servers.open_probes(loopback)
    metrics = servers.open_metrics(loopback)
    async with running(servers.run()):
        found: dict[str, Any] = {}
        for server, line in (
            (admin, "GET /dump"),
            (admin, "GET /dump?fleet=n/f"),
            (admin, "GET /dump?fleet=n/g"),
            (admin, "GET /fleets"),
            (admin, "POST /log-level?level=error"),
            (admin, "GET /metrics"),
            (probes, "GET /healthz"),
            (probes, "GET /readyz"),
            (metrics, "GET /metrics"),
            (metrics, "GET /dump"),
        ):
            found[f"{server.port} {line}"] = await _ask(server, line)
        found["loud"] = await asyncio.to_thread(send_command, admin, "/log-level?level=loud", 20)
        found["error"] = await asyncio.to_thread(send_command, admin, "/log-level?level=error", 20)
        found[f"{admin.port} GET /log-level"] = await _ask(admin, "GET /log-level")
        seen = await asyncio.to_thread(ask_controller, str(admin))
        assert seen == ([{"fleet": "n/f"}], (ProblemRow(**DENIED),))
        state["ready"] = ""
        found["ready"] = await _ask(probes, "GET /readyz")
    statuses = [status for status, _ in found.values()]
    assert statuses == [*(200, 200, 404, 200, 403, 404, 200, 503, 200, 404), *(400, 200, 200, 200)]
    assert not any(secret in str(found) for secret in SECRETS)
    assert found[f"{admin.port} GET /log-level"][1] == "error\n"
    assert found[f"{probes.port} GET /readyz"][1] == "not yet\n"
