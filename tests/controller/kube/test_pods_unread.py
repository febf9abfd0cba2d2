"""Pods that cannot be read any more: those that were known stay, and it is told, until a watch says something again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from controller.kube.pods import Pods
from controller.kube.throttle import TRIES
from tests.controller.waiting import running, until

from .script import event, failure, obj, page, scripted, stream
from .test_pods import ONE, QUICK, WEB, pod


class Revoked:
    """A server whose Pods can be listed; of watches it says what a test wants, each over at once, with a change in it or with nothing."""

    def __init__(self) -> None:
        self.status = 0  # of watches; 0: they are good
        self.some = 0  # watches of that status, after which they are good again; 0: all
        self.lists = 200
        self.quiet = False
        self.version = 5
        self.asked = 0
        self.watches = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.version += 1
        self.asked += 1
        if "watch" not in request.query:
            if self.lists != 200:
                return failure(self.lists, "Forbidden" if self.lists == 403 else "Why")
            return page(self.version, pod("a", 1, "10.0.0.1"))
        self.watches += 1
        if self.status:
            status = self.status
            self.some -= 1
            if not self.some:
                self.status = 0
            return failure(status, "Forbidden" if status == 403 else "Expired")
        bookmark = event("BOOKMARK", obj("", self.version))
        return await stream(request, *(() if self.quiet else (bookmark,)), hold=False)


@contextlib.asynccontextmanager
async def followed_pods(server: Revoked, changes: list[int]) -> AsyncIterator[Pods]:
    async with scripted(server.serve) as kube:
        pods = Pods(kube, lambda: changes.append(1), QUICK)
        async with running(pods.run()):
            await until(lambda: pods.want({WEB}) and pods.table()[WEB] == ONE, "followed")
            yield pods


async def test_pods_that_cannot_be_read_any_more_stay_and_it_is_told() -> None:
    server, changes = Revoked(), list[int]()
    async with followed_pods(server, changes) as pods:
        changes.clear()
        server.status = server.lists = 403
        stale = msgspec.structs.replace(ONE, unread="Forbidden")
        await until(lambda: pods.table()[WEB] == stale, "told")
        assert len(changes) == 1
        seen = server.asked
        await until(lambda: server.asked > seen + 12, "tried again and again")
        assert len(changes) == 1 and pods.want({WEB})
        # A list alone is not enough: without a watch nobody hears what comes next.
        server.lists, seen = 200, server.watches
        await until(lambda: server.watches > seen + 12, "tried again and again")
        assert pods.table()[WEB] == stale and len(changes) == 1
        server.status = 0
        await until(lambda: pods.table()[WEB] == ONE, "followed again")
        assert len(changes) == 2


async def test_a_watch_that_fails_for_long_is_told_though_lists_are_good() -> None:
    server, changes = Revoked(), list[int]()
    async with followed_pods(server, changes) as pods:
        changes.clear()
        server.status = 500
        stale = msgspec.structs.replace(ONE, unread="Expired")
        await until(lambda: pods.table()[WEB] == stale, "told", seconds=20.0)
        seen = server.watches
        await until(lambda: server.watches > seen + 12, "tried again and again")
        assert pods.table()[WEB] == stale and len(changes) == 1
        server.status = 0
        await until(lambda: pods.table()[WEB] == ONE, "followed again")


async def _see_another(server: Revoked) -> None:
    seen = server.watches
    await until(lambda: server.watches > seen + 1, "a good one")


@pytest.mark.parametrize("status", [410, 429, 500])
async def test_what_passes_is_not_told(status: int) -> None:
    """Watches that are too old, again and again, without anything in between but lists; a server that is restarted."""
    server, changes = Revoked(), list[int]()
    async with followed_pods(server, changes) as pods:
        changes.clear()
        for _ in range(3):
            server.some, server.status = TRIES - 1, status
            await until(lambda: not server.status, "some of them")
            await _see_another(server)
        assert pods.table()[WEB] == ONE and not changes
