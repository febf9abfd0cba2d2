"""Calls that are tried again for their status (EdgeProxy spec.grpc.retry)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from h2.events import StreamEnded, TrailersReceived

from core.client import make_request
from core.exchange.test_grpc import grpc_head
from core.fleets import ROW, make_cluster, make_fleet, make_listener, make_rule
from core.h2.backend import Ask, H2Backend
from core.h2.test_both import HEAD, begin, events
from core.world import World
from edgefast import ir

UNAVAILABLE, ABORTED = 14, 10
KIND = ("content-type", "application/grpc")


def alone(status: int, *more: tuple[str, str]) -> Callable[[Ask], None]:
    """An answer that is a status and nothing else."""
    return lambda ask: ask.head(200, KIND, ("grpc-status", str(status)), *more, end=True)


def whole(ask: Ask) -> None:
    """An answer with a message."""
    ask.head(200, KIND)
    ask.data(b"\0\0\0\0\0")
    ask.trail(("grpc-status", "0"))


def late(status: int) -> Callable[[Ask], None]:
    """A head, then the status behind it."""

    def answer(ask: Ask) -> None:
        ask.head(200, KIND)
        ask.trail(("grpc-status", str(status)))

    return answer


class Turns:
    """A backend that gives these answers one after the other, the last one again and again."""

    def __init__(self, *answers: Callable[[Ask], None]) -> None:
        self.answers = answers
        self.backend = H2Backend(self._answer)
        self.bodies: list[bytes] = []
        self.alone: list[bool] = []  # requests with END_STREAM on HEADERS

    def _answer(self, ask: Ask) -> None:
        self.bodies.append(ask.body)
        self.alone.append(ask.alone)
        self.answers[min(len(self.bodies), len(self.answers)) - 1](ask)


async def call(
    world: World, turns: Turns, rule: dict[str, Any] | None = None, **grpc: Any
) -> tuple[str, int]:
    """The status that the client is told, and how many tries there were."""
    world.keep(await turns.backend.start())
    chosen: dict[str, Any] = {"retry_codes": (UNAVAILABLE,), "retry_backoff": 1} | grpc
    settings = ir.GrpcSettings(**chosen)
    client = await world.client_of(
        make_fleet(
            make_listener(grpc=settings),
            make_rule(**(rule or {})),
            make_cluster(turns.backend.port, protocol="h2"),
        )
    )
    head = grpc_head(headers=[("connection", "te")])
    await client.send(head)
    answer = await client.response()
    said = dict(answer.headers) | dict(answer.trailers)
    return said.get("grpc-status", f"HTTP {answer.status}"), len(turns.bodies)


async def test_again(world: World) -> None:
    turns = Turns(alone(UNAVAILABLE), whole)
    assert await call(world, turns) == ("0", 2)
    assert turns.bodies == [bytes(5)] * 2
    assert world.counters["grpc_retries"] == world.counters["retries"] == 1
    assert world.counters.row(ROW)["retries"] == 1
    (line,) = world.lines()
    assert (line["grpc_status"], line["tries"], line["flags"]) == ("OK", 2, "RT")


@pytest.mark.parametrize("ends", ["head", "data", "late data", "trailers"])
async def test_a_call_without_a_message(world: World, ends: str) -> None:
    """END_STREAM is on a DATA frame in each try and in the copy: grpc-go never ends a call that has it on HEADERS."""
    turns, mirror = Turns(alone(UNAVAILABLE), whole), Turns(whole)
    for one in (turns, mirror):
        world.keep(await one.backend.start())
    settings = ir.GrpcSettings(retry_codes=(UNAVAILABLE,), retry_backoff=1)
    listener = make_listener(grpc=settings, http2=ir.Http2Settings(enabled=True))
    clusters = (
        make_cluster(turns.backend.port, name="main", protocol="h2"),
        make_cluster(mirror.backend.port, name="mirror", protocol="h2"),
    )
    rule = make_rule("main", mirrors=(ir.Mirror(cluster="mirror"),))
    client, frames = await begin(world, await world.serve(make_fleet(listener, rule, *clusters)))
    frames.send_headers(1, [*HEAD, KIND, ("te", "trailers")], end_stream=ends == "head")
    if ends == "late data":
        await client.send(frames.data_to_send())
        await world.until(lambda: len(turns.backend.asks) == len(mirror.backend.asks) == 1)
    if "data" in ends:
        frames.send_data(1, b"", end_stream=True)
    elif ends == "trailers":
        frames.send_headers(1, [("x-a", "b")], end_stream=True)
    await client.send(frames.data_to_send())
    found = await events(client, frames, StreamEnded)
    (trailers,) = [one.headers for one in found if isinstance(one, TrailersReceived)]
    assert ("grpc-status", "0") in (trailers or ())
    await world.until(lambda: len(mirror.alone) == 1)
    assert turns.alone == [False] * 2 and mirror.alone == [False]
    assert {*turns.bodies, *mirror.bodies} == {b""}


async def test_a_call_of_length_0(world: World) -> None:
    turns = Turns(whole)
    world.keep(await turns.backend.start())
    client = await world.client_of(make_fleet(make_cluster(turns.backend.port, protocol="h2")))
    answer = await client.ask(make_request(method="POST", headers=[KIND], body=b""))
    assert (answer.status, answer.body, turns.alone) == (200, bytes(5), [False])
    answer = await client.ask(make_request(method="POST", body=b""))  # others have no such frame
    assert turns.alone == [False, True]


async def test_as_often_as_it_says(world: World) -> None:
    turns = Turns(alone(UNAVAILABLE))
    assert await call(world, turns, retry_attempts=3) == ("14", 4)
    (line,) = world.lines()
    assert (line["grpc_status"], line["tries"]) == ("UNAVAILABLE", 4)


@pytest.mark.parametrize(
    ("answer", "grpc"),
    [
        (alone(ABORTED), {}),
        (alone(UNAVAILABLE), {"retry_codes": ()}),
        (alone(UNAVAILABLE), {"retry_attempts": 0}),
        (alone(UNAVAILABLE, ("grpc-retry-pushback-ms", "-1")), {}),
        (alone(UNAVAILABLE, ("grpc-retry-pushback-ms", "10001")), {}),
        (late(UNAVAILABLE), {}),  # its head was the client's already
    ],
    ids=["another", "no codes", "no attempts", "not wanted", "too late", "behind a head"],
)
async def test_once(world: World, answer: Callable[[Ask], None], grpc: dict[str, Any]) -> None:
    turns = Turns(answer)
    _, tries = await call(world, turns, **grpc)
    assert tries == 1
    assert world.counters["grpc_retries"] == 0


async def test_a_route_that_says_never(world: World) -> None:
    """HTTPRouteRetry.attempts 0 disables retries of every kind."""
    turns = Turns(alone(UNAVAILABLE))
    rule = {"retry": ir.Retry(attempts=0)}
    assert await call(world, turns, rule) == ("14", 1)


async def test_the_backend_says_when(world: World) -> None:
    turns = Turns(alone(UNAVAILABLE, ("grpc-retry-pushback-ms", "1")), whole)
    assert await call(world, turns, retry_backoff=60_000) == ("0", 2)


@pytest.mark.parametrize(
    "answer",
    [lambda ask: ask.refuse(2), lambda ask: ask.reply(b"sorry", 503)],
    ids=["a reset", "HTTP"],
)
async def test_what_a_client_takes_for_it(world: World, answer: Callable[[Ask], None]) -> None:
    """No answer, or one that is none of gRPC's, is UNAVAILABLE for whoever waits."""
    assert await call(world, Turns(answer, whole)) == ("0", 2)


