"""Fetch: only what is referred to is read; faults of one object and of the server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.fetch import Fetch, Reference
from controller.kube.reflector import Item
from controller.kube.throttle import TRIES, RequestRate
from tests.controller.waiting import running, until

from .script import failure, obj, scripted

QUICK = RequestRate(backoff_first=0.001, fetch_most=0.01, fetches=2, patience=0.05)
A: Reference = ("Secret", "ns", "a")
B: Reference = ("ConfigMap", "ns", "b")


class Told:
    def __init__(self, kube: Kube, pace: RequestRate = QUICK) -> None:
        self.held: dict[str, str] = {}
        self.settled = 0
        self.fetch = Fetch(kube, self.on_item, self.on_gone, self.on_settled, pace)

    def on_item(self, kind: str, item: Item) -> None:
        self.held[item.name] = item.resource_version

    def on_gone(self, reference: Reference) -> None:
        del self.held[reference[2]]

    def on_settled(self) -> None:
        self.settled += 1


class Server:
    """Serves objects by name, with what goes wrong."""

    def __init__(self) -> None:
        self.versions = {"a": 1, "b": 1, "c": 1}
        self.failing: dict[str, int] = {}
        self.hold: asyncio.Event | None = None
        self.calls: Counter[str] = Counter()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        self.calls[name] += 1
        version = self.versions.get(name)
        if self.hold is not None:
            await self.hold.wait()
        if name in self.failing:
            return failure(self.failing[name], "Why")
        return web.json_response(obj(name, version)) if version else failure(404, "NotFound")


@asynccontextmanager
async def fetching(server: Server) -> AsyncIterator[Told]:
    """A Fetch at work against the server, and what it told."""
    async with scripted(server.serve) as kube:
        told = Told(kube)
        async with running(told.fetch.run()):
            yield told


async def test_only_references_are_read_and_again_when_they_change() -> None:
    server = Server()
    async with fetching(server) as told:
        fetch = told.fetch
        for reference in (A, B, ("Secret", "ns", "c")):
            fetch.note(reference, "1")
        assert not fetch.want({A, B})
        await until(lambda: told.settled, "settled")
        assert fetch.want({A, B}) and told.held == {"a": "1", "b": "1"}
        server.versions["a"] = 2
        fetch.note(A, "2")
        assert fetch.want({A, B})  # the version before serves until then
        await until(lambda: told.held["a"] == "2", "read again")
        fetch.note(A, "2")
        fetch.drop(B)
        assert told.held == {"a": "2"} and fetch.want({A, B})
        fetch.note(B, "3")
        await until(lambda: "b" in told.held, "back")
        assert fetch.want(frozenset()) and not told.held
        fetch.note(A, "4")
        assert fetch.want(frozenset())
    assert server.calls == Counter({"a": 2, "b": 2})


async def test_bundles_of_the_cluster_are_read_where_the_server_has_them() -> None:
    asked: list[str] = []
    reference: Reference = ("ClusterTrustBundle", "", "example.com:internal:v1")

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response(obj("example.com:internal:v1", 1))

    async with scripted(serve) as kube:
        told = Told(kube)
        api = APIS["certificates.k8s.io/v1beta1", "ClusterTrustBundle"]
        told.fetch = Fetch(kube, told.on_item, told.on_gone, told.on_settled, QUICK, lambda _: api)
        async with running(told.fetch.run()):
            told.fetch.note(reference, "1")
            assert not told.fetch.want({reference})
            await until(lambda: told.settled, "settled")
            told.fetch.drop(reference)
            assert not told.held  # no anchor outlives the bundle
    assert asked == [
        "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/example.com:internal:v1"
    ]


async def test_what_does_not_exist_is_not_asked_for() -> None:
    server = Server()
    async with fetching(server) as told:
        assert told.fetch.want({A})
        # Deleted while the watch did not say so yet.
        server.versions.clear()
        told.fetch.note(A, "1")
        assert not told.fetch.want({A})
        await until(lambda: told.settled, "settled")
        assert told.fetch.want({A}) and not told.held and not told.fetch.problems


async def test_a_change_while_it_is_read_is_read_once_more() -> None:
    server = Server()
    server.hold = asyncio.Event()
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        told.fetch.want({A})
        await until(lambda: server.calls["a"] == 1, "being read")
        told.fetch.note(A, "2")
        server.versions["a"] = 2
        server.hold.set()
        await until(lambda: told.held.get("a") == "2", "read again")
    assert server.calls["a"] == 2


async def test_what_goes_while_it_is_read_does_not_come_back() -> None:
    server = Server()
    server.hold = asyncio.Event()
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        told.fetch.note(B, "1")
        told.fetch.want({A, B})
        await until(lambda: server.calls.total() == 2, "being read")
        told.fetch.drop(A)
        told.fetch.want({A})
        server.hold.set()
        server.hold = None
        told.fetch.note(("Secret", "ns", "c"), "1")
        told.fetch.want({A, ("Secret", "ns", "c")})
        await until(lambda: "c" in told.held, "the next one")
        assert told.held == {"c": "1"}


async def test_a_refusal_holds_nobody_up_and_heals() -> None:
    server = Server()
    server.failing = {"a": 403}
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        told.fetch.note(B, "1")
        told.fetch.want({A, B})
        await until(lambda: told.settled, "settled")
        assert told.fetch.want({A, B}) and told.held == {"b": "1"}
        assert "403" in told.fetch.problems[A]
        await until(lambda: server.calls["a"] > 2, "tried again")
        server.failing = {}
        await until(lambda: "a" in told.held, "healed")
        assert not told.fetch.problems


async def test_a_fault_of_one_object_is_an_answer_when_it_lasts() -> None:
    server = Server()
    server.failing = {"a": 500}
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        assert not told.fetch.want({A})
        await until(lambda: told.settled, "settled")
        assert told.fetch.want({A}) and server.calls["a"] >= TRIES


@pytest.mark.parametrize("status", [500, 503, 429, 401])
async def test_a_passing_fault_is_no_answer(status: int) -> None:
    server = Server()
    server.failing = {"a": status}
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        assert not told.fetch.want({A})
        await until(lambda: server.calls["a"] >= 4, "tried again")
        server.failing = {}
        await until(lambda: told.settled, "settled")
        assert told.fetch.want({A}) and told.held == {"a": "1"}


def named(name: str, namespace: str = "ns") -> Reference:
    return ("Secret", namespace, name)


async def _read(told: Told, *references: Reference) -> None:
    """Have these read once."""
    for one in references:
        told.fetch.note(one, "1")
    await until(lambda: told.fetch.want(set(references)), "read")


async def test_who_refers_to_ever_new_objects_holds_up_nobody() -> None:
    server = Server()
    server.versions |= {f"v{at}": 1 for at in range(10_000)}
    async with fetching(server) as told:
        await _read(told, A)
        server.hold = asyncio.Event()
        loop = asyncio.get_running_loop()
        at = 0

        def edit() -> set[Reference]:
            nonlocal at
            at += 1
            told.fetch.note(named(f"v{at}", "busy"), "1")
            return {A, named(f"v{at}", "busy")}

        began = loop.time()
        assert not told.fetch.want(edit())
        await until(lambda: told.fetch.want(edit()), "once", seconds=10.0)
        assert loop.time() - began >= QUICK.patience * 0.9
        assert all(told.fetch.want(edit()) for _ in range(20))
        # The others are waited for as ever, and the busy one again when all of it has been read.
        told.fetch.note(named("c", "other"), "1")
        assert not told.fetch.want({*edit(), named("c", "other")})
        server.hold.set()
        server.hold = None
        calm = {A, named("v1", "busy")}
        await until(lambda: told.fetch.want(calm) and "v1" in told.held, "read again")
        server.hold = asyncio.Event()
        assert not told.fetch.want(edit())


async def test_what_is_stuck_of_one_namespace_does_not_make_others_impatient() -> None:
    """What cannot be had for long is waited for no more; what another one refers to afterwards is, as ever."""
    server = Server()
    async with fetching(server) as told:
        await _read(told, A)
        server.hold = asyncio.Event()
        told.fetch.note(named("b", "stuck"), "1")
        stuck = {A, named("b", "stuck")}
        await until(lambda: told.fetch.want(stuck), "patience is over")
        told.fetch.note(named("c", "other"), "1")
        assert not told.fetch.want({*stuck, named("c", "other")})


async def test_who_comes_while_another_is_waited_for_is_waited_for_as_long() -> None:
    server = Server()
    async with fetching(server) as told:
        await _read(told, A)
        server.hold = asyncio.Event()
        loop = asyncio.get_running_loop()
        stuck = {A, named("b", "stuck")}
        told.fetch.note(named("b", "stuck"), "1")
        assert not told.fetch.want(stuck)
        await until(lambda: told.settled == 2, "patience with one is over")
        began = loop.time()
        told.fetch.note(named("c", "other"), "1")
        both = {*stuck, named("c", "other")}
        assert not told.fetch.want(both)
        await until(lambda: told.fetch.want(both), "patience with the other is over, too")
        assert loop.time() - began >= QUICK.patience * 0.9


async def test_the_first_time_is_not_held_up_by_what_comes_later() -> None:
    server = Server()
    async with fetching(server) as told:
        server.hold = asyncio.Event()
        told.fetch.note(A, "1")
        assert not told.fetch.want({A})
        told.fetch.note(named("c", "busy"), "1")
        await until(lambda: told.fetch.want({named("c", "busy")}), "patience is over")


async def test_a_slow_object_is_waited_for_at_first_and_later_with_patience() -> None:
    server = Server()
    server.hold = asyncio.Event()
    async with fetching(server) as told:
        told.fetch.note(A, "1")
        assert not told.fetch.want({A})
        await asyncio.sleep(QUICK.patience * 2)
        assert not told.fetch.want({A}) and not told.settled
        server.hold.set()
        await until(lambda: told.settled == 1, "settled")
        assert told.fetch.want({A})
        server.hold = asyncio.Event()
        told.fetch.note(B, "1")
        assert not told.fetch.want({A, B})
        await until(lambda: told.settled == 2, "patience is over")
        assert told.fetch.want({A, B}) and told.held == {"a": "1"}
        server.hold.set()
        await until(lambda: told.settled == 3, "read after all")
        assert told.held == {"a": "1", "b": "1"}
