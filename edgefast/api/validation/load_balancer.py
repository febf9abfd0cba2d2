"""Load balancer: rules about `loadBalancer` of a BackendTrafficPolicy, each with its CEL twin for the CRD.

In: parts of the kind. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgefast.api.edge.load_balancer import (
    ConsistentHash,
    HashCookie,
    HashHeader,
    HashPart,
    LoadBalancer,
    SlowStart,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds that a slow start takes at most.
MOST_WINDOW = 3_600_000
#: By type of a consistent hash: the field that says it.
PARTS = {
    "Header": ("header", "header"),
    "Headers": ("headers", "headers"),
    "Cookie": ("cookie", "cookie"),
    "QueryParams": ("query_params", "queryParams"),
    "Parts": ("parts", "parts"),
}
#: Types of parts that have a name.
NAMED = ("Header", "Cookie", "QueryParam")


@BOOK.on(
    LoadBalancer,
    "type",
    "consistent_hash",
    cel="(self.type == 'ConsistentHash') == has(self.consistentHash)",
    message="consistentHash must be set with type ConsistentHash, and only there",
)
def check_hash(one: LoadBalancer) -> Iterable[Violation]:
    """What is hashed has to be said."""
    hashes = one.type == "ConsistentHash"
    if hashes and one.consistent_hash is None:
        return (Violation(("consistentHash",), "Required", "with type ConsistentHash"),)
    if not hashes and one.consistent_hash is not None:
        return (Violation(("consistentHash",), "Forbidden", f"with type {one.type}"),)
    return ()


@BOOK.on(
    LoadBalancer,
    "type",
    "slow_start",
    cel="!has(self.slowStart) || self.type in ['LeastRequest', 'RoundRobin']",
    message="slowStart may be set with types LeastRequest and RoundRobin only",
)
def check_slow_start(one: LoadBalancer) -> Iterable[Violation]:
    """A key is nobody else's for a while, and chance knows nobody."""
    if one.slow_start is not None and one.type not in ("LeastRequest", "RoundRobin"):
        return (Violation(("slowStart",), "Forbidden", f"with type {one.type}"),)
    return ()


@BOOK.on(
    SlowStart,
    "window",
    cel="duration(self.window) > duration('0s') && duration(self.window) <= duration('1h')",
    message="window must be more than 0s and at most 1h",
)
def check_window(one: SlowStart) -> Iterable[Violation]:
    """It ends."""
    if 0 < parse_duration(one.window) <= MOST_WINDOW:
        return ()
    message = f'"{one.window}" (expected more than 0s, at most 1h)'
    return (Violation(("window",), "Invalid", message),)


@BOOK.on(
    ConsistentHash,
    "type",
    *(attr for attr, _ in PARTS.values()),
    cel=" && ".join(
        f"(self.type == '{kind}') == has(self.{name})" for kind, (_, name) in PARTS.items()
    ),
    message="exactly the one of header, headers, cookie, queryParams and parts that matches type "
    "must be set",
)
def check_part(one: ConsistentHash) -> Iterable[Violation]:
    """There is one key."""
    for kind, (attr, name) in PARTS.items():
        message = getattr(one, attr) is not None
        if kind == one.type and not message:
            yield Violation((name,), "Required", f"with type {kind}")
        if kind != one.type and message:
            yield Violation((name,), "Forbidden", f"with type {one.type}")


@BOOK.on(
    HashPart,
    "type",
    "name",
    cel="(self.type in ['Header', 'Cookie', 'QueryParam']) == has(self.name)",
    message="name must be set with types Header, Cookie and QueryParam, and only there",
)
def check_part_name(one: HashPart) -> Iterable[Violation]:
    """One of several of its type."""
    if one.type in NAMED and one.name is None:
        return (Violation(("name",), "Required", f"with type {one.type}"),)
    if one.type not in NAMED and one.name is not None:
        return (Violation(("name",), "Forbidden", f"with type {one.type}"),)
    return ()


@BOOK.on(
    ConsistentHash,
    "headers",
    cel="!has(self.headers) || self.headers.all(one, "
    "self.headers.exists_one(other, other.name.lowerAscii() == one.name.lowerAscii()))",
    message="each header can be listed only once",
)
def check_headers(one: ConsistentHash) -> Iterable[Violation]:
    """Names have no case."""
    return _find_doubles(one.headers or ())


def _find_doubles(headers: Sequence[HashHeader]) -> Iterable[Violation]:
    seen: set[str] = set()
    for index, header in enumerate(headers):
        if header.name.lower() in seen:
            yield Violation(("headers", index, "name"), "Duplicate", f'"{header.name}"')
        seen.add(header.name.lower())


@BOOK.on(
    HashCookie,
    "ttl",
    "attributes",
    cel="has(self.ttl) || !has(self.attributes) || size(self.attributes) == 0",
    message="attributes apply to a cookie that edgefast sets: ttl must be set",
)
def check_given(one: HashCookie) -> Iterable[Violation]:
    """A cookie that nobody is given has no attributes."""
    if one.attributes and one.ttl is None:
        return (Violation(("attributes",), "Forbidden", "without ttl"),)
    return ()
