"""The words of the project: constructions that texts do not use, and words that names do not use.

In: the sources and pages of the repository. Out: `hits` (banned constructions, one by one), `unknown_names` (names with
a word that neither docs/glossary.md nor words.txt has). Limits: `ratchet.json`, which only falls.
Use: `python tests/project/vocabulary.py --count [AREA]`, `--names`, `--write` (lowers the
ratchet to what is counted; `--force` also raises it).
Must never: count code; text in backticks, fences and quoted code is removed before a search.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RATCHET = HERE / "ratchet.json"
GLOSSARY = ROOT / "docs/glossary.md"
WORDS = HERE / "words.txt"

_START = r"(?:^|(?<=[.!?:;] )|(?<=\n))"
# Each pattern is searched in one text unit: a string, a docstring, a block of comments, a paragraph.
BANNED = {
    "person": r"\b(?:nobody|somebody|whoever|whosoever|everybody|anybody|whom)\b",
    "who": r"\bwho\b(?! (?:wrote|am)\b)(?![^.;]*\?)",
    "whose-opener": rf"{_START}Whose\b",
    "told": r"\b(?:is|are|was|were|be|been|being|what|as|not|only|also)(?: \w+ly)? told\b(?! apart)"
    r"|\btells? (?:of|who|what|whom)\b",
    "said": r"(?<!message )(?<!warning )(?<!comment )(?<!comments )(?<!line )(?<!error )(?<!answer )"
    r"\b(?:says?|said|saying)\b(?!,)",
    "none": rf"\b(?:is|are|was|were|be) none\b(?! of\b)|{_START}None (?:is|are|was|of)\b",
    "there-is": rf"{_START}There (?:is|are|was|were)\b",
    "of-chain": r"\bof (?:(?:the|a|an|its|each|all|one|this|that) )?\w+ of (?:(?:the|a|an|its|each|all|one|this|that) )?\w+ of\b",
    "so-opener": r"(?:^|(?<=[.!?] )|(?<=\n))So (?!that\b)",
    "nor": r"(?:^|(?<=[.!?:;,] )|(?<=\n))[Nn]or\b",
    "in-words": r"\bin words\b",
    "lets-go": r"\blet(?:s|ting)? (?:\w+ )?go\b",
    "gives-way": r"\bgiv(?:es?|ing) way\b|\bgave way\b",
    "takes-place": r"\bt(?:akes?|ook|aking) place\b",
    "stands": r"\b(?:stands?|stood)\b(?! for\b|-|alone)",
    "holds": r"\bholds?(?: (?:for|as|too|everywhere|there|here|whatever|in any)\b)|\bholds(?:[.;:,]|$)",
    "aphorism": r": the end(?! of)\b|\banew\b|\bbounds nothing\b|\bloosens?\b|\bon earth\b|\bgoes on as it came\b"
    r"|\bgets? in by\b|\bwaits? for a place\b|\b[Aa]s of curl\b|\bis a look at\b",
    "object-opener": r"(?:^|(?<=[.!?] )|(?<=\n))(?:Whatever|Whom|Of whom|To whom|What)\b(?=[^?\n]*?\b(?:is|are|does|goes|has|gets)\b[^?\n]*\.)(?![^.]*\?)",
}
_PATTERNS = {name: re.compile(text) for name, text in BANNED.items()}

_TOKEN = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?<![A-Za-z0-9_])(?P<prefix>[rRbBuUfFcC]{0,2})"
    r"(?P<string>\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<open>[\(\[\{])|(?P<close>[\)\]\}])",
    re.DOTALL,
)
_C_TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)",
    re.DOTALL,
)
_CODE = re.compile(r"``[^`]*``|`[^`\n]*`|\bwho\.(?:is|am)\b")
_PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{1,}")


class Hit(NamedTuple):
    """One banned construction."""

    area: str
    file: str
    line: int
    kind: str
    text: str


class Unit(NamedTuple):
    """A text of one area, with the line on which each of its characters is."""

    area: str
    text: str
    lines: tuple[tuple[int, int], ...]

    def line(self, offset: int) -> int:
        found = self.lines[0][1]
        for start, number in self.lines:
            if start > offset:
                break
            found = number
        return found


def _joined(area: str, pieces: Iterable[tuple[int, str]], glue: str = " ") -> Unit:
    text, lines = "", []
    for number, piece in pieces:
        lines.append((len(text), number))
        text += piece + glue
    return Unit(area, text.rstrip(), tuple(lines) or ((0, 1),))


def _paragraphs(area: str, first: int, text: str) -> Iterator[Unit]:
    """Cut a text at empty lines, list items and table cells; join the lines of each part."""
    part: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), first):
        line = raw.strip()
        if not line or re.match(r"(?:[-*|#>]|\d+\.) ?", line):
            if part:
                yield _joined(area, part)
            part = []
        if line.startswith("|"):
            for cell in line.strip("|").split(" | "):
                yield _joined(area, [(number, cell.strip())])
        elif line:
            part.append((number, re.sub(r"^(?:[-*#>]+|\d+\.) +", "", line)))
    if part:
        yield _joined(area, part)


def _body(prefix: str, quoted: str) -> str:
    width = 3 if quoted[:3] in ('"""', "'''") else 1
    text = quoted[width:-width]
    if "f" in prefix.lower():
        text = re.sub(r"\{\{|\}\}", "  ", text)
        while (less := re.sub(r"\{[^{}]*\}", "X", text)) != text:
            text = less
    # An escaped line end ends a sentence as a real one does.
    return text if "r" in prefix.lower() else text.replace("\\n", "\n ")


