"""One request in HTTP/1.1 and in HTTP/2, over random tables: the same rule, every byte of the head and body that the backend gets, the same
answer, the same line of the access log.

The heavy run is 400 tables with 50 requests each. What differs by its nature is left out by name: what is made anew for each request,
and what frames a message on the connection it came by.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import msgspec
import pytest

from core.backend import Backend, Call, make_response
from core.client import Client, Response
from core.h2.asking import Asker, Fields, Reset
from core.world import World
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.explain import explain
from tests.explain.many_worlds import run_worlds
from tests.explain.random_tables import PORTS, Tables

#: Fields that are another each time, or tell about a connection of HTTP/1.1.
OWN = {"x-request-id", "traceparent"}
TOLD = {
    *("date", "connection", "content-length", "transfer-encoding"),
    *("x-edge-upstream-service-time", "x-request-id"),
}
#: The same of the access log.
LOGGED = {
    *("time", "request_id", "duration_ms", "upstream_ms"),
    *("bytes_received", "bytes_sent", "limit_remaining"),
}
PROTOCOL_ERROR = 1
PATIENCE = 60_000  # ms
MALFORMED: Any = ([], 400, "malformed")
BODIES = (0, 1, 1000, 40_000)


def as_http1(ask: RequestSpec, body: bytes, *, length: bool) -> bytes:
    """The request's bytes; a body has a length, or is one chunk."""
    head = ask.head()[:-2]
    if not body:
        return head + b"\r\n"
    if length:
        return head + b"content-length: %d\r\n\r\n" % len(body) + body
    return head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def as_http2(ask: RequestSpec, body: bytes, *, length: bool) -> Fields:
    """Its fields; what HTTP/1.1 says about its connection, and fields named there, are none of HTTP/2."""
    named = {"connection"}
    for name, value in ask.headers:
        if name.lower() == "connection":
            named |= {one.strip().lower() for one in value.split(",")}
    fields = [(b":method", ask.method.encode()), (b":scheme", b"http")]
    fields += [(b":authority", ask.host.encode()), (b":path", _bytes(ask.target))]
    for name, value in ask.headers:
        if name.lower() not in named:
            fields.append((name.lower().encode(), _bytes(value)))
    if body and length:
        fields.append((b"content-length", b"%d" % len(body)))
    return fields


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def steady(fleet: ir.Fleet) -> ir.Fleet:
    """The fleet, with one backend for each rule, which may take its time: whose turn it is, and how busy the machine is, is no
    matter of the protocol."""

    def one_backend(rule: ir.Rule) -> ir.Rule:
        timeouts = rule.timeouts and ir.Timeouts(request=PATIENCE, backend_request=PATIENCE)
        return msgspec.structs.replace(rule, backends=rule.backends[:1], timeouts=timeouts)

    hosts = tuple(
        msgspec.structs.replace(host, rules=tuple(map(one_backend, host.rules)))
        for host in fleet.virtual_hosts
    )
    return msgspec.structs.replace(fleet, virtual_hosts=hosts)


def _plain(name: str, value: str) -> tuple[str, str]:
    """A field, without what Via says of the protocol that a request came by."""
    return name, value.replace("2.0 edge", "1.1 edge") if name == "via" else value


