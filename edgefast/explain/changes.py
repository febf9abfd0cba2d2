"""Changes: what a new table changes for requests, as plain values.

In: nothing. Out: the structs that `diff` fills; their encoding is the documented JSON
(docs/guides/diff.md). Fields are only ever added; empty ones are left out. Must never: hold an
object of a table.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal[
    "opened",
    "refused",
    "lost",
    "gained",
    "owner",
    "answer",
    "rule",
    "endpoints",
    "host_removed",
    "host_added",
    "listener_removed",
    "listener_added",
    "listener",
    "shadowed",
    "unshadowed",
    "conflict",
    "conflict_gone",
    "condition",
    "unknown",
]


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that all parts share."""


class Example(Value, frozen=True, kw_only=True):
    """A request to try; `edgefast explain` takes it as it is."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    source: str = ""  # the connection's other end; "": whoever asks
    address: str = ""  # that it connects to; "": any
    http10: bool = False


class Side(Value, frozen=True, kw_only=True):
    """What the example gets from one of the two tables."""

    rule: str = ""  # "default/shop rule 1"; "": none
    answer: str = ""  # "service/default/shop/80", "404", "301 to https://...", "no answer"
    source: str = ""  # where the rule was written


class Change(Value, frozen=True, kw_only=True):
    """One change; `requests` is how many examples of it were found."""

    kind: Kind
    breaks: bool = False  # requests that had a backend have none now
    opens: bool = False  # somebody gets in whom a policy kept out
    text: str
    example: Example | None = None
    before: Side | None = None
    after: Side | None = None
    requests: int = 0


def rank_change(one: Change) -> int:
    """Return its place among others: who gets in before what is kept out, then what breaks."""
    if one.opens:
        return 0
    if one.kind == "refused":
        return 1
    return 2 if one.breaks else 3


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Everything; all fields are always there."""

    changes: tuple[Change, ...]
    breaks: bool
    opens: bool = False
    examples: int  # requests that both tables were asked
