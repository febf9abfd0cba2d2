"""A source of the console that says what a test wants, and a way to ask a console without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from edgefast import ir
from edgefast.console import ChangeRecord, Console, Counters, Member, Table
from edgefast.diagnostics.problem import Problem
from edgefast.explain import Live
from edgefast.httpd.server import Reply, Request
from edgefast.table import Shards, compile_fleet


class Told:
    """A `Source`; its fields may be changed between questions."""

    kind: Literal["proxy", "controller"] = "proxy"
    bounds: tuple[float, ...] = (1.0, 10.0)

    def __init__(self, fleet: ir.Fleet) -> None:
        self._past = ChangeRecord()
        self.shards: Shards | None = None
        self.told_problems: Sequence[Problem] = ()
        self.counts = Counters()
        self.looks = 0
        self.use(fleet)

    def use(self, fleet: ir.Fleet) -> None:
        before = self.shards
        self.shards = compile_fleet(fleet, before)
        self._past.note(before, self.shards, 5.0)

    def fleets(self) -> Sequence[str]:
        return ("standalone",)

    def table(self, fleet: str) -> Table | None:
        if fleet != "standalone" or self.shards is None:
            return None
        return Table(
            state=(self.shards.version,),
            version=self.shards.version,
            accepted=5.0,
            resources=self.shards.resources,
        )

    def past(self, _: str) -> ChangeRecord:
        return self._past

    def problems(self) -> Sequence[Problem]:
        return self.told_problems

    def facts(self) -> Mapping[str, Any]:
        return {
            "name": "here",
            "version": "1",
            "state": "good",
            "said": "ready",
            "started": 1.0,
            "rows": [],
        }

    def members(self) -> Sequence[Member]:
        return [Member(name=f"worker {number}") for number in range(500)]

    def count(self) -> Counters:
        self.looks += 1
        return self.counts

    async def live(self) -> Live | None:
        return None

    async def counters(self) -> Sequence[Mapping[str, Any]] | str | None:
        return "the store does not answer"


def ask_all(source: Told, *asked: str | tuple[str, str], host: str = "127.0.0.1:1") -> list[Reply]:
    """Ask one console, one question after the other: a path below /console/, or it with a query."""

    async def main() -> list[Reply]:
        console = Console(source)
        routes = console.routes
        found = []
        for one in asked:
            path, query = (one, "") if isinstance(one, str) else one
            words = dict(part.split("=", 1) for part in query.split("&") if part)
            request = Request("GET", f"/console/{path}", words, b"", host)
            found.append(await routes[("GET", f"/console/{path}")](request))
        return found

    return asyncio.run(main())


def ask(source: Told, path: str, query: str = "") -> Any:
    """Ask once; returns the answer's JSON, its status must be 200."""
    (reply,) = ask_all(source, (f"api/{path}", query))
    assert reply.status == 200, reply.body
    return msgspec.json.decode(reply.body)
