"""`edgefast run` where something around it fails: half a configuration at start, a hung input, an unknown error."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefast.providers.files import FileSource
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.pipelines import standalone as module
from edgefast.proxy.pipelines.standalone import (
    FilesPending,
    FilesUnparsed,
    Outcome,
    Standalone,
)
from edgefast.proxy.tables.last_good import LastGood, LastGoodError
from edgefast.translate.settings import Settings
from proxy.command import Process, Start, gateway, gateway_class, mark_of, route, save
from proxy.living import ROOT, agent_test, until, with_agent
from proxy.living import mark_of as mark_now
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


POLICY = """\
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: shut, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  authorization: {defaultAction: Deny}
"""


def version_of(folder: Path) -> str:
    try:
        return LastGood(folder).load().version
    except LastGoodError:
        return ""


def test_a_start_with_half_a_file_serves_the_last_good_table_and_keeps_it(
    start: Start, tmp_path: Path
) -> None:
    port, state = free_port(), tmp_path / "state"
    files = tmp_path / "files"
    files.mkdir()
    save(files / "a.yaml", gateway_class(), gateway(port))
    save(files / "b.yaml", route("v1"))
    arguments = ("-f", str(files), "--workers", "1", "--state-dir", str(state))
    run = start(*arguments)
    run.wait_ready()
    assert run.stop() == 0
    good = version_of(state)
    assert good
    whole = (files / "b.yaml").read_bytes()
    (files / "b.yaml").write_bytes(whole[:60] + b"\n  {[")
    run = start(*arguments)
    run.wait_ready()
    assert mark_of(port) == "v1"
    run.until(lambda: "NOT ALL FILES CAN BE READ" in run.said, "what is served")
    # No change is taken in before all files are whole: neither served nor kept.
    save(files / "a.yaml", gateway_class(), gateway(port, free_port()))
    (files / "b.yaml").write_bytes(whole[:60] + b"\n\n  {[")
    run.until(lambda: "b.yaml:5 Invalid" in run.said, "second look")
    assert mark_of(port) == "v1"
    assert run.stop() == 0
    assert version_of(state) == good
    run = start(*arguments)
    run.wait_ready()
    save(files / "b.yaml", route("v2"))
    run.until(lambda: mark_of(port) == "v2", "whole files")
    assert run.stop() == 0
    assert version_of(state) not in ("", good)


def test_a_start_with_nothing_in_the_files_leaves_the_last_good_table(
    start: Start, tmp_path: Path
) -> None:
    port, state = free_port(), tmp_path / "state"
    file = tmp_path / "a.yaml"
    save(file, gateway_class(), gateway(port), route("v1"))
    arguments = ("-f", str(file), "--workers", "1", "--state-dir", str(state))
    run = start(*arguments)
    run.wait_ready()
    assert run.stop() == 0
    good = version_of(state)
    file.write_bytes(b"")  # as a full disk leaves it
    run = start(*arguments)
    run.wait_ready()
    assert mark_of(port) == "v1"
    assert run.stop() == 0
    assert version_of(state) == good


def test_a_start_waits_for_the_writer_of_a_file(start: Start, tmp_path: Path) -> None:
    """Without an earlier table nothing is served meanwhile: the policies of a route may come last."""
    port = free_port()
    file = tmp_path / "live.yaml"
    save(file, gateway_class(), gateway(port), route("early"))
    with open(file, "a") as writer:
        run = start("-f", str(file), "--workers", "1", "--settle-time", "0.2")
        run.until(lambda: "a process has the file open for writing" in run.said, "wait")
        assert run.get(run.ready, "/ready")[0] == 503
        writer.write("---\n" + POLICY)
    run.wait_ready()
    assert run.get(port, "/")[0] == 403
    assert run.stop() == 0


def test_the_last_change_before_the_end_is_kept(start: Start, tmp_path: Path) -> None:
    """Also when the one before it was written a moment ago."""
    port, state = free_port(), tmp_path / "state"
    file = tmp_path / "a.yaml"
    save(file, gateway_class(), gateway(port), route("v0"))
    arguments = ("-f", str(file), "--workers", "1", "--state-dir", str(state))
    run = start(*arguments)
    run.wait_ready()
    for number in range(1, 4):
        save(file, gateway_class(), gateway(port), route(f"v{number}"))
        run.until(lambda number=number: mark_of(port) == f"v{number}", "reload")
    run.until(lambda: run.said.count("is served") == 3, "report")
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 0
    file.unlink()
    run = start(*arguments)
    run.wait_ready()
    assert mark_of(port) == "v3"


def test_sighup_is_a_look_at_the_files(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
    run.wait_ready()
    workers = run.workers()
    for number in range(3):
        run.process.send_signal(signal.SIGHUP)
        run.until(
            lambda number=number: run.said.count("reading the files now") == number + 1, "look"
        )
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v2"))
    run.until(lambda: mark_of(port) == "v2", "reload")
    assert run.workers() == workers
    assert run.stop() == 0


def test_standard_input_that_stays_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    command = [sys.executable, "-m", "edgefast.cli.main", "run", "--bind", "127.0.0.1"]
    command += ["--admin", "off", "--metrics", "off", "--ready", "off", "--workers", "1"]
    command += ["--min-drain", "0", "-f", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        try:
            assert process.stdin and process.stderr
            process.stdin.write((tmp_path / "a.yaml").read_bytes())
            process.stdin.flush()  # and never closed: the reader waits for more
            blocked = Path(f"/proc/{process.pid}/task")
            end = time.monotonic() + 30
            while not _reads_standard_input(blocked):
                assert time.monotonic() < end, "standard input is not read"
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert "drained" in process.stderr.read().decode()
        finally:
            process.kill()


def _reads_standard_input(tasks: Path) -> bool:
    """Whether a thread of the process is in read(0, ...)."""
    for task in tasks.iterdir():
        try:
            number, first, *_ = (task / "syscall").read_text().split()
        except (OSError, ValueError):
            continue
        if number == "0" and int(first, 16) == 0:
            return True
    return False


@agent_test(workers=1, log_level="error")
async def test_an_error_nobody_thought_of_does_not_end_the_service(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    source = FileSource([tmp_path])
    outcomes: list[Outcome] = []
    failing: dict[str, int] = {}

    def fails(name: str) -> Callable[..., object]:
        real: Callable[..., object] = getattr(source, name)

        def call(*arguments: object) -> object:
            if failing.get(name, 0):
                failing[name] -= 1
                raise PermissionError(13, "a file system with ideas of its own")
            return real(*arguments)

        return call

    for name in ("read", "folders"):
        monkeypatch.setattr(source, name, fails(name))

    running = asyncio.ensure_future(Standalone(agent, source, Settings, outcomes.append).run())
    try:
        await until(lambda: outcomes, "start")
        failing.update(read=2, folders=2)
        save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v2"))
        await until(lambda: len(outcomes) == 2, "reload")
        assert failing == {"read": 0, "folders": 0}
        assert await mark_now(port) == "v2"
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait([running])


def test_a_start_ends_when_a_file_is_never_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing part may be a policy: nothing is served without it, and the error names the writer."""
    monkeypatch.setattr(module, "START_AT_MOST", 0.2)
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    source = FileSource([tmp_path], settle=0.0)
    outcomes: list[Outcome] = []

    async def talk(agent: Agent) -> None:
        with pytest.raises(FilesPending) as error:
            await Standalone(agent, source, Settings, outcomes.append).run()
        assert "a.yaml: a process has the file open for writing" in str(error.value)
        assert f"writer: {os.getpid()} (" in str(error.value)
        assert (outcomes, agent.serving) == ([], False)

    with open(tmp_path / "a.yaml", "a"):
        assert with_agent(talk, workers=1, log_level="error") == 0


