"""The bench's rows of layer 4: what the generator of datagrams counts as an answer, and that each proxy passes on what it is asked to."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.field import Bench, start_peer, stop_peer
from bench.goals import LAYER4, judge_goals
from bench.native import build_tools, find_tool
from bench.origins import Origins, run_origins
from bench.peers.peer import PeerUnavailable, Running, Setup
from bench.peers.registry import PEERS
from bench.probe import ProbeFailed, check_proxy
from bench.scenario import Scenario, Stream
from bench.table import Table

Answer = Callable[[bytes], bytes | None]


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    build_tools()


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origins]:
    with run_origins(tmp_path_factory.mktemp("origins")) as found:
        yield found


def load(port: int, *options: str) -> dict[str, Any]:
    argv = [str(find_tool("load-udp")), "--port", str(port), "--seconds", "0.2", *options]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """A server of datagrams; None: no answer."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])

        def serve() -> None:
            while True:
                data, client = sock.recvfrom(2048)
                if not data:
                    return
                said = answer(data)
                if said is not None:
                    sock.sendto(said, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield port
        with socket.socket(type=socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", port))
        thread.join(20)


@pytest.mark.parametrize("size", ["8", "64", "1400"])
def test_answers_are_counted(origins: Origins, size: str) -> None:
    result = load(origins.udp, "--connections", "4", "--bytes", size)
    assert result["requests"] > 0
    assert result["errors"] == 0, result
    assert 0 < result["latency_us"]["p50"] <= result["latency_us"]["p99"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda data: None, "lost"),
        (lambda data: data[:-1], "wrong"),
        (lambda data: data + b"x", "wrong"),
        (lambda data: b"\xff" * 8 + data[8:], "wrong"),
        (lambda data: data[:-1] + b"y", "wrong"),
    ],
)
def test_what_is_no_answer_is_an_error(answer: Answer, kind: str) -> None:
    with answering(answer) as port:
        result = load(port, "--connections", "2")
    assert result["requests"] == 0
    assert result["error_kinds"][kind] > 0, result
    assert result["errors"] == sum(result["error_kinds"].values())


def make_bench(folder: Path, origins: Origins) -> Bench:
    return Bench(
        peers=(), seconds=1, rounds=1, quick=True, folder=folder, origins=origins, say=print
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("stream", ["tcp", "tls", "udp"])
@pytest.mark.parametrize("name", ["nginx", "haproxy", "envoy", "edgefast"])
def test_a_proxy_passes_on_what_its_row_asks(
    name: str, stream: Stream, tmp_path: Path, origins: Origins
) -> None:
    peer, scenario = PEERS[name], Scenario(stream=stream)
    if (name, stream) == ("haproxy", "udp"):
        assert peer.check_scenario(scenario) == "passes no datagrams on"
        return
    try:
        running = start_peer(make_bench(tmp_path, origins), peer, scenario, name)
    except PeerUnavailable as error:
        if str(error) in ("not installed", "has no stream module"):
            pytest.skip(f"{name}: {error}")
        raise
    stop_peer(running)


def test_the_probe_sees_that_a_name_of_nobody_is_answered(tmp_path: Path, origins: Origins) -> None:
    """The origin itself, in the place of a proxy: it has every name."""
    scenario = Scenario(stream="tls")
    setup = Setup(scenario, tmp_path, origins.tls, origins.http1, origins.certificate)
    nobody: Any = None
    with pytest.raises(ProbeFailed, match="nobody's name was answered: 200"):
        check_proxy(Running(PEERS["edgefast"], setup, nobody, 0.0))


@pytest.mark.pure
@pytest.mark.parametrize("row", LAYER4)
def test_each_row_is_judged_by_each_of_its_peers(row: str) -> None:
    table = Table(row, row, [])
    ratios = {"nginx": 0.9, "haproxy": 1.0, "envoy": 1.25}
    table.values = {"edgefast": {"cpu_us": 10.0, **ratios}}
    found = {line.partition("CPU / ")[2] for line in judge_goals([table])}
    verdicts = {
        "nginx": "nginx: 0.9 (<= 1): met",
        "haproxy": "haproxy: 1 (<= 1): met",
        "envoy": "envoy: 1.25 (<= 1): MISSED by 25%",
    }
    assert found == {verdicts[one] for one in LAYER4[row]}


def test_floor_and_nghttpx_take_no_part() -> None:
    for name in ("floor", "nghttpx"):
        for stream in ("tcp", "tls", "udp"):
            assert PEERS[name].check_scenario(Scenario(stream=stream))
