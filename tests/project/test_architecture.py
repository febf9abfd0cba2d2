"""ARCHITECTURE.md and docs/internals name only files that exist, each folder of code, and the enforced order of imports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/internals").glob("*.md"))]
MOST_LINES = 250


def _named(text: str) -> set[str]:
    """Return the paths of the repository that a page names, in backticks or as words."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    paths = re.findall(r"(?<![\w/.-])(?:edgefast|controller|csrc|tests|bench)/[\w./-]*\w", text)
    return set(paths)


def test_the_page_is_short() -> None:
    assert TEXT.count("\n") <= MOST_LINES, "move details to docs/internals"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    text = page.read_text()
    missing = {name for name in _named(text) if not (ROOT / name).exists()}
    # A file name without its folder cannot be checked, and cannot be opened from an editor.
    bare = set(re.findall(r"`(\w+\.(?:pyx|pxd|pxi|py|c|h))`", text))
    assert not missing | bare - {"__init__.py"}


def test_paths_are_named() -> None:
    assert len(_named(TEXT)) > 60


def test_each_folder_is_a_room() -> None:
    """The table has each package: those of edgefast and controller, or the package above them."""
    table = TEXT.partition("| folder | owns |")[2].partition("\n\n")[0]
    rooms = set(re.findall(r"^\| `([\w/]+)` \|", table, re.MULTILINE))
    packages = {
        str(path.parent.relative_to(ROOT))
        for base in ("edgefast", "controller")
        for path in (ROOT / base).glob("*/__init__.py")
    }
    assert not packages - rooms, "not in the table"
    assert not {room for room in rooms if not (ROOT / room).is_dir()}, "not a folder"


def test_each_folder_of_the_engine_compiler_and_proxy_is_described() -> None:
    text = "".join(page.read_text() for page in PAGES)
    packages = {
        str(path.parent.relative_to(ROOT))
        for base in ("edgefast/proxy", "edgefast/translate")
        for path in (ROOT / base).glob("*/__init__.py")
    }
    assert not {one for one in packages if not re.search(rf"{re.escape(one)}\b", text)}


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
