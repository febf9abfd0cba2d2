"""Counter: the stable name of a rate limit's counter.

In: a route, the matches of one of its rules, a limit. Out: text of three length-prefixed parts:
route, rule and limit. The route is its uid (namespace/name in standalone). The rule is its name,
else a digest of its matches. The limit is a digest of what it counts and its unit. Edits of other
rules, other limits or the number of requests therefore keep the counts.
Source: docs/guides/rate-limits.md.
Must never: change for the same limit; every counter would restart at zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from edgefast import ir
from edgefast.api.gateway.grpcroute import Route
from edgefast.api.model.route_name import name_of, route_key

_encode = msgspec.msgpack.Encoder().encode


def name_route(route: Route, *, standalone: bool) -> str:
    """Return the route's part: files have no uid that lasts."""
    meta = route.metadata
    called = name_of(route_key(type(route).__name__, meta.namespace, meta.name))
    return (not standalone and meta.uid) or called


def name_rule(name: str, matches: Iterable[ir.Match]) -> str:
    """Return the rule's part; without a name it is known by what it matches, in any order."""
    if name:
        return f"n={name}"
    plain = {
        (one.kind, one.path, one.method, _plain(one.headers), _plain(one.query)) for one in matches
    }
    return f"m={_digest(sorted(plain))}"


def digest_limit(limit: ir.RateLimit) -> str:
    """Return the limit's part: what it counts, and for how long."""
    return _digest(
        (
            _plain(limit.headers),
            limit.distinct_headers,
            limit.sources,
            limit.distinct_source,
            limit.unit,
        )
    )


def name_counter(*parts: str) -> str:
    """Join parts so that no two lists of them give one text."""
    return "".join(f"{len(part.encode())}:{part}" for part in parts)


def _plain(matches: tuple[ir.ValueMatch, ...]) -> tuple[tuple[str, str, bool], ...]:
    """Spelt out: a field more in the IR must not rename counters."""
    return tuple(sorted((one.name, one.value, one.regex) for one in matches))


def _digest(value: object) -> str:
    return blake2b(_encode(value), digest_size=8).hexdigest()