def python_units(text: str, room: str) -> Iterator[Unit]:
    """Yield messages (strings that are no docstring), docstrings and comments of Python and Cython text."""
    depth = at = line = 0
    last = ""
    strings: list[tuple[int, str]] = []
    comments: list[tuple[int, str]] = []
    line = 1
    for found in _TOKEN.finditer(text):
        gap = text[at : found.start()]
        line += gap.count("\n")
        if gap.strip():
            last = gap.strip()[-1]
        own_line = not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
        if strings and (gap.strip() or found["open"] or found["close"]):
            yield from _string_units(strings)
            strings = []
        if comments and (gap.strip() or not found["comment"] or not own_line):
            yield _joined(f"comments:{room}", comments)
            comments = []
        if found["open"]:
            depth, last = depth + 1, found[0]
        elif found["close"]:
            depth, last = depth - 1, found[0]
        elif found["comment"]:
            comments.append((line, found[0].lstrip("#").strip()))
        else:
            body = _body(found["prefix"], found["string"])
            if (
                depth <= 0
                and own_line
                and found["prefix"] in ("", "r")
                and last not in ("=", "+", "\\")
            ):
                yield from _paragraphs(f"comments:{room}", line, body)
            else:
                strings.append((line, body))
        line += found[0].count("\n")
        at = found.end()
    if comments:
        yield _joined(f"comments:{room}", comments)
    yield from _string_units(strings)


def _string_units(strings: list[tuple[int, str]]) -> Iterator[Unit]:
    unit = _joined("messages", [(line, body) for line, body in strings], glue="")
    if _PROSE.search(unit.text) and not unit.text.lstrip().startswith(("local ", "apiVersion:")):
        yield unit


def _c_units(text: str, room: str, *, messages: bool) -> Iterator[Unit]:
    for found in _C_TOKEN.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["comment"]:
            body = re.sub(r"(?m)^\s*(?:/?\*+/?|//)", "", found[0]).rstrip("*/ ")
            yield from _paragraphs(f"comments:{room}", line, body)
        elif messages and _PROSE.search(found[0]):
            yield _joined("messages", [(line, found[0][1:-1])])


def markdown_units(text: str, area: str) -> Iterator[Unit]:
    """Yield paragraphs, list items and cells of a page; fences are emptied, lines keep their numbers."""
    text = re.sub(
        r"(?ms)^( *)(```|~~~).*?^\1\2[^\n]*$", lambda found: "\n" * found[0].count("\n"), text
    )
    text = re.sub(r"\]\([^)\s]*\)", "]", text)
    yield from _paragraphs(area, 1, text)


def room_of(path: Path) -> str:
    """Return the room of a source: its folder, at most two levels deep."""
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[:2])


