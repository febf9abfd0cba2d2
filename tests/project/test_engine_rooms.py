"""The rooms of the engine are those of docs/internals/engine.md, and each of their files is part of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
CORE = ROOT / "edgefast/core"


def _rooms() -> set[str]:
    return {path.parent.name for path in CORE.glob("*/*.p[yx][dx]")}


def _included(text: str) -> str:
    """A text of includes, with those of lists of a room in their place."""
    return re.sub(
        r'^include "(\w+/\w+\.pxi)"$',
        lambda found: _included((CORE / found[1].removeprefix("core/")).read_text()),
        text,
        flags=re.MULTILINE,
    )


def test_every_file_is_included_once() -> None:
    for kind in ("pyx", "pxd"):
        units = [CORE / f"fastpath.{kind}", *CORE.glob(f"*/extension.{kind}")]
        text = "\n".join(_included(path.read_text()) for path in units)
        included = re.findall(rf'^include "(\w+/\w+)\.{kind}"$', text, re.MULTILINE)
        there = [
            str(path.relative_to(CORE).with_suffix(""))
            for path in CORE.glob(f"*/*.{kind}")
            if path.stem != "extension"
        ]
        assert sorted(included) == sorted(there), kind


def test_rooms_are_the_ones_of_the_page() -> None:
    text = (ROOT / "docs/internals/engine.md").read_text().partition("| room | what it knows |")[2]
    table = text.partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == _rooms()


def test_rooms_say_what_they_must_never_do_or_give() -> None:
    for room in _rooms():
        said = ast.get_docstring(ast.parse((CORE / room / "__init__.py").read_text())) or ""
        assert "Must never" in said or "Out:" in said, room


def test_requests_know_no_connection_and_no_framing() -> None:
    """What exchanges, limits, routes, heads and logs are made of holds for every protocol: HTTP/1 is its codecs' affair."""
    http1 = re.compile(
        r"\bH1\w+|\bConnection\b|\bwire\b|\btransport\b|[Ww]itness|[Cc]hunk|CHUNKED"
        r"|connection: |transfer-encoding: |\b101\b|\b[DU]_[A-Z]+\b|\bclosing\b|\bkeep_alive\b|engine\.gather\b"
    )
    named = [
        f"{path.relative_to(CORE)}:{number}: {line.strip()}"
        for room in ("exchange", "limit", "route", "head", "telemetry")
        for path in sorted((CORE / room).glob("*.p[yx][xd]"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if http1.search(line)
    ]
    assert not named


def test_only_a_pool_makes_connections_to_backends() -> None:
    makers = {
        path.name
        for path in (CORE / "upstream").glob("*.p[yx][xd]")
        if re.search(r"\b(?:H[12]\w+|\w*Connection)(?:\.__new__)?\(", path.read_text())
    }
    assert makers == {"protocol_negotiation.pyx"}
