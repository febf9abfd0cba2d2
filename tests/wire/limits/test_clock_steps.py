"""A wall clock that is set ahead and back, where counters are in shared memory: limits go on, what is told is true."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from origin.recording import RecordingOrigin
from rate_limit.servers import until
from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.clock import MovableClock
from wire.limits.proxy import LimitProxy

HOUR = 3600
LIMIT = 5
KINDS = {
    f"{algorithm.lower()}-{unit.lower()}": (unit, algorithm)
    for unit in ("Second", "Hour")
    for algorithm in ("FixedWindow", "SlidingWindow")
}


class World(NamedTuple):
    """A proxy that counts in shared memory, and the clock of its machine."""

    proxy: LimitProxy
    clock: MovableClock


@pytest.fixture(scope="module")
def world(origin: RecordingOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    clock = MovableClock(tmp_path_factory.mktemp("steps"))
    proxy = LimitProxy(make_objects(origin), workers=2, tell=True)
    proxy._prefix = clock.prefix
    with proxy:
        yield World(proxy, clock)


def make_objects(origin: RecordingOrigin) -> list[make.Object]:
    rules = [limits.limited(name, path=f"/{name}", name=name) for name in KINDS]
    filters = [
        limits.limits(name, limits.limit(LIMIT, unit, "x-user", algorithm=algorithm))
        for name, (unit, algorithm) in KINDS.items()
    ]
    return [
        make.route("all", rules),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        *filters,
    ]


def ask(world: World, name: str, user: str, count: int) -> tuple[list[int], list[int]]:
    """The statuses of requests, and what they were told of their windows' ends (seconds)."""
    statuses, resets = [], []
    with world.proxy.client() as client:
        for _ in range(count):
            answer = client.request("GET", f"/{name}", "a", [("x-user", user)])
            statuses.append(answer.status)
            resets += map(int, answer.values("ratelimit-reset"))
    assert len(resets) == count, "an answer without its limit"
    return statuses, resets


@pytest.mark.parametrize("name", [name for name in KINDS if "second" in name])
@pytest.mark.parametrize("step", [-86400 * 40, 86400 * 40, -1], ids=str)
def test_a_second_is_never_longer(world: World, name: str, step: int) -> None:
    """Ahead or back by much more than a window, while it is in use: a window later requests pass again."""
    user = f"{name}{step}"
    assert 200 in ask(world, name, user, LIMIT)[0]
    world.clock.move(step)
    try:
        began = time.monotonic()
        until(lambda: 200 in ask(world, name, user, 1)[0], "request that passes", 20.0)
        assert time.monotonic() - began < 20.0
    finally:
        world.clock.move(-step)
    until(lambda: 200 in ask(world, name, user, 1)[0], "request that passes", 20.0)


@pytest.mark.parametrize("name", [name for name in KINDS if "hour" in name])
@pytest.mark.parametrize("step", [-3 * HOUR, 3 * HOUR], ids=str)
def test_an_hour_costs_one_window(world: World, name: str, step: int) -> None:
    """There and back: each step lets at most one window's requests pass; a stranger's limit is as exact as ever."""
    user = f"{name}{step}"
    assert ask(world, name, user, LIMIT - 1)[0] == [200] * (LIMIT - 1)
    for move in (step, -step):
        world.clock.move(move)
        statuses, resets = ask(world, name, user, 2 * LIMIT)
        assert statuses.count(200) == (move == step), "a clock that does not step costs nothing"
        assert all(0 < reset <= HOUR + 1 for reset in resets), resets
        fresh, _ = ask(world, name, f"{user}{move}", 2 * LIMIT)
        assert fresh.count(200) == LIMIT
