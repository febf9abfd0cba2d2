"""The page's files: nothing from elsewhere, nothing inline, nothing that makes markup of text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import edgefast.console.files as files

pytestmark = pytest.mark.pure

FOLDER = Path(files.__file__).with_name("static")
SCRIPTS = sorted(FOLDER.glob("*.js"))


def test_every_file_is_served_and_there_are_no_others() -> None:
    served = {path.removeprefix(files.PREFIX) or "index.html" for path in files.read_files()}
    assert served == {one.name for one in FOLDER.iterdir()}
    assert sum(one.stat().st_size for one in FOLDER.iterdir()) < 120_000


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_nothing_is_inline_or_from_elsewhere() -> None:
    page = _Page()
    page.feed((FOLDER / "index.html").read_text())
    assert page.tags
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        for name in ("src", "href"):
            target = attributes.get(name)
            assert target is None or target.startswith("#") or (FOLDER / target).is_file(), target
    for path in FOLDER.iterdir():
        addresses = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.example.com/shop"}, path.name
    assert "@import" not in (FOLDER / "console.css").read_text()
    assert "url(" not in (FOLDER / "console.css").read_text()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda one: one.name)
def test_scripts_make_no_markup_of_text(path: Path) -> None:
    text = path.read_text()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert word not in text
    assert "createContextualFragment" not in text and "DOMParser" not in text
    for name in re.findall(r"from '\./([^']+)'", text):
        assert (FOLDER / name).is_file(), name
    assert text.startswith("// "), "it says what it is"
    assert text.count("\n") < 400
