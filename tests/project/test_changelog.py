"""CHANGELOG.md: one line per change, grouped as in Keep a Changelog, sorted by area."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgefast import __version__

pytestmark = pytest.mark.pure

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
_, *SECTIONS = re.split(r"(?m)^## ", TEXT)
LINES = [line for section in SECTIONS for line in section.splitlines() if line.startswith("- ")]
GROUPS = ("Upgrade notes", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
AREAS = (
    "gateway api",
    "ingress",
    "policies",
    "tls",
    "http",
    "tcp and udp",
    "rate limits",
    "cli",
    "controller",
    "install",
    "processes",
    "metrics and logs",
    "console",
)


def test_unreleased_changes_come_first() -> None:
    headings = [section.splitlines()[0] for section in SECTIONS]
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[([\d.]+)\] - \d{4}-\d\d-\d\d", line) for line in headings[1:]]
    numbers = [tuple(map(int, match[1].split("."))) for match in released if match]
    assert len(numbers) == len(released)
    assert numbers == sorted(numbers, reverse=True)
    present = tuple(map(int, __version__.split(".")))
    assert present in numbers
    assert all(number <= present for number in numbers)


@pytest.mark.parametrize("section", SECTIONS)
def test_changes_are_grouped_and_sorted_by_area(section: str) -> None:
    _, *groups = re.split(r"(?m)^### ", section)
    titles = [group.splitlines()[0] for group in groups]
    assert titles == [title for title in GROUPS if title in titles]
    for group in groups:
        areas = [line[2:].split(":")[0] for line in group.splitlines() if line.startswith("- ")]
        assert areas
        assert areas == sorted(areas, key=AREAS.index)


def test_a_change_is_one_line() -> None:
    for section in SECTIONS:
        for line in section.splitlines()[1:]:
            assert not line or line.startswith(("### ", "- ")), line
    for line in LINES:
        assert line.endswith("."), line
        assert len(line) <= 160, line


def test_a_change_is_listed_once() -> None:
    assert sorted(set(LINES)) == sorted(LINES)