@agent_test(workers=1, log_level="error")
async def test_a_start_ends_when_a_file_cannot_be_parsed(agent: Agent, tmp_path: Path) -> None:
    """It may contain policies for the other files; the error names file and line."""
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    (tmp_path / "b.yaml").write_text("kind: SecurityPolicy\nspec: [\n")
    source = FileSource([tmp_path], settle=0.0)
    outcomes: list[Outcome] = []

    with pytest.raises(FilesUnparsed, match=r"b\.yaml:\d+ Invalid .*nothing is served"):
        await Standalone(agent, source, Settings, outcomes.append).run()
    assert (outcomes, agent.serving) == ([], False)


def test_ready_says_no_while_no_port_is_open(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path), "--workers", "1")
    run.wait_ready()
    os.unlink(tmp_path / "a.yaml")  # withdrawn on purpose: nothing is listened on any more
    run.until(lambda: run.get(run.ready, "/ready")[0] == 503, "not ready")
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v2"))
    run.wait_ready()


def test_a_service_manager_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        port = free_port()
        save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
        run = Process(tmp_path, "-f", str(tmp_path / "a.yaml"), "--workers", "1")
        try:
            assert manager.recv(100) == b"READY=1"
            assert mark_of(port) == "v1"
            assert run.stop() == 0
            assert manager.recv(100) == b"STOPPING=1"
        finally:
            run.stop()


DISTRIBUTION = "/usr/bin/python3"


def _why_not_distribution() -> str:
    """Return why the distribution's interpreter cannot run modules built for this one, "" if it can."""
    if not Path(DISTRIBUTION).exists():
        return f"no {DISTRIBUTION}"
    script = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([DISTRIBUTION, "-c", script], capture_output=True, text=True, timeout=60)
    ours = f"{sys.version_info[0]} {sys.version_info[1]}"
    return "" if done.stdout.strip() == ours else f"{DISTRIBUTION} is {done.stdout}, not {ours}"


def test_the_interpreter_of_the_distribution(start: Start, tmp_path: Path) -> None:
    """Python 3.11.2 of Debian 12 wraps exceptions of an `except*` handler in a group: no end may be a traceback."""
    if why := _why_not_distribution():
        pytest.skip(why)
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1", python=DISTRIBUTION)
    run.wait_ready()
    assert mark_of(port) == "v1"
    unserved = start("-f", str(tmp_path / "missing.yaml"), "--workers", "1", python=DISTRIBUTION)
    assert unserved.process.wait(60) == 1
    taken = start("-f", str(tmp_path / "a.yaml"), after=run, python=DISTRIBUTION)
    assert taken.process.wait(60) == 1
    assert run.stop() == 0
    assert (
        "no Gateway in the files has a served listener" in unserved.said
        and "is in use, perhaps by" in taken.said
    )
    assert "Traceback" not in run.said + unserved.said + taken.said


def test_a_python_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    """No worker can be started: the gateway says which file it is, and ends."""
    save(tmp_path / "a.yaml", gateway_class(), gateway(free_port()), route("v1"))
    python = tmp_path / "python"
    python.write_text("")
    code = (
        f"import sys; sys.executable = {str(python)!r}; "
        "from edgefast.cli.main import main; main(sys.argv[1:])"
    )
    words = ["run", "-f", str(tmp_path / "a.yaml"), "--bind", "127.0.0.1", "--workers", "1"]
    words += ["--admin", "off", "--metrics", "off", "--ready", "off"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"cannot be started: {python}: Permission denied" in done.stderr
    assert "no worker runs; edgefast stops" in done.stderr and "Traceback" not in done.stderr