_MADE = {"build", "results", "corpus", "_csrc.c", "node_modules", ".venv", "aws-lc"}


def _files(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        where = ROOT / room
        for path in sorted(where.rglob("*")) if where.is_dir() else [where]:
            if path.is_file() and not _MADE & set(path.relative_to(ROOT).parts):
                yield path


def units(path: Path) -> Iterator[Unit]:
    """Yield the texts of a file that somebody reads."""
    room = room_of(path)
    tests = room.startswith(("tests", "bench"))
    if path.suffix == ".md":
        developer = tests or room.startswith(("controller", "csrc", "edgefast"))
        yield from markdown_units(path.read_text(), f"comments:{room}" if developer else "docs")
    elif path.suffix in (".py", ".pyx", ".pxd", ".pxi"):
        for unit in python_units(path.read_text(), room):
            if unit.area != "messages" or not tests:
                yield unit
    elif path.suffix in (".c", ".h", ".js"):
        yield from _c_units(path.read_text(), room, messages=not tests)
    elif path.name in ("NOTES.txt", "values.yaml", "index.html"):
        yield from _paragraphs("messages", 1, re.sub(r"<[^>]*>", " ", path.read_text()))


def hits() -> Iterator[Hit]:
    """Yield each banned construction of messages, docs, comments and docstrings."""
    pages = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs")
    for path in _files(*pages, "edgefast", "controller", "csrc", "tests", "bench"):
        if path in (Path(__file__), WORDS):
            continue
        name = str(path.relative_to(ROOT))
        for unit in units(path):
            text = _CODE.sub(lambda found: "x" * len(found[0]), unit.text)
            for kind, pattern in _PATTERNS.items():
                for found in pattern.finditer(text):
                    around = unit.text[max(0, found.start() - 50) : found.end() + 50]
                    yield Hit(
                        unit.area, name, unit.line(found.start()), kind, " ".join(around.split())
                    )


def counts(found: Iterable[Hit]) -> dict[str, int]:
    """Return the number of hits of each area."""
    numbers: dict[str, int] = {}
    for hit in found:
        numbers[hit.area] = numbers.get(hit.area, 0) + 1
    return dict(sorted(numbers.items()))


# ---- names ----

METAPHORS = frozenset(
    "admittance aim aimed alike behind blame board boards conceal concealed crowding desk door doors entrants farewell "
    "guard hall heir holders holdings judge judged lastword lending lone lost meant nearly newcomer news "
    "nobody parting passage patience piecemeal places press ranks rivals shelf shown somebody spacing spares struck "
    "succession tidings told tokendesk treated treatment turns unaimed verdict visitor visitors who whoever whose "
    "wishes witness".split()
)


class Name(NamedTuple):
    """A public name: of a module, a class or a function."""

    kind: str
    name: str
    file: str
    line: int


def words_of(name: str) -> list[str]:
    """Split a name at underscores, digits and changes from lower to upper case."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)
    return [part.lower() for part in parts]


def known_words() -> frozenset[str]:
    """Return the words that names are built from: those of the glossary and those of words.txt."""
    terms = re.findall(r"(?m)^\| ([^|]+) \|", GLOSSARY.read_text())
    listed = [line for line in WORDS.read_text().splitlines() if not line.startswith("#")]
    words = {
        word
        for text in (*terms, *listed)
        for part in re.findall(r"[A-Za-z]+", text)
        for word in {part.lower(), *words_of(part)}
    }
    return frozenset(words) - METAPHORS


def is_known(word: str, known: frozenset[str]) -> bool:
    """Report whether a word, or each of the words that are joined in it, is known; plurals and -ed, -ing, -er count."""
    if word in METAPHORS:
        return False
    if _inflected(word, known):
        return True
    return any(
        _inflected(word[:cut], known) and is_known(word[cut:], known)
        for cut in range(2, len(word) - 1)
    )


def _inflected(word: str, known: frozenset[str]) -> bool:
    if word in METAPHORS:
        return False
    if word in known:
        return True
    for ending, instead in (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("er", ""),
        ("er", "e"),
        ("or", "e"),
        ("or", ""),
        ("able", ""),
        ("able", "e"),
        ("ly", ""),
        ("ion", ""),
        ("ion", "e"),
    ):
        stem = word[: len(word) - len(ending)]
        if word.endswith(ending) and len(stem) > 2:
            if stem + instead in known:
                return True
            if len(stem) > 3 and stem[-1] == stem[-2] and stem[:-1] in known:
                return True
    return False


_CYTHON = re.compile(
    r"(?m)^(?P<indent>[ ]*)(?:cdef |cpdef )?(?:(?P<class>class)\s+(?P<cname>\w+)|(?:def|cdef|cpdef)\b[^=\n(:#]*?\b(?P<fname>\w+)\s*\()"
)


def names() -> Iterator[Name]:
    """Yield the public names of edgefast and controller."""
    for path in _files("edgefast", "controller"):
        if path.suffix not in (".py", ".pyx", ".pxd"):
            continue
        where = str(path.relative_to(ROOT))
        if not path.stem.startswith("_"):
            yield Name("module", path.stem, where, 1)
        text = path.read_text()
        if path.suffix == ".py":
            found = [
                (node.name, node.lineno, isinstance(node, ast.ClassDef))
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        elif path.suffix == ".pyx":
            found = [
                (
                    one["cname"] or one["fname"],
                    text.count("\n", 0, one.start()) + 1,
                    bool(one["class"]),
                )
                for one in _CYTHON.finditer(text)
            ]
        else:
            found = []
        for name, line, is_class in found:
            if not name.startswith("_"):
                yield Name("class" if is_class else "function", name, where, line)


def folders() -> Iterator[Name]:
    """Yield the packages of edgefast and controller."""
    for path in _files("edgefast", "controller"):
        if path.name == "__init__.py":
            yield Name("folder", path.parent.name, str(path.relative_to(ROOT)), 1)


def unknown_names() -> Iterator[tuple[Name, str]]:
    """Yield the names with a word that is not known, and that word."""
    known = known_words()
    seen: dict[str, bool] = {}
    for name in (*folders(), *names()):
        for word in words_of(name.name):
            if word not in seen:
                seen[word] = len(word) < 2 or is_known(word, known)
            if not seen[word]:
                yield name, word
                break


def name_counts() -> dict[str, list[str]]:
    """Return the names of each kind that have still to be renamed, each once."""
    kinds: dict[str, set[str]] = {
        "folder": set(),
        "module": set(),
        "class": set(),
        "function": set(),
    }
    for name, _ in unknown_names():
        kinds[name.kind].add(name.name)
    return {kind: sorted(found) for kind, found in kinds.items()}


def write_ratchet(*, force: bool) -> list[str]:
    """Write what is counted now; return what has grown instead, unless that is forced."""
    numbers, listed = counts(hits()), name_counts()
    if RATCHET.exists() and not force:
        before = json.loads(RATCHET.read_text())
        grown = [
            f"{group}: {new} > {old}"
            for group in ("messages", "docs", "comments")
            if (new := _sum(numbers, group)) > (old := _sum(before["constructions"], group))
        ]
        grown += [
            f"{kind}: {name}"
            for kind, found in listed.items()
            for name in found
            if name not in before["names"][kind]
        ]
        if grown:
            return grown
    RATCHET.write_text(json.dumps({"constructions": numbers, "names": listed}, indent=1) + "\n")
    return []


def _sum(numbers: dict[str, int], group: str) -> int:
    return sum(number for area, number in numbers.items() if area.partition(":")[0] == group)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    out, summary = sys.stdout.write, sys.stderr.write
    if "--names" in arguments:
        for name, word in unknown_names():
            out(f"{name.file}:{name.line}: {name.kind} {name.name}: {word}\n")
    elif "--write" in arguments:
        grown = write_ratchet(force="--force" in arguments)
        for line in grown:
            summary(f"not written, has grown: {line}\n")
        return 1 if grown else 0
    else:
        only = next((one for one in arguments if not one.startswith("-")), "")
        found = [hit for hit in hits() if hit.area.startswith(only)]
        for hit in found:
            out(f"{hit.file}:{hit.line}: [{hit.area} {hit.kind}] {hit.text}\n")
        for area, number in counts(found).items():
            summary(f"# {number:5} {area}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
