"""Exactly N requests pass in every window, whoever counts: two proxies of two workers with one Redis, clocks 20 s apart.

Issue "Held to": N in {1, 10, 100} at ten times the limit, 1,000 (`make heavy`: 5,000) at twice, windows of a second and a minute, across
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
from wire.limits.account import Line, draw_account
from wire.limits.clock import MovableClock
from wire.limits.pair import SKEW, Fleet, make_objects, name_limit, running_pair
from wire.limits.proxy import PASSWORD, LimitProxy

SMALL = (1, 10, 100)
LARGE = (1_000,)
MOST = 5_000  # a flood of twice as much takes all of a machine: `make heavy`
GROUPS = [SMALL + LARGE, pytest.param((MOST,), marks=pytest.mark.heavy)]  # at once
SECONDS = [(requests, "Second") for requests in (*SMALL, *LARGE, MOST)]
MINUTES = [(requests, "Minute") for requests in SMALL + LARGE]
FLOOD = 3.2  # seconds: two whole windows of a second at least
AHEAD = 2.5  # seconds before a minute ends


def factor(requests: int) -> int:
    """How much more comes than may pass."""
    return 10 if requests <= 100 else 2


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> MovableClock:
    return MovableClock(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def redis(clock: MovableClock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("redis")
    server = RedisServer(folder, "--requirepass", PASSWORD, password=PASSWORD)
    server.prefix = clock.prefix
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def fleet(redis: RedisServer, fast_origin: int) -> Iterator[Fleet]:
    with running_pair(redis.address, fast_origin, SECONDS + MINUTES) as running_fleet:
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


@pytest.mark.timeout(600)
def test_the_edge_of_a_minute(fleet: Fleet, redis: RedisServer, clock: MovableClock) -> None:
    """The store's clock is put shortly before the end of a minute, while proxies are connected to it."""
    clock.move(60 - AHEAD - store_time(redis) % 60)
    sizes = [size for size, _ in MINUTES]
    rates = {f"minute-{size}": size * factor(size) / AHEAD + 10 for size in sizes}
    wanted = {name_limit(size, "Minute"): size for size in sizes}
    # On a machine that stands still the edge is over before the first flood: the next one comes.
    lines = fleet.overload(rates, wanted, 2 * AHEAD, floods=16)
    account = draw_account(line for some in lines for line in some)
    (last,) = {max(windows) for windows in account.values()}
    with contextlib.closing(redis.client()) as client:
        stored = {key.decode(): client.get(key) for key in client.scan_iter("ef:*minute-*")}
    assert len(stored) == len(sizes)
    for size in sizes:
        (value,) = [value for key, value in stored.items() if f"n=minute-{size}1" in key]
        assert read_value(value) == (last, size)


def read_value(value: bytes) -> tuple[int, int]:
    """Start of the window and what was let through in it, as Redis holds it (edgefast/rate_limit/window.lua)."""
    return int.from_bytes(value[:5], "little"), int.from_bytes(value[9:13], "little")


# --- one machine without Redis ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machine(fast_origin: int) -> Iterator[Fleet]:
    with LimitProxy(make_objects(fast_origin, SECONDS), workers=2) as proxy:
        yield Fleet(proxy)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sizes", GROUPS, ids=str)
def test_seconds_in_shared_memory(machine: Fleet, sizes: tuple[int, ...]) -> None:
    rates = {f"second-{size}": float(size * factor(size)) for size in sizes}
    machine.overload(rates, {name_limit(size, "Second"): size for size in sizes}, FLOOD)
