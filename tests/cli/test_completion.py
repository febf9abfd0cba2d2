"""`edgefast completion`: the scripts name every command and option, and each shell completes with its script."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import click
import pytest

from cli.calling import call
from edgefast.cli.main import BUILT_IN, main
from edgefast.cli.shells.tree import CommandNode, make_tree, walk

DEADLINE = 60.0  # seconds for one shell


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed here")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script of each shell, and some files to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "work").mkdir()
    (folder / "work" / "gateway one.yaml").touch()
    (folder / "work" / "gates").mkdir()
    (folder / "work" / "w*k").touch()  # a name is no pattern
    (folder / "work" / "weak").touch()
    found = {}
    for shell in ("bash", "zsh", "fish"):
        found[shell] = folder / shell
        found[shell].write_text(call("completion", shell).out)
    return found


def complete_bash(script: Path, line: str) -> list[str]:
    """Return what bash proposes for the end of a command line."""
    words = line.split(" ")
    text = f"""
        source {script}
        COMP_WORDS=({" ".join(shlex.quote(one) for one in words)})
        COMP_CWORD={len(words) - 1}
        _edgefast
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-uc", text],
        cwd=script.parent / "work",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert done.stderr == ""
    return sorted(filter(None, done.stdout.split("\n")))


def complete_fish(script: Path, line: str) -> list[str]:
    text = f"source {script}; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", text],
        cwd=script.parent / "work",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert done.stderr == ""
    return sorted(one.partition("\t")[0] for one in done.stdout.splitlines())


@pytest.mark.pure
def test_the_tree_has_every_command_and_option() -> None:
    tree = make_tree(main)
    by_path = {" ".join(node.path): node for node in walk(tree)}
    assert set(BUILT_IN) | {"", "install", "uninstall"} == set(by_path)
    context = click.Context(main)
    for name in BUILT_IN:
        command = main.get_command(context, name)
        assert command is not None
        wanted = {
            flag
            for one in command.params
            if isinstance(one, click.Option)
            for flag in (*one.opts, *one.secondary_opts)
        }
        assert {flag for one in by_path[name].options for flag in one.flags} == {*wanted, "-h", "--help"}  # fmt: skip


@pytest.mark.pure
def test_the_kinds_of_values() -> None:
    kinds = {
        (node.name, flag): (one.value.kind if one.value else "flag")
        for node in walk(make_tree(main))
        for one in node.options
        for flag in one.flags
    }
    assert kinds["run", "-f"] == kinds["run", "--access-log"] == kinds["run", "--to-ca"] == "file"
    assert kinds["run", "--state-dir"] == "folder"
    assert kinds["run", "--log-level"] == kinds["check", "-o"] == "choice"
    assert kinds["run", "--to"] == kinds["run", "--admin"] == "text"
    assert kinds["run", "--no-console"] == kinds["run", "--help"] == "flag"


@pytest.mark.pure
def test_help_with_signs_of_the_shells() -> None:
    """No text of a command can leave its quotes."""

    @click.group()
    def group() -> None:
        """Do it's [thing]: $(touch made) `touch made`."""

    @group.command()
    @click.option("--a-b", type=click.Choice(["x", "y"]), help='It\'s "a" [b]: $(touch made) \\.')
    def sub(a_b: str) -> None:
        """Print `touch made` and 'that'; touch made."""

    from edgefast.cli.completion import _RENDER

    tree: CommandNode = make_tree(group)
    for render in _RENDER.values():
        text = render("edgefast", tree)
        assert "sub" in text and "a-b" in text
    for shell, render in _RENDER.items():
        if shutil.which(shell):
            done = subprocess.run(
                [shell, "-n"], input=render("edgefast", tree), text=True, capture_output=True
            )
            assert (done.returncode, done.stderr) == (0, ""), shell


@pytest.mark.pure
def test_an_unknown_shell() -> None:
    outcome = call("completion", "tcsh")
    assert outcome.status == 2
    assert "'bash', 'zsh', 'fish'" in outcome.err


