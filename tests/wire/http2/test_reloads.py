"""Clients that people have, on connections that come to their end while they ask, as everything else changes: nothing is lost.

Connections end after a few requests (GOAWAY, twice), certificates and routes change, listeners and ports go and come. What is asserted is
counted by the clients. Two of them lose requests whoever serves them, and are held to what they can: curl 7.88 with --parallel and prior
knowledge fails all but its first request (curl issue 10634), and Python's httpx gives up what is open when GOAWAY comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.http2.changing import NAME, Changing
from wire.http2.keeper import Keepers, Wants
from wire.http2.programs import check_curl, check_go, check_h2load, curl, go, h2load

REQUESTS = 600


@pytest.fixture(scope="module")
def world() -> Iterator[Changing]:
    with RecordingOrigin() as origin, Changing(origin.port) as running:
        yield running


def test_curl(world: Changing) -> None:
    many = "--parallel", "--parallel-max", "20"
    said = world.during(curl(world.tls, NAME, world.trusted, REQUESTS, *many))
    check_curl(said, REQUESTS)


def test_h2load(world: Changing) -> None:
    said = world.during(h2load(world.plain, NAME, 90 * 16, tls=False))
    check_h2load(said, 90 * 16)


@pytest.mark.timeout(600)
def test_go(world: Changing) -> None:
    """With a body: what GOAWAY says was not looked at is asked again."""
    said = world.during(go(world.tls, NAME, world.trusted, REQUESTS, body=3000))
    check_go(said, REQUESTS)


def test_httpx(world: Changing) -> None:
    """Changes alone end no connection. Those that end have said so: a request is lost to GOAWAY, and to nothing else."""
    httpx = pytest.importorskip("httpx")
    lost, good = [], 0
    context = world.authority.client_context()
    with httpx.Client(http1=False, http2=True, verify=context, trust_env=False) as client:
        for number in range(200):
            if number % 10 == 0:
                world.change()
            try:
                answer = client.get(f"http://127.0.0.1:{world.plain}/", headers={"host": NAME})
            except httpx.ProtocolError as error:
                lost.append(str(error))
                continue
            assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
            good += 1
    told = re.compile("ConnectionTerminated error_code:0|in state ConnectionState.CLOSED")
    assert len(lost) <= 200 // 100 and all(map(told.search, lost)), lost
    assert good + len(lost) == 200


def test_who_keeps_connections(world: Changing) -> None:
    """Those that heed the first GOAWAY, and those that open streams until the second: none of these is lost, either."""
    context = world.authority.client_context
    wants = [
        Wants(port=port, name=NAME, tls=tls, hasty=hasty, method="POST", body=bytes(size))
        for port, tls in ((world.plain, None), (world.tls, lambda: context(alpn=["h2"])))
        for hasty, size in ((False, 100), (True, 20_000))
    ]
    with Keepers(*wants) as tally:
        changes = world.changes
        world.change_while(lambda: tally.ended < 12 or world.changes < changes + 20, most=200)
    assert not tally.failures and not tally.lost, (tally.failures[:5], tally.lost)
    assert tally.ended >= 12 and tally.good > 1000, tally


def test_a_port_that_goes(world: Changing) -> None:
    """... has told everybody before, and those who are there are served to their end."""
    wants = [Wants(port=world.extra, may_refuse=True, hasty=hasty) for hasty in (True, False)]
    if world.changes % 2:
        world.change()  # the port is not there
    with Keepers(*wants) as tally:
        for _ in range(3):
            good = tally.good
            world.change()
            world.wait_until(
                lambda: tally.connections == tally.ended + 2 and tally.good > good + 20,  # noqa: B023
                "both on the new port, and answers",
            )
            world.change()
            world.wait_until(lambda: tally.connections == tally.ended, "all are told")
    assert not tally.failures and not tally.lost, (tally.failures[:5], tally.lost)
    assert tally.ended >= 6 and tally.good > 60, tally
