"""README.md and docs/getting-started.md are run: every shell block, in order, with the gateway of its `make run`.

A block marked `sh` is executed. A block of another language right after it (with at most prose between) is its output, in
which a line `...` stands for any lines and `...` within a line for any text. Every block must exit with 0. A block
that is `make run` or `edgefast demo` starts the gateway, in place of the one that runs. Blocks marked `sh cluster` need a cluster: tests/cluster runs them. Fixed ports become free ones, examples/ becomes a copy
with those ports, my-gateway becomes a folder of the test, `dump` and `limits` are told the admin address: nothing else changes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.ports import Ports
from examples.running import get

from .scripts import run_script

pytestmark = [pytest.mark.wire, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
#: Pages that start a separate gateway; the blocks of each are run in their order.
IN_ORDER = (ROOT / "README.md", ROOT / "docs" / "getting-started.md")
#: What getting-started.md lets the reader run once in each terminal.
_EXPORT = "export PATH=$PWD/.venv/bin:$PATH"
#: A block that starts the demo, with free ports.
DEMO = "edgefast demo\n"
MOST_LINES = 150  # of README.md
START = 240.0  # seconds: `make run` may have to build first


@dataclass(frozen=True)
class Block:
    """One shell block and the output that the README shows for it."""

    script: str
    output: str | None


def read_blocks(text: str, mark: str = "") -> list[Block]:
    """Return the shell blocks of a page that have this mark, each with the output block that follows below the same heading."""
    found: list[Block] = []
    taken = False
    for heading, language, marked, body in re.findall(
        r"^(#+ )|^```(\w*)(?: (\w+))?\n(.*?)^```$", text, re.M | re.S
    ):
        if heading:
            taken = False
        elif language == "sh":
            taken = marked == mark
            if taken:
                found.append(Block(body, None))
        elif taken and language != "yaml" and found[-1].output is None:
            found[-1] = Block(found[-1].script, body)
    return found


def expect(shown: str) -> re.Pattern[str]:
    """What an output block stands for."""
    lines = [re.escape(line).replace(r"\.\.\.", "[^\n]*") + "\n" for line in shown.splitlines()]
    return re.compile("".join("(?s:.*)" if line == "[^\n]*\n" else line for line in lines))


@pytest.fixture
def ports(tmp_path: Path) -> Ports:
    """Free ports, and the examples that use them."""
    chosen = Ports()
    (tmp_path / "examples").mkdir()
    for path in (ROOT / "examples").iterdir():
        if path.suffix in {".yaml", ".py"}:
            (tmp_path / "examples" / path.name).write_text(chosen.replace(path.read_text()))
    return chosen


class Run:
    """`make run` as a block has it; one at a time."""

    def __init__(self, ports: Ports, folder: Path) -> None:
        self._ports = ports
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """All that was printed."""
        return (self._folder / "log").read_text()

    def start(self, script: str) -> None:
        """Run it until it is ready, in place of the one before."""
        self.stop()
        if script == DEMO:
            self._launch([sys.executable, "-c", self._make_demo()], "Ctrl-C ends the demo.")
            return
        file = re.fullmatch(r"make run(?: FILE=examples/(\S+))?\n", script)
        assert file, script
        ports, name = self._ports, file[1] or "quickstart.yaml"
        addresses = {
            name: f"127.0.0.1:{ports[fixed]}"
            for name, fixed in (("admin", 19000), ("metrics", 19001))
        }
        arguments = " ".join(f"--{name} {address}" for name, address in addresses.items())
        arguments += f" --ready 127.0.0.1:{ports[19003]} --min-drain 0 --drain-timeout 2"
        command = ["make", "run", f"FILE={self._folder}/examples/{name}", f"ARGS={arguments}"]
        self._launch(command)

    def _make_demo(self) -> str:
        """Return Python code that is `edgefast demo` with other usual ports."""
        usual = tuple(self._ports[port] for port in (8080, 8443, 19000))
        call = "from edgefast.cli.main import main; main(['demo'])"
        return f"import edgefast.cli.demo as demo; demo._PORTS = {usual}; {call}"

    def _launch(self, command: list[str], mark: str = "") -> None:
        """Start a process; it is ready when it prints `mark`, or when the readiness server answers."""
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_outside_make(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + START
        while not (mark in self.log if mark else _is_ready(self._ports[19003])):
            assert self._process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()


@pytest.fixture
def run(ports: Ports, tmp_path: Path) -> Iterator[Run]:
    """The gateway of the first block."""
    made = Run(ports, tmp_path)
    try:
        made.start("make run\n")
        yield made
    finally:
        made.stop()


def _is_ready(port: int) -> bool:
    try:
        return get(port, "/ready")[0] == 200
    except OSError:
        return False


def _outside_make() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }


@pytest.mark.parametrize("page", IN_ORDER, ids=lambda page: page.stem)
def test_blocks_do_what_they_show(page: Path, ports: Ports, run: Run, tmp_path: Path) -> None:
    text = page.read_text()
    terminal = f"{_EXPORT}\n" if _EXPORT in text else ""
    first, *blocks = read_blocks(text)
    assert first.script == "make run\n", "the first block starts the gateway"
    assert blocks and any(block.output is not None for block in blocks)
    for block in blocks:
        if block.script.startswith("make run") or block.script == DEMO:
            run.start(block.script)
            continue
        script = re.sub(
            r"(?<![\w/])(examples/|my-gateway)", rf"{tmp_path}/\1", ports.replace(block.script)
        )
        for name in ("dump", "limits"):
            asked = f"edgefast {name} --admin 127.0.0.1:{ports[19000]}"
            script = script.replace(f"edgefast {name}", asked)
        out, shown = run_script(terminal + script, page.name, env=_outside_make())
        if block.output is not None:
            output = ports.replace(block.output).replace("my-gateway", f"{tmp_path}/my-gateway")
            assert expect(output).fullmatch(out), shown


def test_what_make_run_prints(ports: Ports, run: Run) -> None:
    wanted = [
        f"curl -i http://localhost:{ports[8080]}/api",
        f"origin web listens on 127.0.0.1:{ports[3001]}",
        f"origin api listens on 127.0.0.1:{ports[3002]}",
    ]
    end = time.monotonic() + 30
    while True:
        missing = [line for line in wanted if line not in run.log]
        if not missing:
            return
        assert time.monotonic() < end, (missing, run.log)
        time.sleep(0.02)


@pytest.mark.pure
def test_the_readme_is_short() -> None:
    assert len(IN_ORDER[0].read_text().splitlines()) < MOST_LINES


@pytest.mark.pure
def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            if "://" in target:
                continue
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name} -> {target}"
            if anchor and found.suffix == ".md":
                assert anchor in _anchors(found), f"{page.name} -> {target}#{anchor}"


def _anchors(page: Path) -> set[str]:
    """Return the anchors that headings get on the web: lower case, no punctuation, dashes for spaces."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_an_output_with_gaps() -> None:
    assert expect("a\n...\nb ... d\n").fullmatch("a\nx\ny\nb c d\n")
    assert not expect("a\n...\nb\n").fullmatch("a\nx\nb\nc\n")
