"""Rules that every source file keeps: it says what it is, it has one concept, it has a telling name."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
MOST_LINES = 600
NAMELESS = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}


def _sources(*patterns: str) -> list[Path]:
    rooms = ("edgefast", "controller", "csrc", "bench", "release", "tests", "examples")
    found = [
        path for room in rooms for pattern in patterns for path in (ROOT / room).rglob(pattern)
    ]
    made = {"build", "results", "_csrc.c"}
    return sorted(path for path in found if not made & set(path.relative_to(ROOT).parts))


def test_there_are_sources() -> None:
    assert len(_sources("*.py")) > 50
    assert len(_sources("*.[ch]")) > 10


def test_python_modules_say_what_they_are() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in _sources("*.py")
        if path.stat().st_size and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent, "no module docstring"


def test_native_files_open_with_a_comment() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in _sources("*.[ch]", "*.pyx", "*.pxd", "*.pxi")
        if not re.match(r"\s*(#|/\*|//)", path.read_text())
    ]
    assert not silent, "no opening comment"


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in _sources("*.py", "*.[ch]", "*.pyx", "*.pxd")
        if (lines := path.read_text().count("\n")) > MOST_LINES
    }
    assert not long, f"more than {MOST_LINES} lines: split by concept"


def test_names_tell_something() -> None:
    assert not [
        str(path.relative_to(ROOT))
        for path in _sources("*.py", "*.[ch]", "*.pyx")
        if path.stem in NAMELESS
    ]


def test_no_tools_folder_is_committed() -> None:
    """Caches of programs that tests run begin with a dot and are nobody's source."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    hidden = {one.partition("/")[0] for one in listed if one.startswith(".")}
    assert hidden == {".ci", ".clang-format", ".dockerignore", ".github", ".gitignore"}
