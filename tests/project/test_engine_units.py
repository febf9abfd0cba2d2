"""The engine is compiled in units: the fast path cimports none of them, and no unit cimports the engine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

CORE = Path(__file__).parents[2] / "edgefast/core"
UNITS = {path.parent.name for path in CORE.glob("*/extension.pyx")}
#: Units that a unit may cimport besides the fast path.
BENEATH = {"telemetry": {"stream"}, "tls": {"stream"}}


def cimported(files: list[Path]) -> set[str]:
    """Return the units, and "fastpath" or "engine", that these files cimport."""
    found: set[str] = set()
    for path in files:
        text = path.read_text()
        found.update(
            re.findall(
                r"^(?:from|cimport) edgefast\.core\.(\w+)(?:\.extension)?\b.*cimport|^cimport edgefast",
                text,
                re.M,
            )
        )
    return found & (UNITS | {"fastpath", "engine"})


def sources(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.p[yx][xdi]") if path.suffix in {".pyx", ".pxd", ".pxi"}]


def test_the_fast_path_cimports_no_unit() -> None:
    folders = [path for path in CORE.iterdir() if path.is_dir() and path.name not in UNITS]
    files = [path for folder in folders for path in sources(folder)]
    files += [path for path in sources(CORE) if path.stem != "engine"]
    assert cimported(files) == set()


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_a_unit_cimports_the_fast_path_and_what_is_beneath_it(unit: str) -> None:
    assert cimported(sources(CORE / unit)) == {"fastpath"} | BENEATH.get(unit, set())


def test_setup_builds_every_unit() -> None:
    text = (CORE.parents[1] / "setup.py").read_text()
    named = re.search(r"^UNITS = \((.*?)\)$", text, re.M)
    assert named is not None
    assert {name.strip(' "') for name in named[1].split(",") if name.strip()} == UNITS


def test_every_included_file_is_of_its_own_unit() -> None:
    for unit in UNITS:
        included = re.findall(
            r'^include "(\w+)/', (CORE / unit / "extension.pyx").read_text(), re.M
        )
        assert set(included) <= {unit, "core", "net", "head", "tls", "stream"}, unit
    fast = re.findall(r'^include "(\w+)/', (CORE / "fastpath.pyx").read_text(), re.M)
    assert not set(fast) & UNITS
