"""A table with bytes that nobody can read, before workers have refused them: only what is in them cannot be told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from edgefast.httpd.server import Reply, Request
from edgefast.proxy.admin.admin import Admin
from edgefast.proxy.agent.agent import Agent
from edgefast.table import Shards
from edgefast.table.shards import Key, make_resource
from proxy.limited import ALL, limited_table
from proxy.living import ask, with_agent
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

#: No blob and no MessagePack, with the word that blobs with limits have.
BROKEN = b"\xc1rate_limits" * 8
LISTENER = "ns/gateway/http"

# Loaded with the first request, which takes longer here than workers take to refuse a table.
for _module in ("edgefast.console.console", "edgefast.proxy.admin.explain_handler"):
    import_module(_module)

Asking = Callable[[str, dict[str, str]], Awaitable[Reply]]


def with_broken(port: int, *keys: Key) -> Shards:
    """The limited table, with bytes for these keys that nobody can read."""
    shards = limited_table(port)
    broken = {key: make_resource(*key, BROKEN) for key in keys}
    return Shards({**shards.resources, **broken}, "broken")


def between(port: int, *keys: Key, talk: Callable[[Asking], Awaitable[None]]) -> None:
    """Publish, and talk with the admin server while workers have not taken the table in."""

    async def conversation(agent: Agent) -> None:
        assert (await agent.publish(limited_table(port))).acknowledged
        assert b" 302 " in await ask(port, "/all")
        routes = Admin(agent).admin

        async def look(path: str, query: dict[str, str]) -> Reply:
            request = Request("GET", path, query, b"", "localhost")
            await routes["GET", path](
                request
            )  # the first request loads modules, for longer than workers need
            publishing = asyncio.ensure_future(agent.publish(with_broken(port, *keys)))
            await asyncio.sleep(0)
            assert agent.ledger.current.version == "broken"
            reply = await routes["GET", path](request)
            await publishing
            assert agent.ledger.current.refused.keys() == {*keys}
            assert b" 302 " in await ask(port, "/open")
            assert (await agent.publish(limited_table(port))).acknowledged
            return reply

        await talk(look)

    with_agent(conversation)


def read(reply: Reply) -> Any:
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def test_limits_of_other_hosts_are_listed() -> None:
    host = f"{LISTENER}/x.test"

    async def talk(look: Asking) -> None:
        listing = read(await look("/limits", {}))
        assert [(one["limit"], one["used"]) for one in listing["counters"]] == [(ALL.name, 1)]
        ((name, why),) = listing["unread"].items()
        assert name == f"virtual_host {host}"
        assert why == "not a usable blob: it is cut short"

    between(free_port(), ("virtual_host", host), talk=talk)


def test_counters_of_a_store_that_cannot_be_read_are_not_listed_elsewhere() -> None:
    async def talk(look: Asking) -> None:
        reply = await look("/limits", {})
        assert reply.status == 503
        assert reply.body.startswith(b"limit_store store of the table cannot be read: ")

    between(free_port(), ("limit_store", "store"), talk=talk)


@pytest.mark.parametrize("kind", ["listener", "cluster", "virtual_host"])
def test_requests_to_other_hosts_are_explained(kind: str) -> None:
    port = free_port()
    name = {"listener": "ns/gateway/other", "cluster": "c", "virtual_host": f"{LISTENER}/y.test"}

    async def talk(look: Asking) -> None:
        told = read(await look("/explain", {"url": f"http://x.test:{port}/open"}))
        assert told["answers"][0]["status"] == 302
        if kind == "virtual_host":
            reply = await look("/explain", {"url": f"http://y.test:{port}/open"})
            assert reply.status == 503
            assert reply.body.startswith(f"virtual host {name[kind]}: not a usable blob".encode())

    between(port, (kind, name[kind]), talk=talk)


def test_the_dump_has_everything_else() -> None:
    keys = [(kind, "broken") for kind in ("listener", "cluster", "secret", "limit_store")]
    host = ("virtual_host", f"{LISTENER}/broken.test")

    async def talk(look: Asking) -> None:
        told = read(await look("/dump", {}))
        lists = ("listeners", "clusters", "secrets", "limit_stores", "virtual_hosts")
        broken = [one for part in lists for one in told[part] if "broken" in one["name"]]
        assert len(broken) == 5
        assert all(one["error"].startswith("cannot be read: ") for one in broken)
        assert [one["name"] for one in told["listeners"] if "error" not in one] == [LISTENER]
        assert len(told["virtual_hosts"]) == 3

    between(free_port(), *keys, host, talk=talk)


def test_the_console_shows_the_rest() -> None:
    host = ("virtual_host", f"{LISTENER}/y.test")

    async def talk(look: Asking) -> None:
        told = read(await look("/console/api/problems", {}))
        assert f"{host[1]} of the table cannot be read" in json.dumps(told)

    between(free_port(), host, talk=talk)
