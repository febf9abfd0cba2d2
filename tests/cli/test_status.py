"""`edgefast status` of one proxy: an admin server that is told what to say, and a real `edgefast run` under load."""

from __future__ import annotations

import http.client
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from cli.admin_server import AdminServer
from cli.calling import call
from edgefast.api.model.origin import ingress_of
from edgefast.cli import status_model
from edgefast.cli.counters import Rate
from edgefast.cli.show_status import render_screen
from edgefast.cli.status_model import IngressRow, ProblemRow, RouteRow, StatusReport
from proxy.command import Process, Start, gateway, gateway_class, route, save, start
from wire.harness.ports import free_port

__all__ = ["start"]

ROOT = Path(__file__).parents[2]
PAGE = b"""edgefast_info{version="9.9",table="feedbeef00",tls="AWS-LC 5.12.0"} 1
edgefast_ready 1
edgefast_workers 2
edgefast_workers_alive 2
edgefast_connections_active 7
edgefast_requests_total{route="ns/web",rule="0",code_class="2xx"} 5
"""
DUMP: dict[str, Any] = {
    "agent": {"pid": 7, "phase": "serving", "bound": [{"address": "192.0.2.1", "port": 80}]},
    "workers": [
        {"worker": 0, "pid": 8, "version": "feedbeef00", "restarts": 1},
        {"worker": 1, "pid": 9, "version": "", "restarts": 0, "error": "no answer in time"},
    ],
    "problems": [
        {
            "severity": "error",
            "object": "HTTPRoute ns/lost",
            "reason": "NoMatchingParent",
            "text": "a.yaml:3 HTTPRoute ns/lost: NoMatchingParent Gateway ns/none not found",
        },
        {"severity": "warning", "object": "", "reason": "X", "text": "evil \x1b[2J"},
    ],
    "table": {"version": "feedbeef00"},
    "listeners": [
        {"name": "ns/gw/http", "port": 80, "bind_port": 80, "protocol": "HTTP"},
        {"name": "ns/gw/set-ns/set/more", "port": 81, "bind_port": 81, "protocol": "HTTP"},
    ],
    "virtual_hosts": [
        {"name": "ns/gw/http/a.test", "type": "virtual_host", "rules": [{"route": "ns/web"}]},
        {"name": "ns/gw/http/b.test", "type": "virtual_host"},
        {"name": "ns/gw/http/b.test#1", "type": "fragment", "rules": [{"route": "ns/web"}]},
    ],
}
ANSWERS: dict[str, Any] = {
    "/version": {"version": "9.9", "table": "feedbeef00"},
    "/dump": DUMP,
    "/metrics": (200, PAGE),
}


@pytest.mark.pure
def test_what_a_proxy_tells() -> None:
    with AdminServer(ANSWERS) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
    assert done.status == 1, done.err  # there is a problem
    told = orjson.loads(done.out)
    assert told["source"] == f"proxy {server.address}"
    (gateway_row,) = told["gateways"]
    assert (gateway_row["name"], gateway_row["addresses"]) == ("ns/gw", ["192.0.2.1"])
    assert gateway_row["programmed"] == "False", "a port of it is not open"
    assert [(one["name"], one["routes"], one["programmed"]) for one in told["listeners"]] == [
        ("http", 1, "True"),
        ("set-ns/set/more", 0, "False"),
    ]
    assert [(one["name"], one["hostnames"], one["accepted"]) for one in told["routes"]] == [
        ("ns/lost", [], ""),
        ("ns/web", ["a.test", "b.test"], "True"),
    ]
    (proxy,) = told["proxies"]
    assert (proxy["version"], proxy["workers"], proxy["connections"]) == ("9.9", "2/2", 7)
    assert told["workers"][1]["state"] == "no answer in time"
    assert (told["seconds"], told["traffic"]) == (0.0, [])


