"""Rate limits in the table: limits travel with their rule, their store is one resource that changes alone."""

from __future__ import annotations

import msgspec
import pytest

from edgefast import ir
from edgefast.table import Delta, Request, compile_fleet, diff, match
from tests.table.tables import LISTENER, make_fleet, make_rule, prefix_host

pytestmark = pytest.mark.pure


def test_limits_of_a_rule_travel_with_it() -> None:
    limits = (
        ir.RateLimit(name="ns/f#0", counter="4:ns/r", requests=3, unit=60, shadow=True),
        ir.RateLimit(
            name="ns/f#1",
            counter="5:ns/rr",
            requests=2**32 - 1,
            unit=31_536_000,
            headers=(ir.ValueMatch(name="x-a", value="a+", regex=True),),
            distinct_headers=("x-b", "x-c"),
            sources=("10.0.0.0/8", "fd00::/8"),
            distinct_source=True,
            sliding=True,
        ),
    )
    rule = msgspec.structs.replace(make_rule(""), rate_limits=limits)
    host = msgspec.structs.replace(prefix_host("h", ["/a"]), rules=(rule,))
    shards = compile_fleet(make_fleet(host))
    hit = match(shards, LISTENER, "h", Request(path="/a"))
    assert hit is not None and hit.rule == rule


def test_another_store_is_one_resource() -> None:
    fleet = msgspec.structs.replace(
        make_fleet(prefix_host("h", ["/a"])), limit_store=ir.RateLimitStore()
    )
    old = compile_fleet(fleet)
    for store in (ir.RateLimitStore(kind="redis", addresses=("a:1",)), None, fleet.limit_store):
        changed = msgspec.structs.replace(fleet, limit_store=store)
        new = compile_fleet(changed, old)
        delta = diff(old, new)
        touched = [(r.type, r.name) for r in delta.put] + list(delta.remove)
        assert touched == [("limit_store", "store")]
        assert new.version == compile_fleet(changed).version != old.version
        old = new
    equal = msgspec.structs.replace(fleet, limit_store=ir.RateLimitStore())
    assert diff(old, compile_fleet(equal, old)) == Delta()
