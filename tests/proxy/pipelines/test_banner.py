"""The lines of listeners at a start: what is said of one that only keeps its place is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast import ir
from edgefast.proxy.agent.agent import Published
from edgefast.proxy.pipelines.banner import Banner
from edgefast.proxy.pipelines.standalone import Outcome
from edgefast.proxy.sockets.bind_address import make_bind_address
from translate.test_reserved_hostnames import WIDE, Object, _gateway, _listener, _read, _serve, _set

pytestmark = pytest.mark.pure


def say(folder: Path, objects: list[Object]) -> list[str]:
    served, table = _serve(_read(folder, objects))
    closed = served.statuses.closed_listeners()
    lines = told(table.fleet, [("127.0.0.1", 80), ("127.0.0.1", 443)], closed)
    return [line for line in lines if " on http" in line]


def told(
    fleet: ir.Fleet | None, bound: list[tuple[str, int]], closed: frozenset[str] = frozenset()
) -> list[str]:
    lines: list[str] = []
    outcome = Outcome(
        fleet=fleet,
        shards=None,
        problems=(),
        published=Published("", changed=True, acknowledged=True, problems=()),
        files=1,
        objects=1,
        took=1.0,
        closed=closed,
    )
    Banner(1, {}, lambda line, _: lines.append(line), str).show(outcome, bound)
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("bound", "state"),
    [([("127.0.0.1", 80)], "ready in 2500 ms"), ([], "no listener is open")],
)
def test_a_start_is_as_long_as_the_process_is_old(bound: list[tuple[str, int]], state: str) -> None:
    lines: list[str] = []
    outcome = Outcome(
        fleet=None,
        shards=None,
        problems=(),
        published=Published("", changed=True, acknowledged=True, problems=()),
        files=1,
        objects=2,
        took=1.0,
    )
    Banner(1, {}, lambda line, _: lines.append(line), str, lambda: 2.5).show(outcome, bound)
    assert lines[0].endswith(f"2 objects in 1 file, 1 worker, {state}")


def test_listeners_of_layer_4_say_of_which_transport_they_are() -> None:
    listeners = tuple(
        ir.Listener(name=f"ns/gw/{one}", port=53, bind_port=53, protocol=one)
        for one in ("TCP", "UDP")
    )
    route = ir.StreamRoute(listener="ns/gw/UDP", hostname="*")
    fleet = ir.Fleet(name="standalone", listeners=listeners, stream_routes=(route,))
    bound = [make_bind_address("127.0.0.1", 53), make_bind_address("127.0.0.1", 53, "UDP")]
    assert [line for line in told(fleet, bound) if " on " in line] == [
        "ns/gw/TCP on tcp://127.0.0.1:53: no route",
        "ns/gw/UDP on udp://127.0.0.1:53: all datagrams",
    ]


def test_listeners_that_only_keep_their_place_say_so(tmp_path: Path) -> None:
    broken = _set("more", _listener("plain", "a.test", 80), _listener("tls", "a.test"))
    broken["spec"]["listner"] = 1
    dark = _gateway("dark", _listener("plain", "b.test", 80), gatewayClassName="edge")
    lines = say(tmp_path, [WIDE, broken, dark])
    at = {line.split(" on ")[0]: line.partition(": ")[2] for line in lines}
    assert at == {
        "default/dark/plain": "no route",
        "default/edge/default/more/plain": "CLOSED, a.test answers 404",
        "default/edge/default/more/tls": "CLOSED, a.test ends the TLS handshake",
        "default/edge/plain": "any host",
        "default/edge/tls": "any host",
    }
