"""docs/guides/explain.md and docs/guides/diff.md have every check, code, kind and field that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from edgefast.explain import changes, explanation

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
EXPLAIN = (ROOT / "docs/guides/explain.md").read_text()
DIFF = (ROOT / "docs/guides/diff.md").read_text()


def listed(text: str, heading: str) -> set[str]:
    """The words in the first column of the table under a heading."""
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {
        word
        for line in section.splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([\w\[\]]+)`", line.split("|")[1])
    }


def in_sources(pattern: str) -> set[str]:
    sources = (ROOT / "edgefast/explain").glob("*.py")
    return {word for path in sources for word in re.findall(pattern, path.read_text())}


def test_checks() -> None:
    told = in_sources(r'check="(\w+)"') | in_sources(r'Refusal\(\s*[\w.]+, "(\w+)"')
    assert listed(EXPLAIN, "Checks") == told


def test_codes() -> None:
    told = {"path", "method", "header", "query"} | in_sources(r'code="(\w+)"')
    told |= in_sources(r'hit\.rule, "(\w+)"') | in_sources(r'entry\.match, rule, "(\w+)"')
    assert listed(EXPLAIN, "Rules that lost") == told


def test_fields() -> None:
    fields = {name.removesuffix("[]") for name in listed(EXPLAIN, "JSON")}
    assert fields == {*explanation.Explanation.__struct_fields__} - {"more_candidates"}
    for one in vars(explanation).values():
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            for field in one.__struct_fields__:
                assert f"`{field}" in EXPLAIN, (one, field)


def test_kinds_and_fields_of_diff() -> None:
    assert listed(DIFF, "Kinds of change") == {*get_args(changes.Kind), "breaks"} - {"breaks"}
    for one in (changes.Change, changes.Difference, changes.Example, changes.Side):
        for field in one.__struct_fields__:
            assert f"`{field}" in DIFF, (one, field)
