"""Loader of `.http` case files; the format is documented in tests/wire/README.md.

In: a file. Out: `Case`s, one per input (and per member of `each`). A mistake in a file is a `CaseError` with file and line,
never a case that silently tests nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent.parent / "cases"

Kind = Literal["forward", "reject", "abort", "answer", "gone", "deliver", "cut"]
End = Literal["open", "fin", "rst"]
_KINDS = ("forward", "reject", "abort", "answer", "gone", "deliver", "cut")
_KEYS = {
    "expect", "end", "pipeline", "target", "body", "header", "absent", "location", "listener",
    "each", "peers", "oracle", "request", "length", "chunked", "reply",
}  # fmt: skip
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|r|n|t|s|0|\\|@|\{(\d+):((?:[^\\}]|\\.)*)\})")


class CaseError(Exception):
    """A case file is wrong."""


@dataclass(frozen=True)
class Step:
    """One way in which a message may end."""

    kind: Kind
    statuses: tuple[int, ...] = ()
    close: bool = False

    def __str__(self) -> str:
        shown = [self.kind, "/".join(map(str, self.statuses)), "close" if self.close else ""]
        return " ".join(filter(None, shown))


@dataclass(frozen=True)
class Case:
    """One input and what must come of it."""

    name: str  # "folder/file/input"
    data: bytes
    steps: tuple[tuple[Step, ...], ...]  # per message: the alternatives
    end: End = "open"  # what the sender does behind the last byte
    pipeline: bool = True
    listener: str = "web"
    target: bytes | None = None  # of the first forwarded message, when it is not the one sent
    body: bytes | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()  # further headers the first message must carry
    absent: tuple[bytes, ...] = ()  # headers it must not carry
    location: str = ""
    peers: str = ""  # why nginx and haproxy agree on something else
    oracle: str = "h11"  # "none": why h11 cannot judge this input
    request: str = "GET"  # response cases: method of the client's request
    chunked: bool | None = None  # response cases: how the client must see the body
    reply: tuple[tuple[str, str], ...] = field(default=())  # headers the client must see


def load(folder: str) -> list[Case]:
    """All cases below a folder of tests/wire/cases, in order of name."""
    found: list[Case] = []
    for file in sorted((FOLDER / folder).glob("**/*.http")):
        found += load_file(file)
    names = [case.name for case in found]
    assert len(names) == len(set(names)), "two cases with one name"
    assert found, f"no cases in {folder}"
    return found


def load_file(file: Path) -> list[Case]:
    """The cases of one file."""
    title = str(file.relative_to(FOLDER).with_suffix("")) if FOLDER in file.parents else file.stem
    defaults: dict[str, list[str]] = {}
    found: list[Case] = []
    name, settings, lines = "", dict(defaults), list[bytes]()

    def finish(number: int) -> None:
        if name:
            if not b"".join(lines):
                raise CaseError(f"{file}:{number}: input {name} is empty")
            found.extend(_build(f"{title}/{name}", settings, lines, f"{file}:{number}"))

    raw = file.read_bytes()
    for number, line in enumerate(raw.decode("ascii").split("\n"), 1):
        where = f"{file}:{number}"
        if line != line.rstrip():
            raise CaseError(f"{where}: blanks at the end of a line (write \\s or \\t)")
        if line.startswith("#"):
            continue
        if line.startswith("== "):
            finish(number)
            name, lines = line[3:].strip(), []
            settings = {key: list(value) for key, value in defaults.items()}
        elif not name:
            if line:
                _set(defaults, line, where)
        elif line.startswith("@ "):
            _set(settings, line[2:], where)
        else:
            lines.append(line.encode())
    finish(0)
    return found


def _set(settings: dict[str, list[str]], line: str, where: str) -> None:
    key, colon, value = line.partition(":")
    if not colon or key not in _KEYS:
        raise CaseError(f"{where}: {key!r} is not one of {sorted(_KEYS)}")
    if key in ("header", "absent", "reply"):
        settings.setdefault(key, []).append(value.strip())
    else:
        settings[key] = [value.strip()]


def _build(name: str, settings: dict[str, list[str]], lines: list[bytes], where: str) -> list[Case]:
    def one(key: str, default: str = "") -> str:
        return settings.get(key, [default])[0]

    end = one("end", "open")
    if end not in ("open", "fin", "rst"):
        raise CaseError(f"{where}: end {end!r}")
    steps = tuple(
        tuple(_step(item, where) for item in message.split("|"))
        for message in one("expect").split(",")
    )
    headers = tuple(_pair(item.encode(), where) for item in settings.get("header", []))
    reply = tuple(_pair(item.encode(), where) for item in settings.get("reply", []))
    text = b"".join(lines)
    found: list[Case] = []
    members = one("each").split() or [""]
    for member in members:
        chosen = member.encode()
        if member and b"\\@" not in text:
            raise CaseError(f"{where}: {name} has `each` but no \\@")

        def value(key: str, chosen: bytes = chosen) -> bytes | None:
            return unescape(one(key).encode(), chosen, where) if key in settings else None

        found.append(
            Case(
                name=f"{name}[{member}]" if member else name,
                data=unescape(text, chosen, where),
                steps=steps,
                end=end,  # type: ignore[arg-type]
                pipeline=one("pipeline", "yes") == "yes",
                listener=one("listener", "web"),
                target=value("target"),
                body=value("body"),
                headers=headers,
                absent=tuple(item.lower().encode() for item in settings.get("absent", [])),
                location=one("location"),
                peers=one("peers"),
                oracle=one("oracle", "h11"),
                request=one("request", "GET"),
                chunked={"": None, "yes": True, "no": False}[one("chunked")],
                reply=tuple((key.decode(), item.decode()) for key, item in reply),
            )
        )
    return found


def _pair(line: bytes, where: str) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon:
        raise CaseError(f"{where}: not a header: {line!r}")
    return name.strip().lower(), unescape(value.strip(), b"", where)


def _step(text: str, where: str) -> Step:
    words = text.split()
    if not words or words[0] not in _KINDS:
        raise CaseError(f"{where}: expect {text!r} is not one of {_KINDS}")
    kind: Kind = words[0]  # type: ignore[assignment]
    close = words[-1] == "close"
    numbers = words[1 : len(words) - close]
    statuses = tuple(int(item) for item in "".join(numbers).split("/") if item)
    if kind in ("reject", "abort", "answer") and not statuses:
        raise CaseError(f"{where}: {kind} needs a status")
    return Step(kind, statuses, close or kind in ("reject", "abort", "gone", "cut"))


def unescape(text: bytes, member: bytes = b"", where: str = "") -> bytes:
    """The bytes a text with escapes stands for; `member` replaces \\@."""

    def replace(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code == b"@":
            return unescape(member, b"", where)
        if code.startswith(b"{"):
            return b"".join(
                unescape(match[3].replace(b"\\#", b"%d" % index), member, where)
                for index in range(int(match[2]))
            )
        if code.startswith(b"x"):
            return bytes([int(code[1:], 16)])
        return {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"s": b" ", b"0": b"\0", b"\\": b"\\"}[code]

    made = _ESCAPE.sub(replace, text)
    if b"\\" in _ESCAPE.sub(b"", text):
        raise CaseError(f"{where}: unknown escape in {text!r}")
    return made
