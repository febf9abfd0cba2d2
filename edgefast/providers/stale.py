"""Stale objects: the objects of a file that stay in use although the file no longer has a valid version of them.

In: the earlier and the present contents of a file.
Out: the objects to keep, with a warning for each. An object that an error names keeps its last
valid version. The same applies to an object with a slightly misspelled kind. Any new error (a
typing error in `metadata.name`, a missing `---`, a truncated file) may hide an object that
disappeared in the same edit. Such objects stay until the error is fixed. An object that disappears
without a new error is deleted.
Must never: keep an object of a file that has no errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from edgefast.api.loaded import Loaded
from edgefast.diagnostics.problem import Problem, Source, did_you_mean
from edgefast.diagnostics.reasons.word import Word

__all__ = ["Key", "Kept", "keep_stale"]

#: (kind, namespace, name)
Key = tuple[str, str, str]
#: What an error is about, for telling a new one from one that was there before.
_Suspect = tuple[str, str, str]

_STAYS = "its last good version stays in use"


class Kept(NamedTuple):
    """What is kept of a file, and why; the next look goes on from it."""

    objects: tuple[tuple[Key, Loaded], ...] = ()
    problems: tuple[Problem, ...] = ()
    suspects: Mapping[_Suspect, int] = {}

    @property
    def keys(self) -> frozenset[Key]:
        """The names of the objects kept."""
        return frozenset(key for key, _ in self.objects)


def keep_stale(
    before: Iterable[tuple[Key, Loaded]],
    kept: Kept,
    present: Iterable[Key],
    problems: Sequence[Problem],
) -> Kept:
    """Say what stays of `before`, the objects of the last look, of which `kept` were stale."""
    known, fresh = dict(before), frozenset(present)
    errors = [one for one in problems if one.severity == "error" and one.object is not None]
    refused: dict[Key, Problem] = {}
    for one in errors:
        refused.setdefault(_key(one), one)
    suspects = Counter(_suspect(one) for one in errors)
    new = suspects - Counter(kept.suspects)
    # The newest error is the likeliest to hide something.
    culprit = next((one for one in errors if _suspect(one) in new), None)
    culprit = culprit or next(iter(errors), None)
    stale = []
    notes = []
    for key, item in known.items():
        if key in fresh:
            continue
        misspelt = next((one for one in problems if _misspells(one, key)), None)
        if key in refused:
            notes.append(_note(item, "Invalid", "", refused[key].source))
        elif misspelt is not None:
            notes.append(_note(item, "Invalid", "", misspelt.source))
        elif culprit is not None and (new or key in kept.keys):
            notes.append(_note(item, "NotFound", _hidden(culprit), culprit.source))
        else:
            continue
        stale.append((key, item))
    return Kept(tuple(stale), tuple(notes), suspects)


def _key(one: Problem) -> Key:
    assert one.object is not None
    return (one.object.kind, one.object.namespace, one.object.name)


def _suspect(one: Problem) -> _Suspect:
    return (str(one.object), one.path, one.reason)


def _misspells(one: Problem, key: Key) -> bool:
    """Tell an object of another kind that is this one but for a slip in `kind` or `apiVersion`."""
    if one.object is None or one.path not in ("", "kind", "apiVersion"):
        return False
    named = (one.object.namespace if key[1] else "", one.object.name)
    kind = one.object.kind
    return named == key[1:] and (kind == key[0] or did_you_mean(kind, [key[0]]) != "")


def _hidden(culprit: Problem) -> str:
    where = f"the error in line {culprit.source.line}" if culprit.source else "another mistake"
    return f"in the file any more ({where} possibly hides it)"


def _note(item: Loaded, reason: Word, message: str, source: Source | None) -> Problem:
    return Problem(item.ref, "", reason, message, _STAYS, source, severity="warning")
