"""`edgefast docs`: every page by its name, and every page that a message points at exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cli.calling import call
from edgefast.cli.docs import find_pages

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("migrating", "guides/migrating/README.md"),
        ("guides/migrating", "guides/migrating/README.md"),
        ("docs/guides/tracing.md", "guides/tracing.md"),
        ("tracing#spans", "guides/tracing.md"),
        ("migrating/traefik", "guides/migrating/traefik.md"),
        ("problems/Invalid", "problems/Invalid.md"),
        ("problems", "problems/README.md"),
        ("reference/README", "reference/README.md"),
    ],
)
def test_a_page_is_printed(name: str, file: str) -> None:
    text = (ROOT / "docs" / file).read_text()
    if text.startswith("<!-- Made from"):
        text = text.partition("-->")[2].lstrip()
    assert call("docs", name).out == text


def test_all_pages_are_listed_with_their_titles() -> None:
    lines = call("docs").out.splitlines()
    assert len(lines) > 20 and all(len(line.split("  ", 1)) == 2 for line in lines)


@pytest.mark.parametrize("name", ["migratin", "../README", "/etc/passwd", ""])
def test_a_page_that_does_not_exist(name: str) -> None:
    outcome = call("docs", name)
    assert outcome.status == 2 and "edgefast docs lists all" in outcome.err
    assert name != "migratin" or "migrating" in outcome.err


#: Files with texts for pages of docs/, or for a file beside them.
_PAGES = {"rules_file.py", "refdoc.py", "page.py", "values.py"}


def test_messages_point_at_pages_that_exist() -> None:
    """They name the command that prints a page: a wheel and an image have no docs/."""
    pages, told, paths = find_pages(), [], []
    for path in [*(ROOT / "edgefast").rglob("*.py"), *(ROOT / "controller").rglob("*.py")]:
        tree = ast.parse(path.read_text())
        texts = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                told += re.findall(r"edgefast docs ([a-z][\w/-]*)", node.value)
                if path.name not in _PAGES and id(node) not in texts:
                    paths += re.findall(r"docs/[\w/-]+\.md", node.value)
    assert len(told) > 5
    ends = {page.rpartition("/")[2] for page in pages}
    assert not set(told) - pages.keys() - ends - {"lists"}
    assert not paths, "name the command that prints the page: edgefast docs PAGE"
