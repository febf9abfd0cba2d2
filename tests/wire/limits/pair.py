"""Two proxies of two workers with one store, one clock 10 s ahead and one 10 s behind, and a flood that both share.

In: limits by name. Out: what clients got and what the access logs say, from one flood or several. Each limit has a route of
its own, /get/<name>.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.account import Account, Line, check_exact, count_passed, draw_account, full_windows
from wire.limits.flood import Outcome, Stream, flooding
from wire.limits.proxy import LimitProxy

SKEW = 10  # seconds
LOG = 60.0  # seconds that the last lines may take


def name_limit(requests: int, unit: str) -> str:
    """The name of a limit in access logs."""
    return f"default/{unit.lower()}-{requests}#0"


def make_objects(origin: int, kinds: Iterable[tuple[int, str]]) -> list[make.Object]:
    """A filter, and a rule for /get/<unit>-<requests>, for each kind of limit."""
    names = [(f"{unit.lower()}-{requests}", requests, unit) for requests, unit in kinds]
    rules = [limits.limited(name, path=f"/get/{name}", name=name) for name, _, _ in names]
    return [
        make.route("all", rules),
        *make.service("origin", [("127.0.0.1", origin)]),
        *(limits.limits(name, limits.limit(requests, unit)) for name, requests, unit in names),
    ]


class Fleet:
    """Proxies that count together."""

    def __init__(self, *proxies: LimitProxy) -> None:
        self.proxies = proxies

    def streams(self, rates: Mapping[str, float]) -> list[Stream]:
        """Requests per second for /get/<key>, each proxy takes its part."""
        return [
            Stream(proxy.port, rate / len(self.proxies), f"/{name}")
            for name, rate in rates.items()
            for proxy in self.proxies
        ]

    def sizes(self) -> list[int]:
        """Where the access logs are now."""
        return [proxy.log_size() for proxy in self.proxies]

    def read(self, sizes: list[int], answers: int) -> list[list[Line]]:
        """The lines of each proxy since `sizes`: as many in all as there were answers."""
        end = time.monotonic() + LOG
        while True:
            found = [proxy.lines(size) for proxy, size in zip(self.proxies, sizes, strict=True)]
            if sum(map(len, found)) >= answers:
                assert sum(map(len, found)) == answers, "more lines than answers"
                return found
            assert time.monotonic() < end, f"{sum(map(len, found))} of {answers} lines"
            time.sleep(0.02)

    def odd(self, sizes: list[int]) -> list[Line]:
        """Some answers that are neither a limit's nor the backend's."""
        pairs = zip(self.proxies, sizes, strict=True)
        lines = (line for proxy, size in pairs for line in proxy.lines(size))
        return [line for line in lines if line.get("status") not in (200, 429)][:5]

    def check_store(self) -> None:
        """The store has never failed and no line was dropped."""
        for proxy in self.proxies:
            assert set(proxy.store_failures().values()) == {0}, proxy.store_failures()
            assert proxy.metric("edgefast_access_log_dropped_total") == 0

    def overload(
        self,
        rates: Mapping[str, float],
        wanted: Mapping[str, int],
        seconds: float,
        *,
        windows: int = 2,
        floods: int = 16,
    ) -> list[list[Line]]:
        """Flood until every limit has had `windows` windows with more demand than it lets through; all must be exact.

        `rates` by path, `wanted` by limit. One flood is enough on a machine with nothing else to do; the demand of all of them counts on one that has to share.
        """
        sizes = self.sizes()
        seen = Outcome(0, 0, 0)
        for _ in range(floods):
            with flooding(self.streams(rates), seconds) as flood:
                seen += flood.end()
            assert seen.errors == 0, (seen, self.odd(sizes))
            lines = self.read(sizes, seen.passed + seen.refused)
            account = draw_account(line for some in lines for line in some)
            check_exact(account, wanted)
            assert count_passed(account) == seen.passed, "clients and logs disagree"
            if full_windows(account, wanted) >= windows:
                self.check_store()
                return lines
        raise AssertionError(f"too little demand in {floods} floods: {_show(account)}")


def _show(account: Account) -> dict[str, list[int]]:
    return {
        name: [window.demand for window in windows.values()] for name, windows in account.items()
    }


@contextmanager
def running_pair(
    redis: str, origin: int, kinds: Iterable[tuple[int, str]], skew: int = SKEW
) -> Iterator[Fleet]:
    """One proxy ahead, one behind."""
    objects = make_objects(origin, kinds)
    with (
        LimitProxy(objects, redis=redis, timeout="10s", skew=skew, workers=2) as ahead,
        LimitProxy(objects, redis=redis, timeout="10s", skew=-skew, workers=2) as behind,
    ):
        for proxy in (ahead, behind):
            proxy.wait_until(proxy.is_connected, "connections to the store")
        yield Fleet(ahead, behind)
