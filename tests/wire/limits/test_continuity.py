"""What keeps a counter and what begins a new one (docs/guides/rate-limits.md, "Counters"), with Redis and with shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from rate_limit.servers import RedisServer
from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.proxy import LimitProxy


@pytest.fixture(scope="module")
def on_redis(redis: RedisServer, origin: RecordingOrigin) -> Iterator[LimitProxy]:
    """A proxy that counts in Redis."""
    with LimitProxy(world(origin), redis=redis.address, fail_closed=True) as running_proxy:
        running_proxy.wait_until(running_proxy.is_connected, "a connection to the store")
        yield running_proxy


@pytest.fixture(scope="module")
def in_memory(origin: RecordingOrigin) -> Iterator[LimitProxy]:
    """A proxy that counts in shared memory."""
    with LimitProxy(world(origin)) as running_proxy:
        yield running_proxy


@pytest.fixture(params=["on_redis", "in_memory"])
def proxy(request: pytest.FixtureRequest) -> LimitProxy:
    found: LimitProxy = request.getfixturevalue(request.param)
    return found


def world(
    origin: RecordingOrigin,
    requests: int = 5,
    *more: make.Object,
    rule: str = "shop",
    filter_name: str = "shop",
    hostnames: tuple[str, ...] = (),
) -> list[make.Object]:
    """One limited rule, with others around it."""
    return [
        make.route("shop", [*more, limits.limited(filter_name, name=rule)], hostnames),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        limits.limits(filter_name, limits.limit(requests, "Year", "x-user")),
        limits.limits("other", limits.limit(1, "Hour")),
    ]


def test_a_counter_goes_on(proxy: LimitProxy, origin: RecordingOrigin) -> None:
    """Other rules before it, another limit, another name of the filter, hostnames: the same counter."""
    user = "goes-on"
    other = limits.limited("other", path="/other", name="other")
    assert proxy.statuses(2, x_user=user) == [200] * 2
    proxy.apply(proxy.complete(world(origin, 5, other)))
    assert proxy.statuses(1, x_user=user) == [200]
    proxy.apply(proxy.complete(world(origin, 5, make.rule("origin", matches=[make.path("/x")]), other)))  # fmt: skip
    assert proxy.statuses(3, x_user=user) == [200, 200, 429]
    proxy.apply(proxy.complete(world(origin, 7, filter_name="renamed")))
    assert proxy.statuses(3, x_user=user) == [200, 200, 429]
    proxy.apply(proxy.complete(world(origin, 3, hostnames=("a", "b"))))
    assert proxy.statuses(1, x_user=user) == [429]
    proxy.apply(proxy.complete(world(origin, 8)))
    assert proxy.statuses(2, x_user=user) == [200, 429]
    assert set(proxy.store_failures().values()) == {0}


def test_another_name_of_the_rule_is_another_counter(
    proxy: LimitProxy, origin: RecordingOrigin
) -> None:
    user = "renamed"
    proxy.apply(proxy.complete(world(origin, 2)))
    assert proxy.statuses(3, x_user=user) == [200, 200, 429]
    proxy.apply(proxy.complete(world(origin, 2, rule="another")))
    assert proxy.statuses(3, x_user=user) == [200, 200, 429]
    proxy.apply(proxy.complete(world(origin, 2)))
    assert proxy.statuses(1, x_user=user) == [429]