@pytest.mark.pure
def test_what_a_proxy_of_files_tells_of_its_objects() -> None:
    """Also of those that are not in the table; where no objects are, what is in the table was accepted."""
    objects = {
        "classes": [{"name": "edge", "controller": "example.com/it", "accepted": "True"}],
        "gateways": [
            {"name": "ns/gw", "class": "edge", "accepted": "True"},
            {"name": "ns/wrong", "class": "edge", "accepted": "False"},
        ],
        "routes": [
            {"name": "ns/web", "parent": "ns/gw", "accepted": "True", "resolved": "False"},
            {"name": "ns/lost", "parent": "ns/none", "accepted": "False", "resolved": "True"},
        ],
    }
    with AdminServer({**ANSWERS, "/dump": {**DUMP, "objects": objects}}) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
        text = call("status", "--admin", server.address, "--interval", "0").out
    told = orjson.loads(done.out)
    assert told["classes"] == objects["classes"]
    assert [
        (one["name"], one["gateway_class"], one["accepted"], one["programmed"])
        for one in told["gateways"]
    ] == [("ns/gw", "edge", "True", "False"), ("ns/wrong", "edge", "False", "False")]
    assert [
        (one["name"], one["parent"], one["accepted"], one["resolved"]) for one in told["routes"]
    ] == [("ns/lost", "ns/none", "False", "True"), ("ns/web", "ns/gw", "True", "False")]
    rows = [line.split() for line in text.splitlines()]
    assert ["edge", "example.com/it", "True"] in rows
    with AdminServer(ANSWERS) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
    (row,) = orjson.loads(done.out)["gateways"]
    assert (row["gateway_class"], row["accepted"]) == ("", "True")


@pytest.mark.pure
def test_text_is_for_people() -> None:
    with AdminServer(ANSWERS) as server:
        done = call("status", "--admin", server.address, "--interval", "0")
    assert done.out.startswith(
        f"proxy {server.address}, 1 Gateway, 2 routes, 1 proxy, 2 problems\n"
    )
    assert "a.yaml:3 HTTPRoute ns/lost" in done.out
    assert "\x1b" not in done.out and "evil \\x1b[2J" in done.out
    assert done.out.splitlines()[-1] == "more about it: edgefast problem NoMatchingParent"
    rows = [line.split() for line in done.out.splitlines()]
    # What is wrong comes first.
    assert rows.index(["ns/lost", "*", "-", "-", "-"]) + 1 == rows.index(
        ["ns/web", "a.test,b.test", "ns/gw", "True", "-"]
    )


@pytest.mark.pure
def test_a_host_whose_tls_is_passed_through_is_of_its_ingress() -> None:
    assert ingress_of("tlsroute/app/shop.Ingress-tls-shop.test") == "app/shop"


@pytest.mark.pure
def test_ingresses_are_listed_in_place_of_the_objects_that_serve_them() -> None:
    made = "app/shop.Ingress-http-shop.test"
    listener = {"name": "edge/Ingress/http", "port": 80, "bind_port": 80, "protocol": "HTTP"}
    host = {
        "name": "edge/Ingress/http/shop.test",
        "type": "virtual_host",
        "rules": [{"route": made}],
    }
    any_host = {
        "name": "edge/Ingress/http/*",
        "type": "virtual_host",
        "rules": [{"route": "app/any.Ingress-http"}],
    }
    names = ("app/any", "app/canary", "app/shop")
    objects = {"ingresses": [{"name": one, "class": "nginx"} for one in names]}
    dump = {**DUMP, "listeners": [listener], "virtual_hosts": [host, any_host], "objects": objects}
    dump["problems"] = []
    with AdminServer({**ANSWERS, "/dump": dump}) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
    told = orjson.loads(done.out)
    assert [(one["name"], one["hostnames"]) for one in told["ingresses"]] == [
        ("app/any", ["*"]),
        ("app/canary", []),
        ("app/shop", ["shop.test"]),
    ]
    assert told["ingresses"][2]["ingress_class"] == "nginx"
    assert (told["gateways"], told["listeners"], told["routes"]) == ([], [], [])
    rates = [
        Rate(route=one, requests_per_second=2.0, error_share=0.0, p50_ms=1.0, p99_ms=1.0)
        for one in (made, "app/shop.Ingress-https-shop.test")
    ]
    row = IngressRow(name="app/shop", ingress_class="nginx", hostnames=("shop.test",))
    canary = IngressRow(name="app/canary", ingress_class="nginx")
    screen = StatusReport(source="x", ingresses=(row, canary), seconds=1.0, traffic=tuple(rates))
    lines = list(render_screen(screen))
    assert "2 Ingress" in lines[0]
    assert [one.split() for one in lines if one.startswith("app/")] == [
        ["app/shop", "nginx", "shop.test", "-", "4"],
        ["app/canary", "nginx", "-", "-", "0"],
    ]


