"""CHANGELOG.md: one line per change, newest version first, and the version at hand is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgefast import __version__

pytestmark = pytest.mark.pure

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()


def test_the_present_version_comes_first() -> None:
    versions = re.findall(r"^## (\S+)", TEXT, re.M)
    assert versions[0] == __version__
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert numbers == sorted(numbers, reverse=True)


def test_a_change_is_one_line() -> None:
    body = TEXT[TEXT.index("\n## ") :]
    for line in body.splitlines():
        assert not line or line.startswith(("## ", "- ")), line
        assert not line.startswith("- ") or line.endswith("."), line