CASES = [
    ("edgefast che", ["check"]),
    ("edgefast --ver", ["--version"]),
    ("edgefast run --take", ["--take-over"]),
    ("edgefast run --log-level w", ["warning"]),
    ("edgefast run --echo --log-level ", ["debug", "error", "info", "warning"]),
    ("edgefast check --strict -o y", ["yaml"]),
    ("edgefast completion ", ["bash", "fish", "zsh"]),
    ("edgefast log-level d", ["debug"]),
    ("edgefast problem RefNot", ["RefNotPermitted"]),
    ("edgefast docs guides/ca", ["guides/canary"]),
    # The value of an option is no command.
    ("edgefast run --host check --take", ["--take-over"]),
    ("edgefast run --admin x", []),
]


@needs("bash")
@pytest.mark.pure
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        *CASES,
        ("edgefast run --log-level = w", ["warning"]),  # as bash splits --log-level=w
        ("edgefast run --log-level =", ["debug", "error", "info", "warning"]),
        ("edgefast run --log-level = info --take", ["--take-over"]),
        ("edgefast run -f ga", ["gates", "gateway one.yaml"]),
        ("edgefast run -f w", ["w*k", "weak"]),
        ("edgefast run --state-dir ga", ["gates"]),
        ("edgefast init ga", ["gates"]),
        ("edgefast check ga", ["gates", "gateway one.yaml"]),
        ("edgefast check -- -", []),
        ("edgefast nothing ", []),
    ],
)
def test_bash(scripts: dict[str, Path], line: str, wanted: list[str]) -> None:
    if line == "edgefast nothing ":
        assert "check" in complete_bash(scripts["bash"], line), "an unknown word is no command"
        return
    assert complete_bash(scripts["bash"], line) == wanted


@needs("fish")
@pytest.mark.pure
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        *CASES,
        ("edgefast run --log-level=w", ["--log-level=warning"]),
        ("edgefast run -f ga", ["gates/", "gateway\\ one.yaml"]),
        ("edgefast run --state-dir ga", ["gates/"]),
        ("edgefast init ga", ["gates/"]),
    ],
)
def test_fish(scripts: dict[str, Path], line: str, wanted: list[str]) -> None:
    found = complete_fish(scripts["fish"], line)
    assert [one.replace("gateway one", "gateway\\ one") for one in found] == wanted


@pytest.mark.parametrize(
    ("shell", "setup"),
    [
        pytest.param(["bash", "--norc", "--noprofile", "-i"], "", marks=needs("bash"), id="bash"),
        pytest.param(["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; ", marks=needs("zsh"), id="zsh"),
    ],
)  # fmt: skip
@pytest.mark.wire
def test_the_tab_key(scripts: dict[str, Path], shell: list[str], setup: str) -> None:
    """A real shell on a terminal: the Tab key completes a command, an option, a choice and a file."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        shell,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=scripts["bash"].parent / "work",
        env={**os.environ, "TERM": "dumb", "PS1": "$ ", "HISTFILE": "", "INPUTRC": "/dev/null"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        script = scripts[Path(shell[0]).name]
        os.write(ours, f"{setup}source {script}; edgefast() {{ echo; echo called: $*; }}; echo re''ady\n".encode())  # fmt: skip
        read_until(ours, b"ready\r\n")
        os.write(ours, b"edgefast ru\t--log-le\twarn\t--take\t-f gatew\t\n")
        shown = read_until(ours, b"one.yaml\r\n", b"called: ")
        shown = shown.replace(b"--log-level=", b"--log-level ")  # zsh adds the sign
        assert b"called: run --log-level warning --take-over -f gateway one.yaml" in shown
    finally:
        process.kill()
        process.wait(20)
        os.close(ours)


def read_until(terminal: int, mark: bytes, before: bytes = b"") -> bytes:
    """Return the output until `mark` has come, after `before`."""
    shown, end = b"", time.monotonic() + DEADLINE
    while mark not in shown.partition(before)[2] if before else mark not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, shown
        shown += os.read(terminal, 65536)
    return shown
