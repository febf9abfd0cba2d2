"""SourceFile: the state of one file. `Look` collects the state of all files during a read, and `Reading` is the result.

In: decoded documents.
Out: the objects of a file that are valid, kept from an earlier version, or fail closed.
Must never: read a file.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from edgefast.api.decode.fail_closed.policy import OWN_POLICIES
from edgefast.api.decode.text import DocumentMarks
from edgefast.api.loaded import Loaded, Refused
from edgefast.api.migration.foreign_policy import ForeignPolicy
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.providers.content import Stamp
from edgefast.providers.listing import Pins
from edgefast.providers.name_index import key_of
from edgefast.providers.publish_gate import Written
from edgefast.providers.stale import Kept, Key
from edgefast.providers.write_completion import Events

__all__ = ["Look", "Reading", "SourceFile", "differ", "reuse_loaded"]


class Reading(msgspec.Struct, frozen=True):
    """One look at everything."""

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    changed: bool  # since the look before
    # Whether a table of it may replace the previous one: it has an object, and each
    # file, and each folder of the first look, has been read whole, or is gone.
    usable: bool
    files: int
    objects: int
    seconds: float  # that the look took


class SourceFile(NamedTuple):
    stamp: Stamp | None  # None: always read the file again
    digest: bytes
    objects: tuple[tuple[Key, Loaded], ...]
    problems: tuple[Problem, ...]
    read: bool  # its content was read whole at least once
    kept: Kept = Kept()  # the last versions of `objects` that the file no longer has in valid form
    refused: tuple[Refused, ...] = ()
    policies: tuple[ForeignPolicy, ...] = ()
    guarded: tuple[ForeignPolicy, ...] = ()  # objects with annotations that decide access
    unparsed: Problem | None = (
        None  # why the whole set waits for it: its missing part may be a policy
    )

    @property
    def sound(self) -> tuple[tuple[Key, Loaded], ...]:
        stale = len(self.kept.objects)
        return self.objects[:-stale] if stale else self.objects

    @property
    def closed(self) -> tuple[tuple[Key, Loaded], ...]:
        """Return the placeholders of invalid objects.

        A route, Gateway or filter has none while an object of its kind is kept: it can be that object under another name.
        """
        if not self.refused:  # nearly always
            return ()
        found = tuple((key_of(one.closed), one.closed) for one in self.refused if one.closed)
        named = {key for key, _ in found}
        hidden = {key[0] for key, _ in self.kept.objects if key not in named} - {*OWN_POLICIES}
        return tuple((key, one) for key, one in found if key[0] not in hidden)


class Look:
    """The result of one look, before it is accepted."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.pins = Pins()
        self.files: dict[str, SourceFile] = {}
        self.problems: list[Problem] = []
        self.lost: set[str] = set()  # folders that cannot be read whole
        self.written: list[Written] = []  # files that are being written
        self.unparsed: list[
            SourceFile
        ] = []  # files that cannot be parsed and were never read whole
        self.paths: set[str] = set()  # of all files
        self.wait: float | None = None  # seconds until one of these may be complete


def reuse_loaded(one: Loaded, before: dict[Key, Loaded]) -> tuple[Key, Loaded]:
    """Return the key, and the item of the last time when object and lines are the same."""
    key = key_of(one)
    old = before.get(key)
    if old is None or old.obj is not one.obj:
        return key, one
    a, b = old.marks, one.marks
    if not isinstance(a, DocumentMarks) or not isinstance(b, DocumentMarks):
        return key, one
    same = (
        a.base == b.base and a.lines is b.lines and (a.document, a.prefix) == (b.document, b.prefix)
    )
    return key, old if same else one


def differ(before: dict[str, SourceFile], after: dict[str, SourceFile]) -> bool:
    """Tell whether two looks differ in objects or problems."""
    return before.keys() != after.keys() or any(
        before[name].objects is not file.objects
        or before[name].problems != file.problems
        or before[name].policies != file.policies
        or before[name].guarded != file.guarded
        or before[name].refused is not file.refused  # what keeps its place closed
        for name, file in after.items()
    )
