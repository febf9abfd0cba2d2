"""Missing object: explains "not found" problems.

In: the problems of a translation. Out: the same, without consequences of a refused object of a
file. That object exists and its mistake has its own problem. In standalone the message adds the
name or namespace that was perhaps meant. It runs each time and for all problems: a new name may
explain the problem of an unchanged object.
Must never: change a status; conditions keep the plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef, Problem, did_you_mean

#: How every stage says it: "Service default/api not found", "GatewayClass edge not found".
_ABSENT = re.compile(r"\b([A-Z][A-Za-z]+) (?:([^\s/]+)/)?([^\s/]+) not found\b")
#: Comparing names is quadratic: of more problems, and among more names, nobody is helped.
_MOST_HINTS = 20
_MOST_NAMES = 500
#: Namespaces with an object of the name that are told.
_MOST_PLACES = 2
#: Names are shorter than words of the API and more of them are alike by chance.
_ALIKE = 0.65


def explain_absent(
    problems: Iterable[Problem], snapshot: Snapshot, *, hints: bool
) -> Iterator[Problem]:
    """Leave out what follows from refused objects; with `hints`, say which names are near."""
    left = _MOST_HINTS if hints else 0
    for problem in problems:
        ref = find_absent(problem.message)
        if ref is None:
            yield problem
            continue
        if (ref.kind, ref.namespace, ref.name) in snapshot.refused:
            continue
        if left and not problem.hint:
            left -= 1
            hint = hint_absent(ref, snapshot)
            problem = msgspec.structs.replace(problem, hint=hint) if hint else problem
        yield problem


def find_absent(text: str) -> ObjectRef | None:
    """Return the object that a text says is not there, None for any other text."""
    found = _ABSENT.search(text) if "not found" in text else None
    return ObjectRef(found[1], found[2] or "", found[3]) if found else None


def hint_absent(ref: ObjectRef, snapshot: Snapshot) -> str:
    """Return where an object of that name is, or "did you mean X?" for one that is near, or ""."""
    elsewhere = snapshot.namespaces_of(ref.kind, ref.name) if ref.namespace else []
    if elsewhere:
        found = " and ".join(f"{namespace}/{ref.name}" for namespace in elsewhere[:_MOST_PLACES])
        return f"{found} {'exists' if len(elsewhere) == 1 else 'exist'}"
    names = snapshot.names_of(ref.kind, ref.namespace)
    names += [name for *where, name in snapshot.refused if where == [ref.kind, ref.namespace]]
    return did_you_mean(ref.name, names, alike=_ALIKE) if len(names) <= _MOST_NAMES else ""
