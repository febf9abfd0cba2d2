"""The command as installed: starts fast, knows its subcommands, refuses what it does not know, colours terminals only."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import controller.main
from cli.calling import call
from edgefast import __version__
from edgefast.cli import output
from edgefast.cli.main import BUILT_IN, main
from edgefast.core.engine import tls_library

ROOT = Path(__file__).parents[2]


@pytest.mark.pure
def test_version() -> None:
    assert call("--version").out == f"edgefast {__version__}\n"
    outcome = call("version")
    assert outcome.status == 0
    assert outcome.out.startswith(f"edgefast {__version__} (")
    assert f", {tls_library()}, " in outcome.out
    told = json.loads(call("version", "-o", "json").out)
    assert (told["edgefast"], told["tls"]) == (__version__, tls_library())


@pytest.mark.pure
def test_help_names_every_command() -> None:
    outcome = call("--help")
    assert outcome.status == 0
    for name, (_, _, line) in BUILT_IN.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", outcome.out, re.M)
    assert re.search(r"^  install +Install or upgrade", outcome.out, re.M), "of another package"
    assert "..." not in outcome.out.partition("Commands:")[2], "a line is cut"


def _examples(text: str) -> list[list[str]]:
    """Return the example commands of a help text; each has a comment above it."""
    lines = text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert all(line.startswith("    # ") for line in lines[::2]), lines
    return [shlex.split(line) for line in lines[1::2]]


@pytest.mark.pure
@pytest.mark.parametrize("name", [*BUILT_IN, "install", "uninstall"])
def test_each_command_has_help(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of purpose, three examples that are valid commands, then the options with a description each."""
    outcome = call(name, "--help")
    assert outcome.status == 0
    assert outcome.out.startswith("Usage:")
    command = main.get_command(click.Context(main), name)
    assert command is not None and all(
        isinstance(one, click.Argument) or one.help for one in command.params
    )
    monkeypatch.chdir(ROOT)
    examples = _examples(outcome.out)
    assert len(examples) == 3
    for program, first, *words in examples:
        assert (program, first) == ("edgefast", name)
        command.make_context(name, words)  # a flag or a file that does not exist is wrong usage
    if name in ("check", "translate", "explain", "diff"):
        assert call(*examples[0][1:]).status in (0, 1), "the first one works on files"


@pytest.mark.pure
@pytest.mark.parametrize("name", ["run", "certgen"])
def test_each_command_of_the_controller_has_help(name: str) -> None:
    command = controller.main.main.commands[name]
    with click.Context(command, info_name=name) as context:
        text = command.get_help(context)
    examples = _examples(text)
    assert len(examples) == 3
    for program, first, *words in examples:
        assert (program, first) == ("edgefast-controller", name)
        command.make_context(name, words)
    assert all(one.help for one in command.params if isinstance(one, click.Option))


@pytest.mark.pure
def test_a_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["Gateway shop/edge", "False", "one two three " * 20], ["x" * 100, "True", ""]]
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        output.write_table(["OBJECT", "STATUS", "MESSAGE"], rows)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("three") == 20
    assert sum(line.count("x") for line in lines) == 100


@pytest.mark.pure
def test_unknown_command() -> None:
    outcome = call("serve")
    assert outcome.status == 2
    assert "No such command 'serve'" in outcome.err


@pytest.mark.pure
def test_a_slip_of_the_pen() -> None:
    outcome = call("expln", "GET", "http://a/")
    assert outcome.status == 2
    assert "No such command 'expln', did you mean explain?" in outcome.err


@pytest.mark.pure
def test_explain_means_get() -> None:
    """As curl does, with the method before the URL where there is one; a method alone is no host."""
    files = ("explain", "-f", str(ROOT / "examples" / "quickstart.yaml"), "-o", "json")
    url = "http://localhost:8080/api"
    assert call(*files, url).out == call(*files, "GET", url).out != call(*files, "POST", url).out
    assert call(*files, "localhost:8080/api").status == 0
    for words in ((), ("GET",), ("GET", url, "more")):
        outcome = call(*files, *words)
        assert outcome.status == 2 and "[METHOD] URL" in outcome.err


@pytest.mark.pure
def test_version_loads_nothing_heavy() -> None:
    script = "import sys, edgefast.cli.version; print(sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    for module in ("asyncio", "uvloop", "yaml", "msgspec", "cryptography", "importlib.metadata"):
        assert f"'{module}'" not in loaded


@pytest.mark.pure
@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (
            "check -f examples/quickstart.yaml",
            "asyncio cryptography edgefast.core edgefast.proxy edgefast.explain.deciding_check",
        ),
        (
            "problem Invalid",
            "asyncio cryptography edgefast.core edgefast.proxy edgefast.explain.deciding_check",
        ),
        ("run --help", "cryptography edgefast.explain.deciding_check edgefast.console.console"),
        (
            "proxy --help",
            "cryptography grpc yaml edgefast.translate edgefast.providers edgefast.explain",
        ),
    ],
)
def test_commands_load_only_what_they_use(words: str, unused: str) -> None:
    """Each second of a start is paid by every call in a script, and by every pod."""
    script = "import sys\nfrom edgefast.cli.main import main\ntry: main()\nfinally: sys.stdout = sys.stderr; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split()], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert "edgefast.cli.main" in loaded and not loaded & set(unused.split())


@pytest.mark.pure
def test_no_kind_has_a_decoder_before_its_first_object() -> None:
    script = "import edgefast.cli.check, edgefast.api.model.shape as m; print(m.shape_of.cache_info().currsize)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "0\n"


@pytest.mark.pure
@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_only_on_a_terminal(no_color: str, coloured: bool, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: none}]}\n"
    )
    command = [sys.executable, "-m", "edgefast.cli.main", "check", "-f", str(path)]
    environment = os.environ | {"NO_COLOR": no_color, "TERM": "xterm"}
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as screen:
        subprocess.run(
            command, cwd=ROOT, env=environment, stdout=theirs, stderr=subprocess.DEVNULL, timeout=30
        )
        os.close(theirs)
        shown = screen.read(65536)
    assert (b"\x1b[" in shown) == coloured
    piped = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=30)
    assert b"\x1b[" not in piped.stdout
    assert piped.returncode == 1
