"""An explanation against the engine: over random tables the winner, the answer, the redirect, the backend and every byte
of the head that the backend got are the same.

The heavy run is 1,000 tables with 100 requests each.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from core.backend import Backend, Call, make_response
from core.client import Client, Response
from core.world import World
from edgefast.explain import Explanation, RequestSpec, Served
from edgefast.explain.explain import explain
from edgefast.explain.forwarded import RANDOM_ID
from tests.explain.many_worlds import run_worlds
from tests.explain.random_tables import PORTS, Tables

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Bench:
    """An engine with both ports, and a backend that keeps the last head."""

    def __init__(self) -> None:
        self.world = World(rows=4096)
        self.heads: list[bytes] = []
        self.clients: dict[int, Client] = {}
        self.ports: dict[int, int] = {}
        self.asked = 0

    def _answer(self, call: Call) -> bytes:
        self.heads.append(call.message.raw)
        return make_response(b"", 200)

    async def open(self) -> int:
        backend = await Backend(self._answer).start(host="0.0.0.0")
        self.world.keep(backend)
        for port in PORTS:
            self.ports[port] = await self.world.listen(port)
        return backend.port

    async def ask(self, ask: RequestSpec) -> tuple[Response, list[bytes]]:
        """Send a request; the response, and the heads that came to the backend."""
        if ask.port not in self.clients:
            self.clients[ask.port] = await self.world.client(self.ports[ask.port])
        client = self.clients[ask.port]
        self.heads.clear()
        response = await client.ask(ask.head(), head=ask.method == "HEAD")
        if response.value("connection") == "close" or response.status >= 400:
            client.close()
            del self.clients[ask.port]
        return response, list(self.heads)

    def hang_up(self) -> None:
        """Begin with new connections."""
        for client in self.clients.values():
            client.close()
        self.clients.clear()

    async def line(self) -> dict[str, Any]:
        """The access log's line of the last request."""
        self.asked += 1
        await self.world.until(self._flushed, "a line of the access log")
        line: dict[str, Any] = json.loads(self.world.batches[-1])
        return line

    def _flushed(self) -> bool:
        self.world.engine.log_flush()
        return len(self.world.batches) >= self.asked


async def compare_tables(bench: Bench, seeds: range, requests: int) -> dict[str, int]:
    """Explain and ask; how often each kind of answer came."""
    port, seen = await bench.open(), dict.fromkeys(("backend", "chosen", "redirect", "status"), 0)
    for seed in seeds:
        tables = Tables(seed, port)
        fleet = tables.fleet()
        bench.world.apply(fleet)
        bench.hang_up()  # a port may be gone, and its connections with it in a moment
        served = Served(fleet)
        for ask in tables.asks(requests):
            if not served.listeners(ask.port):
                continue
            said = explain(served, ask)
            response, heads = await bench.ask(ask)
            line = await bench.line()
            about = f"seed {seed}: {ask.head()!r}\n{said}\n{response}\n{line}"
            assert [line.get("route"), line.get("rule")] == _rule_of(said), about
            assert said.request.client in ("", line["client"]), about
            kind = _compare_answer(said, response, heads, line, about)
            seen[kind] += 1
    return seen


def _rule_of(said: Explanation) -> list[str | int | None]:
    return [said.rule.route, said.rule.name or said.rule.index] if said.rule else [None, None]


def _compare_answer(
    said: Explanation, response: Response, heads: list[bytes], line: dict[str, Any], about: str
) -> str:
    if heads:
        assert len(heads) == 1, about
        assert line["backend"] in {one.backend for one in said.answers if one.kind == "backend"}
        wanted = [one.head for one in said.backends if one.name == line["backend"]]
        assert any(_is_head(heads[0], one) for one in wanted), f"{about}\n{heads[0]!r}\n{wanted}"
        chosen = {one.chosen for one in said.backends if one.name == line["backend"]}
        if "" in chosen:  # a share of it has no key
            chosen = set()
        assert line["endpoint"] in (chosen or {line["endpoint"]}), about
        return "chosen" if chosen else "backend"
    own = [one for one in said.answers if one.kind != "backend"]
    assert response.status in {one.status for one in own}, about
    (kind,) = {one.kind for one in own if one.status == response.status}
    if kind == "redirect":
        assert response.value("location") in {one.location for one in own}, about
    return kind


def _is_head(raw: bytes, lines: tuple[str, ...]) -> bool:
    """Compare every byte; a random id stands for itself."""
    text = "\r\n".join((*lines, "", ""))
    before, mark, after = text.partition(RANDOM_ID)
    got = raw.decode("utf-8", "surrogateescape")
    if not mark:
        return got == text
    middle = got[len(before) : len(got) - len(after)]
    return got.startswith(before) and got.endswith(after) and _UUID.fullmatch(middle) is not None


@pytest.mark.wire
def test_an_engine_does_what_is_explained() -> None:
    seen = run_worlds(Bench, compare_tables, range(100, 160), 25)
    assert seen.pop("chosen") and all(count > 20 for count in seen.values()), seen


@pytest.mark.heavy
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("start", range(0, 1000, 100))
def test_an_engine_does_what_is_explained_over_many_tables(start: int) -> None:
    seen = run_worlds(Bench, compare_tables, range(1000 + start, 1100 + start), 100)
    assert seen.pop("chosen") > 2 and all(count > 200 for count in seen.values()), seen
