"""A store that fails: every request is answered by policy, nobody piles up, and limits are back soon after the store is.

Issue "Held to", with real processes. What is asserted is counted; times have wide ceilings only. Nothing waits for a
fixed time: a failure lasts until the test ends it. One worker each, so that its breaker can be looked at.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from rate_limit.servers import RedisServer, until
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import build_request
from wire.limits import proxy as limits
from wire.limits.account import Line
from wire.limits.failure import FAILURES, Failure
from wire.limits.proxy import PASSWORD, LimitProxy

LIMIT = 3
AT_ONCE = 40
TIMEOUT = 20  # ms, the default
CEILING = 2_000  # ms for one request on a machine that does much else
BACK = 20.0  # seconds until limits hold again; a quiet machine needs 0.5
ERROR = "RLSE"

_users = (f"user-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def proxies(redis: RedisServer, origin: RecordingOrigin) -> Iterator[dict[int, LimitProxy]]:
    """By the status of a limited request while the store fails: 200 is "open", 500 "closed"."""
    objects = [
        make.route("all", [limits.limited("each"), limits.limited("seen", path="/shadow")]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        limits.limits("each", limits.limit(LIMIT, "Year", "x-user")),
        limits.limits("seen", limits.limit(LIMIT, "Year", "x-user", shadow=True)),
    ]
    store = {"redis": redis.address, "timeout": f"{TIMEOUT}ms"}
    redis.kill()  # they start without their store, and limits apply when it starts
    with (
        LimitProxy(objects, **store) as open_proxy,
        LimitProxy(objects, fail_closed=True, **store) as closed_proxy,
    ):
        try:
            assert open_proxy.statuses(5, x_user=next(_users)) == [200] * 5
            assert closed_proxy.statuses(5, x_user=next(_users)) == [500] * 5
        finally:
            redis.start()
        await_limits(closed_proxy)
        yield {200: open_proxy, 500: closed_proxy}


def await_limits(proxy: LimitProxy, deadline: float = BACK) -> str:
    """Until a new user is held to the limit; on a busy machine a try may fail by the store's timeout. Returns the user."""

    def holds() -> str:
        user = next(_users)
        expected = [200] * LIMIT + [429]
        return user if proxy.statuses(LIMIT + 1, x_user=user) == expected else ""

    return str(until(holds, "limits", deadline))


def ask_at_once(proxy: LimitProxy, target: str = "/") -> list[int]:
    """One request each of many users, all sent before the first answer is read."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proxy.client()) for _ in range(AT_ONCE)]
        for client in clients:
            client.expect("GET")
            client.send(build_request("GET", target, headers=[("x-user", next(_users))]))
        return [client.read_response().status for client in clients]


def store_sockets(proxy: LimitProxy, redis: RedisServer) -> int:
    """Connections to the store, by the kernel's account."""
    found = proc.connections(proxy.worker_pids)
    return sum(1 for one in found if one.remote_port == redis.port)


def problems(proxy: LimitProxy) -> list[str]:
    """What `status`, `explain` and the console say of limits that are not counted."""
    return [one["text"] for one in proxy.dump()["problems"] if one["reason"] == "NotCounted"]


def check_lines(proxy: LimitProxy, path: str, count: int, status: int) -> None:
    """All requests for a path are logged as answered by policy, and none waited long."""

    def about() -> list[Line]:
        return [line for line in proxy.lines() if line["path"] == path]

    until(lambda: len(about()) >= count, f"{count} lines")
    lines = about()
    assert len(lines) == count
    assert {(line["status"], line["flags"]) for line in lines} == {(status, ERROR)}
    assert all(("endpoint" in line) == (status == 200) for line in lines)
    times = [line["duration_ms"] - line["upstream_ms"] for line in lines]
    assert max(times) < CEILING
    # Those behind the open breaker, nearly half of them, did not even wait for the store's share.
    assert statistics.quantiles(times)[0] <= TIMEOUT + 5


def check_failing(proxy: LimitProxy, redis: RedisServer, failure: Failure, status: int) -> None:
    """Many at once, then one after the other until the breaker has opened, then some more."""
    path = f"/while-{next(_users)}"
    errors, timeouts = proxy.counted("requests", result="error"), proxy.counted("store_timeouts")
    assert ask_at_once(proxy, path) == [status] * AT_ONCE
    count = AT_ONCE

    def is_open() -> bool:
        nonlocal count
        count += 1
        assert proxy.statuses(1, path, x_user=next(_users)) == [status]
        (store,) = proxy.stores()
        return store["primaries"][0]["breaker"] == "open" and not store["available"]

    until(is_open, "an open breaker")
    asked = proxy.counted("batches")
    until(lambda: problems(proxy), "a problem")
    (said,) = problems(proxy)
    assert f"NotCounted the store {redis.address} does not count: " in said
    assert proxy.metric("edgefast_ratelimit_stores_down") == 1
    assert ask_at_once(proxy, path) == [status] * AT_ONCE
    count += AT_ONCE
    assert proxy.counted("batches") == asked, "it asks although the breaker is open"
    assert store_sockets(proxy, redis) <= 1
    check_lines(proxy, path, count, status)
    assert proxy.counted("requests", result="error") == errors + count
    timed_out = proxy.counted("store_timeouts") - timeouts
    # Three, and one more for each that came late within the time of another.
    assert (1 if failure.silent else 0) <= timed_out <= 6
    assert ask_at_once(proxy, "/shadow") == [200] * AT_ONCE


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_every_request_is_answered(
    failure: Failure, proxies: dict[int, LimitProxy], redis: RedisServer, origin: RecordingOrigin
) -> None:
    spent = {status: await_limits(proxy) for status, proxy in proxies.items()}
    client = redis.client()
    client.ping()
    failure.begin(redis, client)
    try:
        for status, proxy in proxies.items():
            check_failing(proxy, redis, failure, status)
            # Who is known to be over his limit needs no store.
            assert proxy.statuses(2, x_user=spent[status]) == [429, 429]
            assert PASSWORD not in proxy.log + str(proxy.dump())
    finally:
        failure.end(redis, client)
    for proxy in proxies.values():
        await_limits(proxy)
        until(lambda proxy=proxy: not problems(proxy), "an end of the problem")  # type: ignore[misc]
        assert proxy.metric("edgefast_ratelimit_stores_down") == 0
    client.close()
    with contextlib.closing(redis.client()) as look:
        # Itself and one of each worker; what was given up while it did not answer is gone as well.
        until(lambda: look.info("clients")["connected_clients"] == 3, "three connections")
