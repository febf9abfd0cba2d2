"""Limit rows: live counters of a store, joined with the limits of the active table.

In: rules that have limits; counters by their keys (docs/guides/rate-limits.md, "Counters").
Out: rows with route, rule, limit, distinct values and remaining quota; exhausted counters first.
The first three parts of a key name its limit. Counters without a limit in the table (of other
proxies at the same store, or of removed limits) are counted, not shown.
Must never: interpret a client's value as a part of a counter's name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from edgefast import ir

__all__ = ["MARK", "Count", "FullLimit", "LimitIndex", "LimitRow", "order"]

#: Rules are in the table as MessagePack without defaults: what has no limits has not this word.
MARK = b"rate_limits"
_NAME = 3  # parts of a key that name the limit; the rest are distinct values
#: Of the client's address among distinct values, beside names of headers, which are in lower case.
_SOURCE = "sourceCIDR"


class Count(msgspec.Struct, frozen=True):
    """A live counter, whatever store it is in."""

    key: bytes
    whole: bool  # False: only the first bytes of the key are known
    window: int  # its start, Unix seconds
    used: int  # what counts now; of a sliding window, with the weight of the window before
    left_ms: int  # until the window ends
    of_name: bool = False  # shared memory: counts the requests of a limit without values, or the values of another


class LimitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One counter as operators see it."""

    limited: bool  # nothing is left: the next request is over
    shadow: bool  # and passes all the same
    route: str
    rule: str  # its name, else its number
    limit: str  # "namespace/filter#2"
    values: dict[str, str]  # by header; "sourceCIDR" is the client's address
    cut: bool  # a value, or several, are not known in full
    requests: int
    used: int
    remaining: int
    reset: int  # seconds until the window ends
    window: int  # its start, Unix seconds, as limit_window of the access log
    unit: int  # seconds
    sliding: bool


class FullLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that has begun as many counters in this window as it has room for."""

    route: str
    rule: str
    limit: str
    values: int  # that are counted
    room: int
    reset: int  # seconds until the window ends


class LimitIndex:
    """The limits of one table, by the names of their counters."""

    def __init__(self, rules: Iterable[ir.Rule]) -> None:
        """`rules` may come several times: a route has them on each of its hostnames."""
        self._limits: dict[bytes, tuple[ir.Rule, ir.RateLimit]] = {}
        for rule in rules:
            for limit in rule.rate_limits:
                if limit.kind != "Window":
                    continue  # this memory does not list what a machine counts
                self._limits.setdefault(limit.counter.encode(), (rule, limit))
        self._names = sorted(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def describe(self, count: Count) -> LimitRow | None:
        """Return the row of a counter; None when it is of no limit here."""
        name, values, whole = _split(count.key)
        if name is None:  # cut in the middle of its name
            name, values = (None if count.whole else self._complete(count.key)), []
        found = self._limits.get(name) if name is not None else None
        if found is None:
            return None
        rule, limit = found
        headings = (*limit.distinct_headers, *([_SOURCE] if limit.distinct_source else []))
        cut = not (whole and count.whole and len(values) == len(headings))
        remaining = max(0, limit.requests - count.used)
        return LimitRow(
            limited=remaining == 0,
            shadow=limit.shadow,
            route=rule.route,
            rule=rule.name or str(rule.index),
            limit=limit.name,
            values=dict(zip(headings, map(_text, values), strict=False)),
            cut=cut,
            requests=limit.requests,
            used=count.used,
            remaining=remaining,
            reset=-(-count.left_ms // 1000),
            window=count.window,
            unit=limit.unit,
            sliding=limit.sliding,
        )

    def find_many_valued(self, count: Count) -> tuple[ir.Rule, ir.RateLimit] | None:
        """Return the limit whose values a counter of shared memory counts; None: it counts requests, or is of no limit here."""
        found = self._limits.get(count.key) if count.of_name else None
        if found is None and count.of_name and not count.whole:
            whole = self._complete(count.key)
            found = self._limits.get(whole) if whole is not None else None
        if found is None or not (found[1].distinct_headers or found[1].distinct_source):
            return None
        return found

    def _complete(self, start: bytes) -> bytes | None:
        """Return the one name that begins so; None when there is none, or a choice."""
        at = bisect_left(self._names, start)
        found = [name for name in self._names[at : at + 2] if name.startswith(start)]
        found = [name for name in self._names[at : at + 2] if name.startswith(start)]
        return found[0] if start and len(found) == 1 else None


def order(row: LimitRow) -> tuple[object, ...]:
    """Sort key: who is limited first, then who is nearest to it."""
    share = row.used / row.requests if row.requests else 1.0
    return (not row.limited, -share, row.route, row.rule, row.limit, *row.values.values())


def _split(key: bytes) -> tuple[bytes | None, list[bytes], bool]:
    """Cut a key into its name (None: not even that is whole) and values; False: the last one is cut."""
    at, name, values = 0, None, list[bytes]()
    for number in range(len(key)):
        if at == len(key):
            break
        colon = key.find(b":", at, at + 6)
        digits = key[at:colon]
        if colon < 0 or not digits.isdigit():
            return name, values, False
        end = colon + 1 + int(digits)
        if number >= _NAME:
            values.append(key[colon + 1 : end])
        if end > len(key):
            return name, values, False
        at = end
        if number == _NAME - 1:
            name = key[:at]
    return name, values, True


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
