"""A flood of values of one limit, in shared memory: it ends at that limit's room, no other limit notices, and it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from rate_limit.servers import until
from wire.harness import objects as make
from wire.limits import proxy as limits
from wire.limits.proxy import LimitProxy

#: Room is shared by all limits with values: with so many of them a few hundred requests fill one's.
FILTERS, RULES, LIMITS = 4, 14, 16
CEILING = 1_000


@pytest.fixture(scope="module")
def proxy(origin: RecordingOrigin) -> Iterator[LimitProxy]:
    plain, values = limits.limit(2, "Year"), limits.limit(3, "Year", "x-user")
    names = [[f"other-{rule}-{number}" for number in range(FILTERS)] for rule in range(RULES)]
    objects = [
        make.route(
            "all",
            [
                limits.limited("plain", path="/login", name="login"),
                limits.limited("values", path="/flood", name="flood"),
                limits.limited("values", path="/calm", name="calm"),
            ],
        ),
        *(
            make.route(f"more-{rule}", [limits.limited(*some, path=f"/more-{rule}", name="more")])
            for rule, some in enumerate(names)
        ),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        limits.limits("plain", plain),
        limits.limits("values", values),
        *(limits.limits(name, *[values] * LIMITS) for some in names for name in some),
    ]
    with LimitProxy(objects, workers=2, fail_closed=True) as running:
        yield running


def ask(proxy: LimitProxy, target: str, user: str, count: int = 1) -> list[int]:
    return proxy.statuses(count, target, x_user=user)


def test_a_flood_ends_at_the_limits_room(proxy: LimitProxy) -> None:
    proxy.wait_until(lambda: ask(proxy, "/calm", "first") != [], "an answer")
    assert ask(proxy, "/flood", "known") == [200]
    found = []
    with proxy.client() as client:
        while 500 not in found:
            assert len(found) < CEILING, "no end of the room"
            pairs = [("x-user", f"flood-{len(found)}")]
            found.append(client.request("GET", "/flood", "a", pairs).status)
    assert len(found) > 100
    # Who has a counter goes on, to the number; new values of this limit are not counted.
    assert ask(proxy, "/flood", "known", 3) == [200, 200, 429]
    assert ask(proxy, "/flood", "new", 2) == [500, 500]
    # Others count as ever: one with values, and one without, which no flood can reach.
    for number in range(20):
        assert ask(proxy, "/calm", f"calm-{number}", 4) == [200, 200, 200, 429]
    assert proxy.statuses(4, "/login") == [200, 200, 429, 429]
    check_told(proxy)


def check_told(proxy: LimitProxy) -> None:
    assert proxy.counted("no_room", route="default/all", limit="default/values#0") >= 3
    assert proxy.counted("store_full") == proxy.counted("no_room")

    def problem() -> str:
        return "".join(
            one["text"] for one in proxy.dump()["problems"] if one["reason"] == "NotCounted"
        )

    said = until(problem, "a problem in status")
    assert said.startswith("RateLimitFilter default/values spec.global.rules[0]: ")
    assert "new values are not counted" in said and "default/all" in said
    assert proxy.log.count("NotCounted one window has more values than") == 1
    (crowded,) = json.loads(proxy.get(proxy.admin, "/limits")[1])["crowded"]
    assert (crowded["route"], crowded["rule"], crowded["limit"]) == (
        "default/all",
        "flood",
        "default/values#0",
    )
    assert crowded["values"] >= crowded["room"] > 100
    assert crowded["reset"] > 3600
