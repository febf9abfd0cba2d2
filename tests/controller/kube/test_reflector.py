"""Reflector and faults: expired pages, errors inside a watch, broken lines, servers that end every watch at once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.reflector import Item, Reflector, Target
from controller.kube.throttle import RequestRate
from tests.controller.waiting import running, until

from .script import event, failure, obj, page, scripted, stream

TARGET = Target(APIS["v1", "ConfigMap"], "ns")
QUICK = RequestRate(backoff_first=0.001, backoff_most=0.01, silence=5.0)


class Told:
    def __init__(self) -> None:
        self.puts: list[str] = []
        self.deletes: list[str] = []
        self.synced = 0
        self.missing = 0

    def reflect(self, kube: Kube, pace: RequestRate = QUICK) -> Reflector:
        def on_missing() -> None:
            self.missing += 1

        def on_synced() -> None:
            self.synced += 1

        return Reflector(
            kube,
            TARGET,
            self.on_put,
            lambda _, name: self.deletes.append(name),
            on_synced,
            on_missing=on_missing,
            pace=pace,
        )

    def on_put(self, item: Item) -> None:
        self.puts.append(f"{item.name}@{item.resource_version}")


@contextlib.asynccontextmanager
async def reflected(
    serve: Callable[[web.Request], Any], pace: RequestRate = QUICK
) -> AsyncIterator[tuple[Told, Reflector]]:
    """Run a reflector of what a scripted server says."""
    told = Told()
    async with scripted(serve) as kube:
        reflector = told.reflect(kube, pace)
        async with running(reflector.run()):
            yield told, reflector


async def test_pages_that_expire_are_read_at_once() -> None:
    limits: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request)
        limits.append(request.query.get("limit", "all"))
        if request.query.get("continue"):
            return failure(410, "Expired")
        if "limit" in request.query:
            return page(5, obj("a", 1), cursor="more")
        return page(7, obj("a", 1), obj("b", 6))

    async with reflected(serve) as (told, reflector):
        await until(lambda: told.synced, "synced")
    assert limits == ["500", "500", "all"]
    assert told.puts == ["a@1", "b@6"] and not told.deletes


async def test_an_error_inside_a_watch_is_taken_by_its_code() -> None:
    lists = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" not in request.query:
            lists += 1
            if lists == 1:
                return page(5, obj("gone", 1), obj("same", 2))
            return page(9, obj("same", 2), obj("new", 8))
        if request.query["resourceVersion"] == "5":
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            return await stream(request, event("ERROR", status))
        return await stream(request, event("MODIFIED", obj("same", 10)))

    async with reflected(serve) as (told, reflector):
        await until(lambda: "same@10" in told.puts, "watching again")
    assert told.puts == ["gone@1", "same@2", "new@8", "same@10"]
    assert told.deletes == ["gone"] and told.synced == 1
    assert reflector.restarts == Counter({"expired": 1})


async def test_a_bookmark_is_where_the_next_watch_begins() -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return page(5)
        asked.append(request.query["resourceVersion"])
        if len(asked) == 1:
            return await stream(request, event("ADDED", obj("a", 6)), hold=False)
        if len(asked) == 2:
            return await stream(request, event("BOOKMARK", obj("", 42)), hold=False)
        return await stream(request, event("DELETED", obj("a", 50)))

    async with reflected(serve) as (told, _):
        await until(lambda: told.deletes, "deleted")
    assert asked == ["5", "6", "42"]
    assert told.puts == ["a@6"] and told.deletes == ["a"]


async def test_events_may_come_in_any_pieces() -> None:
    text = event("ADDED", obj("a", 6, data={"x": "y" * 3000})) + event("DELETED", obj("a", 7))
    pieces = [text[at : at + 700] for at in range(0, len(text), 700)]

    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream(request, *pieces) if "watch" in request.query else page(5)

    async with reflected(serve) as (told, _):
        await until(lambda: told.deletes, "deleted")
    assert told.puts == ["a@6"]


async def test_a_line_that_is_no_event_costs_a_list() -> None:
    lists = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" in request.query:
            return await stream(request, b"<html>\n" if lists == 1 else event("NEWER", {}))
        lists += 1
        return page(5, obj("a", 1))

    async with reflected(serve) as (told, reflector):
        await until(lambda: lists == 2 and not reflector.problem, "listed again")
    assert told.puts == ["a@1"]


async def test_an_object_without_metadata_stops_nothing() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await stream(request, event("ADDED", {"x": 1}), event("ADDED", obj("b", 8)))
        return page(5, {"metadata": 7}, obj("a", 1))

    async with reflected(serve) as (told, reflector):
        await until(lambda: len(told.puts) == 2, "the others")
    assert told.puts == ["a@1", "b@8"] and told.synced == 1


async def test_watches_that_give_nothing_lead_back_to_the_list() -> None:
    lists = watches = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists, watches
        if "watch" not in request.query:
            lists += 1
            return page(lists * 100)
        watches += 1
        # Its store was restored: versions of before are of the future.
        if request.query["resourceVersion"] == "100":
            return failure(504, "Timeout")
        return await stream(request, event("ADDED", obj("a", 201)))

    async with reflected(serve) as (told, reflector):
        await until(lambda: told.puts, "followed again")
    assert (lists, watches) == (2, QUICK.failures + 1)
    assert reflector.restarts["error"] == QUICK.failures


async def test_a_server_that_ends_every_watch_is_not_asked_without_pause() -> None:
    watches: list[float] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return page(5)
        watches.append(time.monotonic())
        return await stream(request, hold=False)

    async with reflected(serve, RequestRate(backoff_first=0.02, backoff_most=60.0)):
        await until(lambda: len(watches) == 4, "tried again")
    waits = [later - one for one, later in itertools.pairwise(watches)]
    # Each at least half of a ceiling that doubles.
    assert all(wait >= least for wait, least in zip(waits, (0.01, 0.02, 0.04), strict=True))


async def test_silence_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """With an etcd of 3.4 no bookmark comes while nothing happens: the watch begins anew, where it was."""
    lists = 0
    asked: set[str] = set()

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" in request.query:
            asked.add(request.query["resourceVersion"])
            return await stream(request)
        lists += 1
        return page(5, obj("a", 1))

    pace = RequestRate(backoff_first=0.001, backoff_most=0.01, silence=0.01)
    async with reflected(serve, pace) as (_, reflector):
        await until(lambda: reflector.restarts["silent"] == 2 * pace.failures, "silent")
        assert not reflector.problem
    assert lists == 1 and asked == {"5"}
    assert not [one for one in caplog.records if one.name.startswith("controller")]


async def test_a_kind_that_is_gone_is_told_and_kept() -> None:
    there = True

    async def serve(request: web.Request) -> web.StreamResponse:
        if not there:
            return failure(404, "NotFound")
        if "watch" in request.query:
            return await stream(request, hold=False)
        return page(5, obj("a", 1))

    async with reflected(serve) as (told, reflector):
        await until(lambda: told.synced, "synced")
        there = False
        await until(lambda: told.missing >= 2, "told")
        assert reflector.known == {("ns", "a"): "1"} and not told.deletes
        assert "404" in reflector.problem


async def test_a_list_that_fails_halfway_syncs_nothing_and_deletes_nothing() -> None:
    tries = 0
    seen = asyncio.Event()  # that two failures change nothing

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal tries
        if "watch" in request.query:
            return await stream(request)
        if not request.query.get("continue"):
            return page(5, obj("a", 1), cursor="more")
        tries += 1
        if tries < 3:
            return failure(500, "InternalError")
        await seen.wait()
        return page(5, obj("b", 2))

    async with reflected(serve) as (told, reflector):
        await until(lambda: tries > 2, "failed twice")
        assert not told.synced
        seen.set()
        await until(lambda: told.synced, "synced")
    assert told.puts == ["a@1", "b@2"] and not told.deletes


async def test_an_empty_list_is_synced() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await stream(request) if "watch" in request.query else page(5)

    async with reflected(serve) as (told, reflector):
        await until(lambda: reflector.synced, "synced")
    assert told.synced == 1 and not told.puts and not told.deletes
