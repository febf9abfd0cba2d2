"""Workers are killed while they count in shared memory: not one request too many passes, before or after."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.account import draw_account
from wire.limits.flood import Stream, flooding
from wire.limits.proxy import LimitProxy

LIMIT = 12_000
KILLS = 2
CONNECTIONS = 32
SECONDS = 60.0  # ceiling of a flood; it ends after REQUESTS
REQUESTS = 4 * LIMIT // 3


@pytest.fixture
def proxy(fast_origin: int) -> Iterator[LimitProxy]:
    objects = [
        make.route("all", [limits.limited("all", path="/get")]),
        *make.service("origin", [("127.0.0.1", fast_origin)]),
        limits.limits("all", limits.limit(LIMIT)),
    ]
    with LimitProxy(objects, workers=2) as running:
        running.workers_may_die = True
        yield running


def test_no_request_too_many(proxy: LimitProxy) -> None:
    stream = Stream(proxy.port, 0, connections=CONNECTIONS, requests=REQUESTS)
    with flooding([stream], SECONDS) as flood:
        for turn in range(1, KILLS + 1):
            # In the midst of what may pass; counts outlive the worker that counted.
            wanted = LIMIT * turn // (KILLS + 1)
            proxy.wait_until(
                lambda wanted=wanted: proxy.counted("requests", result="ok") >= wanted,  # type: ignore[misc]
                f"{wanted} requests that passed",
                SECONDS,
            )
            victim = proxy.worker_pids[turn % 2]
            os.kill(victim, signal.SIGKILL)
            proxy.wait_until(
                lambda victim=victim: len({*proxy.worker_pids} - {victim}) == 2,  # type: ignore[misc]
                "a successor",
            )
        seen = flood.end()
    assert 0 < seen.errors <= KILLS * CONNECTIONS, seen  # each connection loses one request at most
    assert seen.passed <= LIMIT, seen
    assert seen.passed >= LIMIT - seen.errors, seen  # counted, and gone with its worker
    assert seen.refused > 0, seen
    assert proxy.statuses(3, "/get") == [429] * 3
    assert set(proxy.store_failures().values()) == {0}
    # The logs lack what a worker had not written when it died, and never say that more passed.
    account = draw_account(proxy.lines())
    assert [window.passed <= LIMIT for window in account["default/all#0"].values()] == [True]
