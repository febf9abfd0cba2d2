"""More rules and limits than there are rows: what workers count, as the metrics page of a living agent shows it."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgefast import ir
from edgefast.httpd.address import Address
from edgefast.httpd.server import HttpServer, bind_server
from edgefast.proxy.admin.admin import Admin
from edgefast.proxy.agent.agent import Agent
from edgefast.table import Shards, compile_fleet
from proxy.living import ask, with_agent
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

ROUTES, ROWS = 9, 8
OWN = ("overflow", "overflow")
Series = Counter[tuple[str, str]]


def make_table(port: int) -> Shards:
    """Rules of as many routes, a path and a limit each, which answer by themselves."""
    rules = tuple(
        ir.Rule(
            f"ns/r{number}",
            0,
            redirect=ir.Redirect(hostname="v1.test"),
            rate_limits=(ir.RateLimit(f"ns/l{number}#0", f"c{number}", 1000, 86_400),),
        )
        for number in range(ROUTES)
    )
    entries = tuple(
        ir.Entry(match=ir.Match(kind="exact", path=f"/{number}"), rule=number)
        for number in range(ROUTES)
    )
    listener = ir.Listener(name="ns/gw/http", port=port, bind_port=port, protocol="HTTP")
    host = ir.VirtualHost(listener=listener.name, hostname="*", rules=rules, entries=entries)
    return compile_fleet(
        ir.Fleet(
            name="standalone",
            listeners=(listener,),
            virtual_hosts=(host,),
            limit_store=ir.RateLimitStore(),
        )
    )


async def read_page(port: int) -> tuple[Series, Series, Series, dict[str, float]]:
    """Requests, observed durations, and counted limits by series; numbers without labels."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")[2].decode()
    writer.close()
    requests, durations, limits = Series(), Series(), Series()
    numbers = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = one.labels
            if one.name == "edgefast_requests_total":
                requests[labels["route"], labels["rule"]] += int(one.value)
            elif one.name == "edgefast_request_duration_seconds_count":
                durations[labels["route"], labels["rule"]] += int(one.value)
            elif one.name == "edgefast_ratelimit_requests_total":
                limits[labels["route"], labels["limit"]] += int(one.value)
            elif not labels:
                numbers[one.name] = one.value
    return requests, durations, limits, numbers


@pytest.mark.parametrize("workers", [1, 2])
def test_what_finds_no_row_is_counted_together(workers: int) -> None:
    """Rows are taken in the order of first use; a worker has overflow, `-`, and six for rules and their limits."""
    port = free_port()
    asked = {number: number + 1 for number in range(ROUTES)}
    total = sum(asked.values())

    async def talk(agent: Agent) -> None:
        sock = bind_server(Address("127.0.0.1", 0))
        server = asyncio.create_task(HttpServer(sock, Admin(agent).metrics, any_host=True).run())
        assert (await agent.publish(make_table(port))).acknowledged
        for number, times in asked.items():
            for _ in range(times):
                assert b" 302 " in await ask(port, f"/{number}")
        page = await read_page(sock.getsockname()[1])
        async with asyncio.timeout(20):
            while page[0].total() < total:  # a request is counted after its answer
                page = await read_page(sock.getsockname()[1])
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        requests, durations, limits, numbers = page
        assert requests.total() == durations.total() == limits.total() == total
        assert numbers["edgefast_metric_rows"] == numbers["edgefast_metric_rows_used"] == ROWS
        named = {key: count for key, count in requests.items() if key[0].startswith("ns/")}
        assert 3 <= len(named) < ROUTES and requests.keys() - named.keys() <= {OWN, ("-", "-")}
        assert requests[OWN] == total - sum(named.values()) > 0
        assert limits[OWN] == total - sum(n for key, n in limits.items() if key != OWN) > 0
        if workers == 1:
            assert named == {(f"ns/r{number}", "0"): number + 1 for number in range(3)}
            assert {key: n for key, n in limits.items() if key != OWN} == {
                (f"ns/r{number}", f"ns/l{number}#0"): number + 1 for number in range(3)
            }

    assert with_agent(talk, workers=workers, stat_rows=ROWS) == 0
