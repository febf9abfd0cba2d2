"""A store in trouble is told once for a proxy, however many workers find out, and as a problem as long as it lasts."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from origin.recording import RecordingOrigin
from rate_limit.servers import RedisServer, until
from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.proxy import LimitProxy

WORKERS = 3


@pytest.fixture(scope="module")
def proxy(redis: RedisServer, origin: RecordingOrigin) -> Iterator[LimitProxy]:
    objects = [
        make.route("all", [limits.limited("each")]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        limits.limits("each", limits.limit(1_000_000)),
    ]
    with LimitProxy(objects, redis=redis.address, workers=WORKERS) as running:
        running.workers_may_die = True
        until(running.is_connected, "connections")
        yield running


def told(proxy: LimitProxy, offset: int) -> list[str]:
    """What was warned of since then about the store."""
    lines = [line.split(" ", 3) for line in proxy.log[offset:].splitlines()]
    about = ("rate limits: ", "EdgeGateway rateLimit.backend: ")
    return [
        line[3] for line in lines if line[1] in ("warning", "error") and line[3].startswith(about)
    ]


def problems(proxy: LimitProxy) -> list[tuple[str, str, str]]:
    """The problems of the store."""
    found = [(one["reason"], one["severity"], one["text"]) for one in proxy.dump()["problems"]]
    return [one for one in found if one[0] in ("NotCounted", "EvictingStore")]


def explain(proxy: LimitProxy) -> list[str]:
    """The notes of an explanation of the limited rule."""
    query = urlencode({"method": "GET", "url": f"http://a:{proxy.port}/"})
    status, body = proxy.get(proxy.admin, f"/explain?{query}")
    assert status == 200, body
    return list(json.loads(body)["notes"])


def test_one_line_when_it_stops_and_one_when_it_goes_on(
    proxy: LimitProxy, redis: RedisServer
) -> None:
    """Also when a worker dies meanwhile, whose successor has to find out again."""
    begin = len(proxy.log)
    redis.kill()
    try:
        until(lambda: proxy.metric("edgefast_ratelimit_stores_down") == WORKERS, "open breakers")
        (found,) = problems(proxy)
        assert found[:2] == ("NotCounted", "error")
        assert f"the store {redis.address} does not count: " in found[2]
        assert found[2].endswith("; limited requests pass")
        assert f"its limits: {found[2]}" in explain(proxy)
        place = {"store": redis.address, "trouble": "down"}
        assert proxy.metric("edgefast_ratelimit_store_troubles", **place) == WORKERS
        os.kill(proxy.worker_pids[0], signal.SIGKILL)
        until(lambda: proxy.metric("edgefast_worker_restarts_total") == 1, "a successor")
        until(lambda: proxy.metric("edgefast_ratelimit_stores_down") == WORKERS, "open breakers")
    finally:
        redis.start()
    until(lambda: proxy.metric("edgefast_ratelimit_stores_down") == 0, "closed breakers")
    until(lambda: not problems(proxy), "an end of the problem")
    stopped, goes_on = told(proxy, begin)
    assert stopped == found[2]
    assert goes_on == f"rate limits: {redis.address} serves again"


def test_a_store_that_may_forget_is_a_problem(proxy: LimitProxy, redis: RedisServer) -> None:
    begin = len(proxy.log)
    with contextlib.closing(redis.client()) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "volatile-lru")
        try:
            client.client_kill_filter(_type="normal", skipme=True)
            until(lambda: problems(proxy), "a problem")
            (found,) = problems(proxy)
            assert found[:2] == ("EvictingStore", "warning")
            assert f"{redis.address} has maxmemory-policy volatile-lru" in found[2]
            place = {"store": redis.address, "trouble": "volatile-lru"}
            until(
                lambda: proxy.metric("edgefast_ratelimit_store_troubles", **place) == WORKERS,
                "the account of every worker",
            )
            said = [one for one in told(proxy, begin) if "maxmemory-policy" in one]
            assert len(said) == 1, said
            client.config_set("maxmemory-policy", "noeviction")
            client.client_kill_filter(_type="normal", skipme=True)
            until(lambda: not problems(proxy), "an end of the problem")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 0)
