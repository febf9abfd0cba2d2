"""Publish gate: delays changes while files are being written, because routes in one file may need policies in another.

In: the files of one read that are being written.
Out: whether the read is accepted, which files it omits, and a problem for each file. A file that
was never completely read delays all changes until it is complete, because it may contain policies.
Two kinds of file delay changes for HOLD seconds only, counted from the first read that found them
in this state: a file that was completely read before (its last valid content stays), and a file
that has had no Kubernetes object so far (a log).
Must never: apply a change while a pending file may have new policies.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from edgefast.diagnostics.problem import Problem, Source
from edgefast.providers.content import read_start

__all__ = [
    "HOLD",
    "START_AT_MOST",
    "Decision",
    "PublishGate",
    "Written",
    "has_object_field",
    "is_other_content",
]

#: Seconds for which a file that is being written holds changes of others, if it cannot have policies that they need.
HOLD = 10.0
#: Seconds for which the start waits for files that are being written, if no last good table can be served.
START_AT_MOST = 600.0
#: Bytes at the start of a file in which an object must have an apiVersion; comments do not count.
_ENOUGH = 4096
#: Bytes read of the start of a file.
_START = 64 * 1024
_COMMENT = re.compile(rb"^[ \t]*#[^\n]*(?:\n|\Z)|^---[ \t\r]*\n", re.MULTILINE)
_VERSION = re.compile(rb"""(?:^|[\s{,"'])apiVersion["']?\s*:""", re.IGNORECASE)
_FIELD = re.compile(rb"""(?:^|[\s{,"'])(?:apiVersion|kind|targetRefs?)["']?\s*:""", re.IGNORECASE)


class Written(NamedTuple):
    """A file that is being written."""

    name: str
    path: str
    why: str
    whole: bool  # its content was read whole before
    known: bool  # some content of it is in use


class Decision(NamedTuple):
    """The decision on one look."""

    held: bool
    overdue: bool  # it is held for longer than HOLD
    left_out: frozenset[str]  # files without Kubernetes objects
    problems: tuple[Problem, ...]


class PublishGate:
    """Decides for one source."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # file: first found to be written (monotonic)

    def decide(self, written: Iterable[Written]) -> Decision:
        """Decide on a look; `written`: all files in it that are being written."""
        now = time.monotonic()
        before, self._since = self._since, {}
        held = overdue = False
        left_out: set[str] = set()
        problems = []
        for one in written:
            since = self._since[one.name] = before.get(one.name, now)
            stays = "its last good content stays in use" if one.known else "it is not read yet"
            if now - since < HOLD:
                held = True
            elif not one.whole and is_other_content(read_start(one.path, _START)):
                left_out.add(one.name)
                stays = "it contains no Kubernetes object yet and is ignored"
            elif not one.whole:
                held = overdue = True
                stays += "; changes of all files wait until it is complete"
            problems.append(_problem(one, stays))
        return Decision(held, overdue, frozenset(left_out), tuple(problems))


def has_object_field(data: bytes) -> bool:
    """Tell whether a text has a field that only a Kubernetes object has."""
    return _FIELD.search(data) is not None


def is_other_content(data: bytes) -> bool:
    """Tell whether a text that is being written cannot begin with a Kubernetes object."""
    if _VERSION.search(data):
        return False
    text = _COMMENT.sub(b"", data).lstrip()
    if len(text) >= _ENOUGH:
        return True
    line, end, _ = text.partition(b"\n")
    if not end:
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return line[:1] in (b"{", b"[")


def _problem(one: Written, stays: str) -> Problem:
    message = f"{one.why}; {stays}"
    found = Problem(None, "", "Pending", message, source=Source(one.name, 1))
    hint = "write another file and rename it"
    return msgspec.structs.replace(found, hint=hint, severity="warning")