def _one_cookie(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields, sorted, with their Cookie fields as one: HTTP/2 joins them on the way to a backend (RFC 9113 section 8.2.3)."""
    cookies = [value.strip() for name, value in fields if name == "cookie"]
    others = [one for one in fields if one[0] != "cookie"]
    return sorted(others + [("cookie", "; ".join(cookies))] * bool(cookies))


def _steady(name: str, value: str) -> tuple[str, str]:
    """A field, without the value of a new cookie."""
    return name, value.partition(";")[2] if name == "set-cookie" else value


class Bench:
    """An engine with both ports, and a backend that keeps what it was asked last."""

    def __init__(self) -> None:
        self.world = World(rows=4096)
        self.seen: list[tuple[str, list[tuple[str, str]], str]] = []
        self.ports: dict[int, int] = {}
        self.http1: dict[int, Client] = {}
        self.http2: dict[int, Asker] = {}
        self.asked = 0
        self.keyed = False  # a key says which endpoint it is

    async def open(self) -> int:
        backend = await Backend(self._answer).start(host="0.0.0.0")
        self.world.keep(backend)
        for port in PORTS:
            self.ports[port] = await self.world.listen(port)
        return backend.port

    def _answer(self, call: Call) -> bytes:
        first, *lines = call.message.raw.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")
        named = [(name.lower(), value) for name, _, value in (x.partition(":") for x in lines)]
        kept = _one_cookie([_plain(*one) for one in named if one[0] not in OWN])
        self.seen.append((first, kept, hashlib.sha1(call.message.body).hexdigest()))
        if call.message.method == b"HEAD":
            return b"HTTP/1.1 200 Test\r\ncontent-length: 7\r\n\r\n"
        return make_response(b"%d" % len(call.message.body), 203, (("x-back", "1"), ("x-a", "2")))

    def hang_up(self) -> None:
        """Begin with new connections."""
        for client in (*self.http1.values(), *(one.client for one in self.http2.values())):
            client.close()
        self.http1.clear()
        self.http2.clear()

    async def by_http1(self, ask: RequestSpec, body: bytes, *, length: bool) -> Any:
        """What came of it."""
        if ask.port not in self.http1:
            self.http1[ask.port] = await self.world.client(self.ports[ask.port])
        client = self.http1[ask.port]
        answer = await client.ask(as_http1(ask, body, length=length), head=ask.method == "HEAD")
        if answer.value("connection") == "close":
            self.http1.pop(ask.port).close()
        return await self._outcome(ask, answer)

    async def by_http2(self, ask: RequestSpec, body: bytes, *, length: bool) -> Any:
        """The same."""
        if ask.port not in self.http2:
            self.http2[ask.port] = Asker(await self.world.client(self.ports[ask.port]))
        try:
            answer = await self.http2[ask.port].ask(as_http2(ask, body, length=length), body)
        except Reset as reset:
            assert reset.code == PROTOCOL_ERROR
            self._flushed()
            self.asked = len(self.world.batches)
            return MALFORMED
        return await self._outcome(ask, answer)

    async def _outcome(self, ask: RequestSpec, answer: Response) -> Any:
        self.asked += 1
        await self.world.until(self._flushed, "a line of the access log")
        line = {k: v for k, v in json.loads(self.world.batches[-1]).items() if k not in LOGGED}
        if not self.keyed:
            line.pop("endpoint", None)
        seen, self.seen[:] = list(self.seen), []
        if answer.status == 400 and ask.target == "*?":
            return MALFORMED  # no answer is due to what is no request of HTTP/2
        headers = sorted(_steady(*one) for one in answer.headers if one[0] not in TOLD)
        return seen, answer.status, headers, answer.body, line

    def _flushed(self) -> bool:
        self.world.engine.log_flush()
        return len(self.world.batches) >= self.asked


async def compare(bench: Bench, seeds: range, requests: int) -> dict[str, int]:
    """Ask in both; how often each kind of answer came."""
    port, kinds = await bench.open(), dict.fromkeys(("backend", "redirect", "status"), 0)
    for seed in seeds:
        tables, pick = Tables(seed, port), random.Random(seed)
        fleet = steady(tables.fleet())
        bench.world.apply(fleet)
        bench.hang_up()  # a port may be gone, and its connections with it in a moment
        served = Served(fleet)
        for drawn in tables.asks(requests):
            ask = msgspec.structs.replace(drawn, http10=False, has_host=True)
            names = [name.lower() for name, _ in ask.headers]
            if not served.listeners(ask.port) or names.count("content-length") > 1:
                continue
            plain = "content-length" in names or ask.method in ("GET", "HEAD", "OPTIONS")
            body, length = b"x" * (0 if plain else pick.choice(BODIES)), pick.random() < 0.5
            bench.keyed = any(each.chosen for each in explain(served, ask).backends)
            one = await bench.by_http1(ask, body, length=length)
            other = await bench.by_http2(ask, body, length=length)
            assert one == other, f"seed {seed}: {ask} {len(body)} {length}\n{one}\n{other}"
            kind = "backend" if one[0] else "redirect" if 300 <= one[1] < 400 else "status"
            kinds[kind] += 1
    return kinds


@pytest.mark.wire
def test_both_are_the_same() -> None:
    kinds = run_worlds(Bench, compare, range(50), 20)
    assert all(count > 20 for count in kinds.values()), kinds


@pytest.mark.heavy
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("start", range(0, 400, 100))
def test_both_are_the_same_over_many_tables(start: int) -> None:
    kinds = run_worlds(Bench, compare, range(2000 + start, 2100 + start), 50)
    assert all(count > 100 for count in kinds.values()), kinds