@pytest.mark.pure
def test_who_is_asked() -> None:
    done = call("status", "--admin", "127.0.0.1:1", "--interval", "0")
    assert done.status == 2 and "no proxy answers at 127.0.0.1:1" in done.err
    assert call("status", "--admin", "nonsense").status == 2
    assert call("status", "--watch", "--interval", "0").status == 2
    assert call("status", "-A", "-n", "x").status == 2
    other = {"/version": {"version": "1"}, "/dump": {}, "/metrics": (200, b"up 1\n")}
    with AdminServer({**ANSWERS, "/metrics": other["/metrics"]}) as server:
        done = call("status", "--admin", server.address, "--interval", "0")
        assert done.status == 2 and "not the metrics of an edgefast proxy" in done.err
    with AdminServer({**ANSWERS, "/dump": {"agent": {}}}) as server:
        done = call("status", "--admin", server.address, "--interval", "0")
        assert done.status == 2 and "incompatible release" in done.err


@pytest.mark.pure
def test_a_large_screen_is_cut_and_says_so() -> None:
    routes = tuple(RouteRow(name=f"ns/r{number:03}") for number in range(200))
    made = StatusReport(
        source="cluster x",
        routes=routes,
        seconds=2.0,
        traffic=(
            Rate(
                route="ns/r150", requests_per_second=9.0, error_share=0.5, p50_ms=1.0, p99_ms=2500
            ),
            Rate(route="other", requests_per_second=1.0, error_share=0.0, p50_ms=1.0, p99_ms=1.0),
        ),
        problems=(ProblemRow(object="HTTPRoute ns/r199", reason="X", message="y"),),
        notes=("a note",),
    )
    lines = list(render_screen(made, most=3, width=60))
    names = [line.split()[0] for line in lines if line.startswith(("ns/", "other"))]
    assert names == ["ns/r199", "ns/r150", "other"]
    assert "... and 198 more (--most)" in lines
    assert max(map(len, lines)) <= 60
    whole = list(render_screen(made))
    assert len([one for one in whole if one.startswith("ns/")]) == 200
    assert whole[-1] == "note: a note"
    busy = next(line for line in whole if line.startswith("ns/r150"))
    assert busy.split()[-4:] == ["9", "50%", "1ms", "2.5s"]


@pytest.mark.pure
def test_every_field_is_documented() -> None:
    section = (ROOT / "docs/guides/status.md").read_text().split("\n## JSON\n")[1]
    structs = [one for one in vars(status_model).values() if isinstance(one, type)]
    for one in [*structs, Rate]:
        if issubclass(one, msgspec.Struct):
            for field in one.__struct_fields__:
                assert re.search(f"`{field}(\\[\\])?`", section), (one.__name__, field)


# --- a real proxy -------------------------------------------------------------------------------


