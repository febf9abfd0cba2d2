"""What keeps a counter and what begins a new one (docs/rate-limits.md, "Counters"), with Redis and with shared memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from origin.recording import RecordingOrigin
from ratelimit.servers import RedisServer
from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.proxy import LimitProxy


@pytest.fixture(scope="module", params=["redis", "memory"])
def proxy(request: pytest.FixtureRequest, origin: RecordingOrigin) -> Iterator[LimitProxy]:
    redis = request.getfixturevalue("redis").address if request.param == "redis" else ""
    with LimitProxy(world(origin), redis=redis) as running_proxy:
        if redis:
            running_proxy.wait_until(running_proxy.is_connected, "a connection to the store")
        yield running_proxy


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


def test_proxies_are_rolled(redis: RedisServer, origin: RecordingOrigin) -> None:
    """A new proxy before the old one ends; both count together, and the new one goes on."""
    user = "rolled"
    with ExitStack() as old:
        first = old.enter_context(LimitProxy(world(origin), redis=redis.address))
        first.wait_until(first.is_connected, "a connection to the store")
        assert first.statuses(2, x_user=user) == [200] * 2
        with LimitProxy(world(origin), redis=redis.address) as second:
            second.wait_until(second.is_connected, "a connection to the store")
            assert second.statuses(1, x_user=user) == [200]
            assert first.statuses(1, x_user=user) == [200]
            old.close()
            assert second.statuses(2, x_user=user) == [200, 429]


def test_a_forgotten_script_loses_nothing(redis: RedisServer, origin: RecordingOrigin) -> None:
    """SCRIPT FLUSH: the script is loaded again, no request notices, the counters are still there."""
    with LimitProxy(world(origin), redis=redis.address) as proxy:
        proxy.wait_until(proxy.is_connected, "a connection to the store")
        assert proxy.statuses(2, x_user="script") == [200] * 2
        with contextlib.closing(redis.client()) as client:
            client.script_flush()
        assert proxy.statuses(4, x_user="script") == [200, 200, 200, 429]
        assert set(proxy.store_failures().values()) == {0}


def test_a_store_that_comes_back_empty(redis: RedisServer, origin: RecordingOrigin) -> None:
    """Restarted without its data: who was not over the limit begins anew, and is held to it again."""
    with LimitProxy(world(origin), redis=redis.address, fail_closed=True) as proxy:
        proxy.wait_until(proxy.is_connected, "a connection to the store")
        assert proxy.statuses(3, x_user="empty") == [200] * 3
        redis.kill()
        proxy.wait_until(lambda: not proxy.is_connected(), "the loss of the connection")
        redis.start()
        proxy.wait_until(proxy.is_connected, "a connection to the store")
        assert proxy.statuses(6, x_user="empty") == [200] * 5 + [429]
        assert proxy.counted("requests", result="error") == 0
