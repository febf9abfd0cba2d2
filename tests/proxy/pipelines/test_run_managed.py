"""`edgefast proxy` as a process: a controller that comes and goes under load, and a machine without gRPC."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgefast.cli.main import main
from edgefast.table import Shards
from edgefast.xds.batch import Mirror
from edgefast.xds.target import make_target
from proxy.command import Start, gateway, gateway_class, gone, mark_of, route, save
from proxy.living import ROOT
from proxy.pki import Authority
from proxy.shards import make_fleet
from wire.harness.ports import free_port
from xds.living import write_files
from xds.plain import PlainServer

pytestmark = pytest.mark.wire

#: Python that has none of what the extra `xds` brings.
WITHOUT = (
    "import sys\n"
    "for name in ('grpc', 'google.protobuf'): sys.modules[name] = None\n"
    "from edgefast.cli.main import main\n"
    "main()\n"
)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def true(shards: Shards) -> Shards:
    return Shards(shards.resources, Mirror(shards).version)


def arguments(folder: Path, authority: Authority, port: int) -> list[str]:
    folder.mkdir(exist_ok=True)
    files = write_files(folder, authority)
    return [
        *("--xds", f"127.0.0.1:{port}", "--node", "edge-0", "--workers", "2"),
        *("--ca", str(files.ca), "--cert", str(files.certificate), "--key", str(files.key)),
    ]


class Load:
    """Requests one after another on new connections.

    Every answer is kept, with the table that each worker was known to serve when it was asked for: they swap one after the
    other.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.known = 1
        self.answers: list[tuple[int, str]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            known = self.known
            try:
                answer = mark_of(self._port)
            except (OSError, http.client.HTTPException) as error:
                answer = repr(error)
            self.answers.append((known, answer))
            self._stop.wait(0.002)

    def stop(self) -> list[tuple[int, str]]:
        self._stop.set()
        self._thread.join(30)
        return self.answers


def talk(conversation: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(conversation(), 110)

    asyncio.run(whole())


def test_a_controller_comes_and_goes_under_load(
    start: Start, tmp_path: Path, authority: Authority
) -> None:
    port = free_port()

    async def conversation() -> None:
        server = PlainServer(authority, mutual=True)
        async with server:
            run = start(*arguments(tmp_path / "c", authority, server.port), serve="proxy")
            await asyncio.to_thread(
                run.until, lambda: run.get(run.ready, "/live")[0] == 200, "a living process"
            )
            # Without a table it is alive, and not ready.
            status, text = await asyncio.to_thread(run.get, run.ready, "/ready")
            assert (status, text) == (503, "not ready: no table yet")
            first = true(make_fleet(port, mark="v1"))
            server.publish(first)
            await server.answered(first.version)
            assert (await asyncio.to_thread(run.get, run.ready, "/ready"))[0] == 200
            load = Load(port)
        try:
            # The controller is gone: nobody notices.
            await asyncio.to_thread(
                run.until, lambda: "the table stays" in run.said, "a word on it"
            )
            assert (await asyncio.to_thread(run.get, run.ready, "/ready"))[0] == 200
            async with PlainServer(authority, mutual=True, port=server.port) as again:
                for number in range(2, 22):
                    wanted = true(make_fleet(port, mark=f"v{number}"))
                    again.publish(wanted)
                    await again.answered(wanted.version)
                    load.known = number
                await asyncio.to_thread(
                    run.until, lambda: load.answers[-1][0] == 21, "an answer after the last table"
                )
        finally:
            answers = await asyncio.to_thread(load.stop)
        assert {mark for _, mark in answers} <= {f"v{number}" for number in range(1, 22)}
        # Only ever forwards: what every worker has had does not come back.
        assert [(known, mark) for known, mark in answers if int(mark[1:]) < known] == []
        assert answers[-1][1] == "v21"
        pids = await asyncio.to_thread(run.workers)
        assert await asyncio.to_thread(run.stop) == 0
        assert all(gone(pid) for pid in pids)

    talk(conversation)


def test_a_container_that_restarts_without_a_controller(
    start: Start, tmp_path: Path, authority: Authority
) -> None:
    port = free_port()
    state = tmp_path / "state"

    async def conversation() -> None:
        server = PlainServer(authority, mutual=True)
        async with server:
            given = arguments(tmp_path / "c", authority, server.port)
            run = start(*given, "--state-dir", str(state), serve="proxy")
            wanted = true(make_fleet(port, mark="v1"))
            server.publish(wanted)
            await server.answered(wanted.version)
            file = state / "last-good.table"
            await asyncio.to_thread(run.until, file.exists, "the last good table")
            assert file.stat().st_mode & 0o777 == 0o600
            # Workers are exec'd: one that dies while gRPC's threads run has a successor at once.
            first = await asyncio.to_thread(run.workers)
            os.kill(first[0], signal.SIGKILL)
            await asyncio.to_thread(
                run.until,
                lambda: (
                    len(set(run.workers()) - {first[0]}) == 2
                    and run.get(run.ready, "/ready")[0] == 200
                ),
                "a successor",
            )
        run.process.kill()
        run.process.wait(60)
        again = start(*given, "--state-dir", str(state), serve="proxy")
        await asyncio.to_thread(again.wait_ready)
        assert await asyncio.to_thread(mark_of, port) == "v1"
        assert "NO TABLE FROM" in again.said
        assert "PRIVATE" not in again.said
        told = (await asyncio.to_thread(again.get, again.metrics, "/metrics"))[1]
        assert "edgefast_xds_last_good_served 1\n" in told
        assert await asyncio.to_thread(again.stop) == 0

    talk(conversation)


# --- without gRPC -----------------------------------------------------------------------------------


def test_files_are_served_where_there_is_no_grpc(tmp_path: Path) -> None:
    port, ready = free_port(), free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    command = [sys.executable, "-c", WITHOUT, "run", "-f", str(tmp_path), "--workers", "1"]
    command += ["--admin", "off", "--metrics", "off", "--ready", f"127.0.0.1:{ready}"]
    command += ["--bind", "127.0.0.1", "--min-drain", "0"]
    err = tmp_path / "err"
    with err.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, stderr=file, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while "ready in" not in err.read_text():
            assert process.poll() is None and time.monotonic() < end, err.read_text()
            time.sleep(0.02)
        assert mark_of(port) == "v1"
        process.terminate()
        assert process.wait(60) == 0, err.read_text()
    finally:
        process.kill()
        process.wait(60)


def test_what_is_missing_is_named(tmp_path: Path, authority: Authority) -> None:
    command = [sys.executable, "-c", WITHOUT, "proxy", *arguments(tmp_path, authority, 1)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "pip install 'edgefast[xds]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--xds", "nowhere", "--node", "n", "--token", "t"], "is not an address"),
        (["--xds", "::1:18000", "--node", "n", "--token", "t"], "[ADDRESS]:PORT"),
        (["--xds", "h:70000", "--node", "n", "--token", "t"], "1-65535"),
        (["--xds", "a b:1", "--node", "n", "--token", "t"], "neither a name nor an address"),
        (["--xds", "h:1", "--node", "", "--token", "t"], "1 to 253 characters"),
        (
            ["--xds", "h:1", "--node", "n", "--token", "t", "--cert", "y"],
            "--cert and --key together",
        ),
        (["--xds", "h:1", "--node", "n"], "pass --cert and --key, or --token"),
        (["--node", "n", "--token", "t"], "--xds"),
    ],
)
def test_wrong_usage(given: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["proxy", "--ca", "ca.crt", *given])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("edge-gateway.system.svc:18000", "dns:///edge-gateway.system.svc:18000"),
        ("10.0.0.1:18000", "ipv4:10.0.0.1:18000"),
        ("[fd00::1]:18000", "ipv6:[fd00::1]:18000"),
    ],
)
def test_targets(given: str, target: str) -> None:
    assert make_target(given) == target