class Load:
    """Requests on one connection, one after the other, as fast as they go."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.at: list[float] = []  # when each was answered, on the monotonic clock

    @property
    def sent(self) -> int:
        return len(self.at)

    def counts(self, seconds: float, began: float, ended: float) -> tuple[int, int]:
        """How many were answered in an interval of so many seconds between two times: the least, and the most."""
        at = self.at.copy()
        starts = [began, *(one for one in at if began <= one <= ended - seconds), ended - seconds]
        found = [bisect(at, start + seconds) - bisect(at, start) for start in starts]
        return min(found), max(found)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        while not self._stop.is_set():
            path = "/bad" if self.sent % 4 == 3 else "/"
            connection.request("GET", path, headers={"Host": "a.test"})
            connection.getresponse().read()
            self.at.append(time.monotonic())
            time.sleep(0.002)
        connection.close()


@pytest.fixture
def served(start: Start, tmp_path: Path) -> Iterator[tuple[Process, int]]:
    """A Gateway, a route that redirects and whose /bad has no backend, a route that nobody takes."""
    port = free_port()
    web = route("moved")
    web["spec"]["rules"].append(
        {"matches": [{"path": {"value": "/bad"}}], "backendRefs": [{"name": "none", "port": 80}]}
    )
    lost = route("moved", "lost")
    lost["spec"]["parentRefs"] = [{"name": "nobody"}]
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), web, lost)
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "2")
    run.wait_ready()
    yield run, port


@pytest.mark.wire
def test_a_running_proxy(served: tuple[Process, int]) -> None:
    run, port = served
    address = f"127.0.0.1:{run.admin}"
    with Load(port) as load:
        run.until(lambda: load.sent > 20, "requests")
        began = time.monotonic()
        done = call("status", "--admin", address, "--interval", "1", "-o", "json")
        ended = time.monotonic()
    told = orjson.loads(done.out)
    assert done.status == 1, "the backend and the Gateway that are not there are problems"
    (rate,) = [one for one in told["traffic"] if one["route"] == "default/web"]
    count = rate["requests_per_second"] * told["seconds"]
    least, most = load.counts(told["seconds"], began, ended)
    assert least / 2 - 5 < count < most * 2 + 5
    assert (
        abs(rate["error_share"] - 0.25) * count <= 2
    )  # every fourth; the ends of the interval cut a round
    assert 0 < rate["p50_ms"] <= rate["p99_ms"]
    assert 0.9 < told["seconds"] < 60
    (gateway_row,) = told["gateways"]
    assert (gateway_row["name"], gateway_row["programmed"]) == ("default/edge", "True")
    assert gateway_row["addresses"] == ["127.0.0.1"]
    assert {(one["name"], one["accepted"]) for one in told["routes"]} == {
        ("default/web", "True"),
        ("default/lost", ""),
    }
    version = run.dump()["table"]["version"]
    assert [one["table"] for one in told["workers"]] == [version, version]
    (proxy,) = told["proxies"]
    assert (proxy["table"], proxy["ready"], proxy["workers"]) == (version, True, "2/2")
    objects = {one["object"] for one in told["problems"]}
    assert {"HTTPRoute default/web", "HTTPRoute default/lost"} <= objects


def _let_interrupt() -> None:
    """A shell that runs the tests in the background has them, and so their children, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.wire
def test_watch_on_a_terminal(served: tuple[Process, int], tmp_path: Path) -> None:
    """It draws over what it drew, fits the window, follows a change, and ends in peace."""
    run, port = served
    main, terminal = pty.openpty()
    words = ["status", "--admin", f"127.0.0.1:{run.admin}", "--watch", "--interval", "0.2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "edgefast.cli.main", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        preexec_fn=_let_interrupt,
        env={**os.environ, "COLUMNS": "60", "LINES": "18", "NO_COLOR": "1"},
        cwd=ROOT,
    )
    os.close(terminal)
    seen = b""

    def read_until(wanted: bytes) -> None:
        nonlocal seen
        while wanted not in seen:
            ready, _, _ = select.select([main], [], [], 30)
            assert ready, seen
            seen += os.read(main, 65536)

    try:
        read_until(b"requests/s")
        first = seen
        save(tmp_path / "b.yaml", route("later", "later"))
        save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("later", "later"))
        read_until(b"default/later")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0, process.stderr.read() if process.stderr else b""
    finally:
        process.kill()
        process.wait(10)
        os.close(main)
        if process.stderr:
            process.stderr.close()
    screens = first.decode().split("\x1b[H")
    assert screens[0] == "" and len(screens) > 2
    for one in screens[1:-1]:
        assert one.endswith("\x1b[J")
        lines = one.removesuffix("\x1b[J").replace("\x1b[K", "").split("\r\n")
        assert len(lines) <= 18
        assert max(map(len, lines)) <= 60


@pytest.mark.wire
def test_watch_goes_on_when_the_proxy_is_away(served: tuple[Process, int]) -> None:
    run, _ = served
    words = ["status", "--admin", f"127.0.0.1:{run.admin}", "-w", "--interval", "0.2", "-o", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "edgefast.cli.main", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=_let_interrupt,
        cwd=ROOT,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert orjson.loads(process.stdout.readline())["source"].startswith("proxy ")
        run.stop()
        while "cannot be read" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
