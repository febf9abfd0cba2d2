"""Whole minutes: two full windows of a minute at least, all limits at once. Minutes long: `make heavy`.

With Redis two proxies of two workers, clocks 20 s apart, and exactly the limit passes in every window. With shared memory one
machine of two workers, one of which is killed in the second full window: no window lets more than the limit through.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from rate_limit.servers import RedisServer
from wire.limits.account import check_exact, draw_account, full_windows
from wire.limits.flood import flooding
from wire.limits.pair import Fleet, make_objects, name_limit, running_pair
from wire.limits.proxy import LimitProxy

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

FACTORS = {1: 10, 10: 10, 100: 10, 1_000: 2, 5_000: 2}
KINDS = [(requests, "Minute") for requests in FACTORS]
RATES = {f"minute-{requests}": requests * factor / 60 + 0.2 for requests, factor in FACTORS.items()}
WANTED = {name_limit(requests, "Minute"): requests for requests in FACTORS}


def two_minutes() -> float:
    """Seconds to the end of the second full minute from now, and a bit of the third."""
    return 60 - time.time() % 60 + 120 + 2


def test_with_redis(redis: RedisServer, fast_origin: int) -> None:
    with running_pair(redis.address, fast_origin, KINDS) as fleet:
        fleet.overload(RATES, WANTED, two_minutes(), windows=2, floods=1)


def test_in_shared_memory_with_a_death(fast_origin: int) -> None:
    with LimitProxy(make_objects(fast_origin, KINDS), workers=2) as proxy:
        proxy.workers_may_die = True
        fleet, largest = Fleet(proxy), name_limit(5_000, "Minute")
        with flooding(fleet.streams(RATES), two_minutes()) as flood:

            def middle() -> int:
                """The second full window, when some of what may pass has passed."""
                windows = draw_account(proxy.lines()).get(largest, {})
                last = max(windows, default=0)
                return last if len(windows) == 3 and windows[last].passed > 1_000 else 0

            proxy.wait_until(lambda: middle() > 0, "the second full window", 200)
            death = middle()
            os.kill(proxy.worker_pids[0], signal.SIGKILL)
            seen = flood.end()
        assert seen.errors <= 2 * len(RATES) * 16, seen
        account = draw_account(proxy.lines())
        assert full_windows(account, WANTED) >= 2
        for name, windows in account.items():
            torn = windows.pop(death)  # lines of the dead worker are missing
            assert torn.passed <= WANTED[name]
        check_exact(account, WANTED)
        assert seen.passed <= sum(WANTED.values()) * (len(windows) + 1)
        assert set(proxy.store_failures().values()) == {0}