async def test_a_request_that_is_not_complete_is_sent_once(world: World) -> None:
    """Messages that are still to come cannot come twice."""
    backend = H2Backend(begun=alone(UNAVAILABLE))
    world.keep(await backend.start())
    settings = ir.GrpcSettings(retry_codes=(UNAVAILABLE,), retry_backoff=1)
    client = await world.client_of(
        make_fleet(
            make_listener(grpc=settings, body_start=0), make_cluster(backend.port, protocol="h2")
        )
    )
    await client.send(grpc_head()[:-5])
    assert dict((await client.response()).headers)["grpc-status"] == "14"
    assert len(backend.asks) == 1


async def test_within_the_budget(world: World) -> None:
    """Three at once are always allowed; what all of them may is a part of what is asked."""
    backend = H2Backend(alone(UNAVAILABLE))
    world.keep(await backend.start())
    settings = ir.GrpcSettings(retry_codes=(UNAVAILABLE,), retry_backoff=3_000)
    port = await world.serve(
        make_fleet(make_listener(grpc=settings), make_cluster(backend.port, protocol="h2"))
    )
    clients = [await world.client(port) for _ in range(10)]
    for client in clients:
        await client.send(grpc_head())
    await world.until(lambda: world.counters["retries_over_budget"] == 7)
    assert world.counters["grpc_retries"] == 3
    for client in clients:
        client.close()
