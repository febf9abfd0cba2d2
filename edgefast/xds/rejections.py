"""Rejections: resources that a proxy refused and the reasons, as the text of an xDS error, one line each.

In: `Refused` values.
Out: "type name: reason" lines, at most REFUSALS_LIMIT; values parsed from such lines.
Must never: lose a rejection. The last line counts those that do not fit, and a rejection of the
whole table comes first.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast.table.shards import TYPES
from edgefast.xds.limits import REASON_LIMIT, REFUSALS_LIMIT, TEXT_LIMIT

__all__ = [
    "COMMIT",
    "LATE",
    "MISMATCH",
    "MORE",
    "TABLE",
    "Refused",
    "decode_refusals",
    "encode_refusals",
    "find_lasting",
    "find_whole",
]

#: Type of the response that closes a batch, and the name of its one resource.
COMMIT = "commit"
TABLE = "table"
#: Name (of type COMMIT) of the line that counts what did not fit.
MORE = "more"
#: Reasons that are known by their first word: the digest is another one; not every worker has swapped yet.
MISMATCH = "mismatch"
LATE = "late"
_KNOWN = frozenset((*TYPES, COMMIT))


class Refused(msgspec.Struct, frozen=True):
    """A resource that is not in force, and why. Type COMMIT and name TABLE: the table as a whole."""

    type: str
    name: str
    reason: str


def find_whole(refused: Iterable[Refused]) -> str:
    """Return why the table as a whole is not in force; "" when it is, single resources aside."""
    return next((one.reason for one in refused if (one.type, one.name) == (COMMIT, TABLE)), "")


def find_lasting(refused: Iterable[Refused]) -> str:
    """Return the same when it will not pass by itself; "" when it will."""
    reason = find_whole(refused)
    return "" if reason.startswith((LATE, MISMATCH)) else reason


def encode_refusals(refused: Iterable[Refused]) -> str:
    """Return the lines; "" for none."""
    ordered = sorted(refused, key=lambda one: (one.type != COMMIT, one.type, one.name))
    lines = [_line(one) for one in ordered[:REFUSALS_LIMIT]]
    if left := len(ordered) - len(lines):
        lines.append(_line(Refused(COMMIT, MORE, f"{left} more refused")))
    return "\n".join(lines)


def decode_refusals(text: str) -> tuple[Refused, ...]:
    """Read lines back; one that is not of this form, or of a type that there is not, is left out."""
    found = []
    for line in text[: (REFUSALS_LIMIT + 1) * (TEXT_LIMIT + REASON_LIMIT)].split("\n"):
        what, separator, reason = line.partition(": ")
        type_, space, name = what.partition(" ")
        if separator and space and type_ in _KNOWN:
            found.append(Refused(type_, name[:TEXT_LIMIT], reason[:REASON_LIMIT]))
    return tuple(found[: REFUSALS_LIMIT + 1])


def _line(one: Refused) -> str:
    reason = " ".join(one.reason.split())
    if len(reason) > REASON_LIMIT:
        reason = reason[: REASON_LIMIT - 3] + "..."
    return f"{one.type} {one.name}: {reason or 'no reason given'}"
