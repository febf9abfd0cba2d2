"""Names consist of known words, and banned constructions only become fewer (`ratchet.json`).

To list them: `python tests/project/vocabulary.py --count messages` and `--names`. To lower the ratchet after a change
or a rename: `python tests/project/vocabulary.py --write`.
"""

from __future__ import annotations

import ast
import json

import pytest

from . import vocabulary

pytestmark = pytest.mark.pure

KNOWN = json.loads(vocabulary.RATCHET.read_text())


def test_banned_constructions_do_not_grow() -> None:
    found = list(vocabulary.hits())
    allowed = KNOWN["constructions"]
    grown = {
        area: f"{number} > {allowed.get(area, 0)}"
        for area, number in vocabulary.counts(found).items()
        if number > allowed.get(area, 0)
    }
    shown = [
        f"{hit.file}:{hit.line}: [{hit.kind}] {hit.text}" for hit in found if hit.area in grown
    ]
    assert not grown, "\n".join(shown[:100])


def test_names_consist_of_known_words() -> None:
    """A new noun or verb is a row of docs/glossary.md, an ordinary word a word of words.txt."""
    unknown = {
        f"{name.file}:{name.line}: {name.kind} {name.name}: {word}"
        for name, word in vocabulary.unknown_names()
        if name.name not in KNOWN["names"][name.kind]
    }
    assert not unknown


def test_words_are_no_metaphors() -> None:
    listed = set(vocabulary.WORDS.read_text().split())
    assert not listed & vocabulary.METAPHORS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('raise X("a problem that nobody has")\n', ["messages:1:person"]),
        ('raise X(\n    "no kind "\n    f"{a} is told of it"\n)\n', ["messages:3:told"]),
        ('"""A thing.\n\nNor is it another.\n"""\n', ["comments:r:3:nor"]),
        ("x = 1  # what the\n# policy says\n", ["comments:r:2:said"]),
        ("x = \"`nobody`\", '# nobody'[1]\n", []),
        ('class A:\n    x: int\n    """Says it."""\n', []),
        ('x = {"key":\n  "the limit holds for all"}\n', ["messages:2:holds"]),
        ("x = 'who are you?'  # nothing\n", []),
    ],
)
def test_texts_of_sources_are_found(text: str, found: list[str]) -> None:
    hits = []
    for unit in vocabulary.python_units(text, "r"):
        plain = vocabulary._CODE.sub("x", unit.text)
        hits += [
            f"{unit.area}:{unit.line(match.start())}:{kind}"
            for kind, pattern in vocabulary._PATTERNS.items()
            for match in pattern.finditer(plain)
        ]
    assert hits == found


def test_docstrings_are_no_messages() -> None:
    """The tokenizer agrees with the parser of Python about what a docstring is."""
    for path in sorted((vocabulary.ROOT / "edgefast/proxy").rglob("*.py")):
        text = path.read_text()
        module = ast.parse(text)
        docstring = ast.get_docstring(module, clean=False)
        if docstring:
            messages = [one for one in vocabulary.python_units(text, "r") if one.area == "messages"]
            assert not [one for one in messages if one.text.startswith(docstring[:40])], path


def test_pages_leave_code_out() -> None:
    page = "# A\n\n```\nnobody\n```\n\nA line\nthat says it, `nobody`.\n\n| a | who has it |\n"
    hits = [
        f"{unit.line(match.start())}:{kind}"
        for unit in vocabulary.markdown_units(page, "docs")
        for kind, pattern in vocabulary._PATTERNS.items()
        for match in pattern.finditer(vocabulary._CODE.sub("x", unit.text))
    ]
    assert hits == ["8:said", "10:who"]
