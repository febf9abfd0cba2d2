"""A table with rate limits, for tests that look at counters from outside.

In: a port, a store. Out: shards. `/all` has one counter, `/each` one for each value of x-user, `/open` has none; all
redirect, so that no backend is needed.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.table import Shards, compile_fleet

UNIT = 86_400  # seconds: no window ends in a test (but around midnight, see `leave_the_day`)
ALL = ir.RateLimit(name="ns/all#0", counter="6:ns/web5:n=all4:aaaa", requests=3, unit=UNIT)
EACH = ir.RateLimit(
    name="ns/each#1",
    counter="6:ns/web6:n=each4:bbbb",
    requests=2,
    unit=UNIT,
    distinct_headers=("x-user",),
)


def limited_table(port: int, store: ir.RateLimitStore | None = None) -> Shards:
    """One listener whose virtual host has the three rules, on two hostnames."""
    listener = ir.Listener(name="ns/gateway/http", port=port, bind_port=port, protocol="HTTP")
    redirect = ir.Redirect(hostname="v1.test")
    rules = (
        ir.Rule("ns/web", 0, name="all", redirect=redirect, rate_limits=(ALL,)),
        ir.Rule("ns/web", 1, name="each", redirect=redirect, rate_limits=(EACH,)),
        ir.Rule("ns/web", 2, redirect=redirect),
    )
    paths = ("/all", "/each", "/open")
    entries = tuple(
        ir.Entry(match=ir.Match(kind="prefix", path=path), rule=number)
        for number, path in enumerate(paths)
    )
    hosts = tuple(
        ir.VirtualHost(listener=listener.name, hostname=name, rules=rules, entries=entries)
        for name in ("*", "x.test")
    )
    fleet = ir.Fleet(
        name="standalone",
        listeners=(listener,),
        virtual_hosts=hosts,
        limit_store=store or ir.RateLimitStore(),
    )
    return compile_fleet(fleet)
