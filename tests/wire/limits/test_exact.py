"""Exactly N requests pass in every window, whoever counts: two proxies of two workers with one Redis, clocks 20 s apart.

Issue "Held to": N in {1, 10, 100} at ten times the limit, 1,000 (`make heavy`: 5,000) at twice, windows of a second, across
their edges. Each decision belongs to the window that its line of the access log names. The store never fails here (its
timeout is 10 s), which is asserted. test_minutes.py has whole minutes.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterator

import pytest

from rate_limit.servers import RedisServer
from wire.limits.account import Line
from wire.limits.pair import SKEW, Fleet, make_objects, name_limit, running_pair
from wire.limits.proxy import LimitProxy

SMALL = (1, 10, 100)
LARGE = (1_000,)
MOST = 5_000  # a flood of twice as much takes all of a machine: `make heavy`
GROUPS = [SMALL + LARGE, pytest.param((MOST,), marks=pytest.mark.heavy)]  # at once
SECONDS = [(requests, "Second") for requests in (*SMALL, *LARGE, MOST)]
FLOOD = 3.2  # seconds: two whole windows of a second at least


def factor(requests: int) -> int:
    """How much more comes than may pass."""
    return 10 if requests <= 100 else 2


@pytest.fixture(scope="module")
def fleet(redis: RedisServer, fast_origin: int) -> Iterator[Fleet]:
    with running_pair(redis.address, fast_origin, SECONDS) as running_fleet:
        yield running_fleet


def store_time(redis: RedisServer) -> float:
    with contextlib.closing(redis.client()) as client:
        seconds, micros = client.time()
    return float(seconds) + micros / 1e6


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sizes", GROUPS, ids=str)
def test_seconds(fleet: Fleet, redis: RedisServer, sizes: tuple[int, ...]) -> None:
    rates = {f"second-{size}": float(size * factor(size)) for size in sizes}
    lines = fleet.overload(rates, {name_limit(size, "Second"): size for size in sizes}, FLOOD)
    offset = store_time(redis) - time.time()
    for some, skew in zip(lines, (SKEW, -SKEW), strict=True):
        assert some, "a proxy got no requests"
        late = [logged_at(line) - skew + offset - line["limit_window"] for line in some]
        assert -1 < min(late) and max(late) < 5, (
            "the clocks were not skewed, or windows follow them"
        )


def logged_at(line: Line) -> float:
    return datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()


@pytest.fixture(scope="module")
def machine(fast_origin: int) -> Iterator[Fleet]:
    with LimitProxy(make_objects(fast_origin, SECONDS), workers=2) as proxy:
        yield Fleet(proxy)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sizes", GROUPS, ids=str)
def test_seconds_in_shared_memory(machine: Fleet, sizes: tuple[int, ...]) -> None:
    rates = {f"second-{size}": float(size * factor(size)) for size in sizes}
    machine.overload(rates, {name_limit(size, "Second"): size for size in sizes}, FLOOD)
