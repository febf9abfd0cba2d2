"""GET /limits: real workers count, in shared memory and in Redis; the agent tells what is left, of whom, and to whom not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgefast import ir
from edgefast.httpd.server import Reply, Request
from edgefast.proxy.admin import limit_list
from edgefast.proxy.admin.admin import Admin
from edgefast.proxy.agent.agent import Agent
from proxy.limited import ALL, EACH, UNIT, limited_table
from proxy.living import ask, until, with_agent
from proxy.shards import make_fleet
from rate_limit.servers import RedisServer, running
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

Talk = Callable[[Agent, "Seen"], Awaitable[None]]


class Seen:
    """What an operator asks."""

    def __init__(self, agent: Agent) -> None:
        self._routes = Admin(agent).admin

    async def reply(self, path: str = "/limits", **query: str) -> Reply:
        return await self._routes["GET", path](Request("GET", path, query, b""))

    async def limits(self, **query: str) -> Any:
        reply = await self.reply(**query)
        assert reply.status == 200, reply.body
        return json.loads(reply.body)


def serve(port: int, talk: Talk, store: ir.RateLimitStore | None = None) -> None:
    """Two workers with the limited table, for a conversation."""

    async def begin(agent: Agent) -> None:
        assert (await agent.publish(limited_table(port, store))).acknowledged
        await talk(agent, Seen(agent))

    leave_the_day()
    with_agent(begin)


def leave_the_day() -> None:
    """Wait for the next day when this one ends soon: counters would begin anew amid a test."""
    left = UNIT - time.time() % UNIT
    if left < 30:
        time.sleep(left)


async def send(port: int, path: str, count: int, user: str = "") -> list[int]:
    """Requests on connections of their own, one after the other; their statuses."""
    host = f"x.test\r\nX-User: {user}" if user else "x.test"
    return [int((await ask(port, path, host)).split()[1]) for _ in range(count)]


def shown(listing: Any) -> list[tuple[Any, ...]]:
    return [
        (one["rule"], one["values"], one["used"], one["remaining"], one["limited"])
        for one in listing["counters"]
    ]


async def check_counts(port: int, seen: Seen) -> None:
    """The same for both stores."""
    assert await send(port, "/open", 2) == [302] * 2
    assert (await seen.limits())["counters"] == []
    assert await send(port, "/all", 2) == [302] * 2
    assert await send(port, "/each", 1, "bob") == [302]
    assert await send(port, "/each", 4, 'a"1:x,') == [302, 302, 429, 429]
    listing = await seen.limits()
    assert (listing["complete"], listing["others"], listing["limits"]) == (True, 0, 2)
    assert shown(listing) == [
        ("each", {"x-user": 'a"1:x,'}, 2, 0, True),
        ("all", {}, 2, 1, False),
        ("each", {"x-user": "bob"}, 1, 1, False),
    ]
    first = listing["counters"][0]
    assert (first["route"], first["limit"], first["requests"]) == ("ns/web", EACH.name, 2)
    assert (first["unit"], first["sliding"], first["shadow"]) == (UNIT, False, False)
    assert first["window"] == time.time() // UNIT * UNIT
    assert abs(first["reset"] - (UNIT - time.time() % UNIT)) < 30
    assert shown(await seen.limits(limited="1")) == shown(listing)[:1]
    assert await send(port, "/all", 2) == [302, 429]
    assert shown(await seen.limits(limited="1"))[0] == ("all", {}, 3, 0, True)


def test_counters_in_shared_memory() -> None:
    port = free_port()

    async def talk(agent: Agent, seen: Seen) -> None:
        await check_counts(port, seen)
        listing = await seen.limits()
        assert listing["store"] == "memory"
        assert listing["table"] == agent.ledger.current.version

    serve(port, talk)


def test_counters_in_redis(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, "--requirepass", "s3cret-word", password="s3cret-word") as server:
        store = redis_store(server, password="s3cret-word")

        async def talk(agent: Agent, seen: Seen) -> None:
            await until(lambda: agent.serving, "service")
            await connected(seen)
            await check_counts(port, seen)
            clients = server.client()
            clients.set(b"ef:{00}:" + b"6:ns/old5:n=old4:cccc", clients.get(any_key(server)))
            listing = await seen.limits()
            assert (listing["store"], listing["others"], len(shown(listing))) == ("redis", 1, 3)
            # One of each worker, and the test's: a listing leaves none behind.
            await until(lambda: len(clients.client_list()) == 3, "end of the listing's connection")
            clients.close()
            for path in ("/limits", "/dump"):
                assert b"s3cret-word" not in (await seen.reply(path)).body
            server.kill()
            reply = await seen.reply()
            assert reply.status == 503
            assert reply.body == b"the store does not answer: Connection refused\n"

        serve(port, talk, store)


def redis_store(server: RedisServer, **settings: Any) -> ir.RateLimitStore:
    return ir.RateLimitStore(kind="redis", addresses=(server.address,), timeout=2000, **settings)


async def connected(seen: Seen) -> None:
    """Wait until every worker has its connection: until then requests pass uncounted."""
    async with asyncio.timeout(20):
        while True:
            workers = json.loads((await seen.reply("/dump")).body)["workers"]
            if all(one["engine"]["rate_limits"]["store"]["connected"] for one in workers):
                return
            await asyncio.sleep(0.01)


def any_key(server: RedisServer) -> bytes:
    client = server.client()
    try:
        return next(key for key in client.scan_iter("ef:*each*"))
    finally:
        client.close()


def test_a_new_table_has_its_own_limits() -> None:
    port = free_port()

    async def talk(agent: Agent, seen: Seen) -> None:
        await send(port, "/all", 1)
        assert len(shown(await seen.limits())) == 1
        await agent.publish(make_fleet(port))
        listing = await seen.limits()
        assert (listing["limits"], listing["others"], shown(listing)) == (0, 1, [])
        await agent.publish(limited_table(port))
        assert shown(await seen.limits()) == [("all", {}, 1, 2, False)]

    serve(port, talk)


def test_a_listing_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_list, "_MOST", 3)
    port = free_port()

    async def talk(agent: Agent, seen: Seen) -> None:
        for number in range(5):
            await send(port, "/each", 2 if number == 4 else 1, f"user-{number}")
        listing = await seen.limits()
        assert not listing["complete"]
        users = [one["values"]["x-user"] for one in listing["counters"]]
        assert users == ["user-4", "user-0", "user-1"]
        assert (await seen.limits(limited="1"))["complete"]

    serve(port, talk)


def test_only_one_listing_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limit_list, "_PATIENCE", 0.01)
    port = free_port()
    with running(tmp_path) as server:

        async def talk(agent: Agent, seen: Seen) -> None:
            server.pause()
            listing = asyncio.ensure_future(seen.reply())
            await asyncio.sleep(0)
            other = await seen.reply()
            assert (other.status, other.body) == (503, b"another listing runs; try again\n")
            server.resume()
            assert (await listing).status == 200
            assert (await seen.reply()).status == 200

        serve(port, talk, redis_store(server))


def test_metrics_of_limits_and_of_nothing_else() -> None:
    port = free_port()

    async def talk(agent: Agent, seen: Seen) -> None:
        assert await send(port, "/all", 5) == [302] * 3 + [429] * 2
        await send(port, "/each", 1, "bob")
        text = (await Admin(agent).metrics["GET", "/metrics"](Request("GET", "", {}, b""))).body
        lines = text.decode().splitlines()
        name = "edgefast_ratelimit_requests_total"
        labels = f'route="ns/web",limit="{ALL.name}"'
        assert f'{name}{{{labels},result="ok"}} 3' in lines
        assert f'{name}{{{labels},result="over"}} 2' in lines
        assert f'{name}{{route="ns/web",limit="{EACH.name}",result="ok"}} 1' in lines
        assert not [line for line in lines if "bob" in line]
        routes = {
            line.split('"')[1] for line in lines if line.startswith("edgefast_requests_total")
        }
        assert "ns/web" in routes and "limit" not in routes

    serve(port, talk)
