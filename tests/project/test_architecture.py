"""ARCHITECTURE.md names only files that exist, and the room order it gives is the one that is enforced."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_file_that_is_named_exists() -> None:
    known = [
        str(path.relative_to(ROOT))
        for room in ("edgefast", "controller", "csrc", "tests")
        for path in (ROOT / room).rglob("*")
    ]
    named = re.findall(r"`([\w/*]+\.(?:pyx|pxd|pxi|py|c|h))`", TEXT)
    assert len(named) > 40
    missing = []
    for name in named:
        wild = re.escape(name).replace(r"\*", "[^/]*")
        pattern = re.compile(rf"(?:^|/){wild}$")
        if not any(pattern.search(path) for path in known):
            missing.append(name)
    assert not missing


def test_the_order_of_rooms_is_the_enforced_one() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = next(
        one["layers"]
        for one in config["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers"
    )
    shown = re.search(r"`(cli -> [^`]*)`", TEXT)
    assert shown
    assert re.split(r"\s*->\s*", " ".join(shown[1].split())) == layers
