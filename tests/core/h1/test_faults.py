"""A fault in the middle of an answer costs that answer, and nobody else's has a byte of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httptools
import pytest

from core.backend import Link, say
from core.client import Gone, make_request
from core.conftest import check
from core.fleets import make_cluster, make_fleet
from core.pipes import PipeWorld
from core.world import World
from edgefast.core import fastpath

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
SECRET = b"7\r\nsecret1\r\n"
POISON = b"6\r\npoison\r\n"


class Failing:
    """The parser, but for a mistake that it does not know of."""

    def __init__(self, protocol: Any) -> None:
        self._parser = httptools.HttpResponseParser(protocol)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def feed_data(self, data: Any) -> None:
        if b"poison" in bytes(data):
            raise RuntimeError("a fault")
        self._parser.feed_data(data)


async def test_pieces_of_an_answer_that_failed_are_in_no_other(
    pipes: PipeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastpath, "HttpResponseParser", Failing)
    pipes.apply(make_fleet(pipes.cluster_of_pipes))
    clients = [await pipes.connect() for _ in range(2)]
    for client in clients:
        await client.feed(make_request())
    backends = [await pipes.dial(n) for n in (1, 2)]
    await backends[1].feed(HEAD + b"3\r\none\r\n")
    # In one turn: the first has gathered when it fails, then the second goes on.
    await asyncio.gather(
        backends[0].feed(HEAD + SECRET + POISON), backends[1].feed(b"3\r\ntwo\r\n0\r\n\r\n")
    )
    await pipes.until(lambda: any(client.ended for client in clients))
    answers = sorted(client.sent for client in clients)
    assert answers[0] == b""
    assert answers[1].partition(b"\r\n\r\n")[2] == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert pipes.counters["faults"] == 1
    assert len(pipes.take_faults()) == 1


class Sink:
    """Takes batches of the access log, and fails in the middle of a request."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.fails = True

    def __call__(self, batch: bytes) -> None:
        self.batches.append(batch)
        if self.fails and len(batch) > 60_000:  # else it comes by its timer
            raise RuntimeError("a fault")


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def failing(sink: Sink) -> Iterator[World]:
    """A world whose access log fails."""
    yield from check(World(access_log=sink))  # type: ignore[misc]


async def test_a_fault_at_the_end_of_an_exchange_ends_its_connection(
    failing: World, sink: Sink
) -> None:
    """Its client does not wait for ever."""
    backend = await failing.backend(say("x"))
    port = await failing.serve(make_fleet(make_cluster(backend.port)))
    client = await failing.client(port)
    # Each such byte takes six in a line: less than twenty requests fill a batch, before its timer looks at it.
    request = make_request("/" + "x" * 512, headers=[("user-agent", "\xff" * 512)])
    with pytest.raises(Gone):
        for _ in range(200):
            await client.ask(request)
    await failing.until(lambda: failing.engine.open_connections == 0)
    assert len(failing.take_faults()) == failing.counters["faults"] == 1
    sink.fails = False
    failing.batches = sink.batches


@pytest.mark.parametrize("closes", [False, True], ids=["reset", "close"])
@pytest.mark.parametrize("asked", [False, True], ids=["connected", "asked"])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_a_backend_that_hangs_up_before_it_answers(
    world: World, method: str, asked: bool, closes: bool
) -> None:
    """The answer is a status with a short text, and the client's connection can be used again."""

    def end(link: Link) -> None:
        (link.close if closes else link.abort)()

    backend = await world.backend()
    if asked:
        backend.answer = lambda call: end(call.link)
    else:
        backend.on_link = end
    client = await world.client_of(make_fleet(make_cluster(backend.port)))
    request = make_request(method=method, body=b"x" if method == "POST" else None)
    for _ in range(2):
        answer = await client.ask(request, head=method == "HEAD")
        assert answer.status in (502, 503)
        assert (answer.value("server"), answer.value("connection")) == ("edgefast", None)
        assert method == "HEAD" or answer.body
        assert answer.value("content-type") == "text/plain"
