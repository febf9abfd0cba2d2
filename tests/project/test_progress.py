""".ci/progress: what is silent for long is seen to be at work, and stays what it is."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "progress"


def command(*words: str) -> list[str]:
    return [str(SCRIPT), "building", "60", *words]


@pytest.mark.pure
def test_output_input_and_status_are_the_commands_own() -> None:
    done = subprocess.run(
        command("bash", "-c", "cat; echo aside >&2; exit 7"),
        input="in\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (7, "in\n")
    assert done.stderr == "building (about 60 s on two cores)\naside\n"


@pytest.mark.pure
def test_lines_come_while_it_works(tmp_path: Path) -> None:
    """It works until two of them have come, and nothing of it is left then."""
    told = tmp_path / "told"
    wait = f"until (( $(grep -c ' s, of about 60' {told}) >= 2 )); do sleep 0.02; done"
    with told.open("w") as err:
        environment = os.environ | {"PROGRESS_EVERY": "0.05"}
        done = subprocess.run(command("bash", "-c", wait), stderr=err, env=environment, timeout=60)
    assert done.returncode == 0
    lines = told.read_text().splitlines()
    assert re.fullmatch(r"building: \d+ s, of about 60 on two cores", lines[1])


@pytest.mark.pure
def test_a_terminal_has_one_line_that_is_gone_at_the_end() -> None:
    master, slave = pty.openpty()
    try:
        done = subprocess.run(command("sleep", "1.2"), stderr=slave, timeout=60)
    finally:
        os.close(slave)
    said = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0
    assert "\rbuilding: 1 s, of about 60 on two cores " in said
    assert said.endswith("\r\x1b[K") and said.count("\n") == 1


@pytest.mark.pure
def test_ctrl_c_ends_the_command() -> None:
    """As a terminal does it: to the whole group."""
    process = subprocess.Popen(
        command("bash", "-c", "echo begun; exec sleep 1000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Whoever started the tests in the background may have it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    os.killpg(process.pid, signal.SIGINT)
    with process.stdout as out:
        assert out.read() == b"", "nobody holds it any more"
    assert process.wait(60) != 0
