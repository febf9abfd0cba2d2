"""Event filter: the new errors of a written status, for Kubernetes Events.

In: the status before and the fields written.
Out: (reason, text) of every condition that became bad, or bad in another way. Conditions of
temporary states are omitted: they pass, or become others.
Must never: repeat an error with the same text.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.status.shape import Json, is_bad

#: Reasons of things on their way.
_PASSING = frozenset({"Pending", "AddressNotAssigned", "NoResources"})


def select_events(before: Json, fields: Json) -> list[tuple[str, str]]:
    """Return each (reason, text) once, in order."""
    known = {_words(one) for one in _conditions(before) if is_bad(one)}
    found = (
        _words(one)
        for one in _conditions(fields)
        if is_bad(one) and one.get("reason") not in _PASSING
    )
    return list(dict.fromkeys(words for words in found if words not in known))


def _words(condition: Json) -> tuple[str, str]:
    return str(condition.get("reason", "")), str(condition.get("message", ""))


def _conditions(status: Json) -> Iterator[Json]:
    yield from status.get("conditions") or ()
    for field in ("listeners", "parents", "ancestors"):
        for entry in status.get(field) or ():
            yield from entry.get("conditions") or ()
