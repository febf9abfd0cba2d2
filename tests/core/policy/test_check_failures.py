"""A service of gRPC that fails, lies, hangs or dies lets nobody pass, unless that is asked for; a denial is one whatever follows."""

from __future__ import annotations

import asyncio

import pytest

from core.apart import apart, shift
from core.backend import make_response
from core.client import make_request
from core.fleets import make_cluster
from core.h2.backend import Ask
from core.policy.authorized import fleet_of, make_auth
from core.policy.called import CALLED, HEAD, OK, Act, called, say
from core.policy.checkmessages import CheckResponse, denying, frame, passing
from core.world import World
from edgefast.ir.policy import AuthCache

PASS = passing(("x-user", "me"))


def parts(*data: bytes, trailers: tuple[tuple[str, str], ...] = OK, then: str = "") -> Act:
    """A head, bytes of a body, an end: trailers, or what `then` says."""

    def act(ask: Ask) -> None:
        ask.head(200, *HEAD)
        if data:
            ask.data(b"".join(data), end=then == "end")
        match then:
            case "end":
                pass
            case "reset":
                ask.refuse(2)
            case "close":
                ask.link.close()
            case "abort":
                ask.link.transport.abort()
            case "goaway":
                ask.link.goes_away(0, 2)
            case _:
                ask.trail(*trailers)

    return act


def head(status: int = 200, *fields: tuple[str, str], body: bytes = b"", end: bool = False) -> Act:
    """A head that is none of gRPC's, or all there is."""

    def act(ask: Ask) -> None:
        ask.head(status, *fields, end=end)
        if not end:
            ask.data(body)
            ask.trail(*OK)

    return act


def asks_for_a_query() -> bytes:
    made = CheckResponse.FromString(PASS)
    made.ok_response.query_parameters_to_remove.append("token")
    data: bytes = made.SerializeToString()
    return data


GOOD = frame(PASS)
FAULTS: dict[str, Act] = {
    "another status": say(PASS, ("grpc-status", "13")),
    "denied in the trailers alone": parts(trailers=(("grpc-status", "7"),)),
    "no status": say(PASS, ("x-late", "1")),
    "a status that is none": say(PASS, ("grpc-status", "ok")),
    "two statuses": say(PASS, ("grpc-status", "0"), ("grpc-status", "0")),
    "two statuses, one of them bad": say(PASS, ("grpc-status", "7"), ("grpc-status", "0")),
    "no trailers": parts(GOOD, then="end"),
    "trailers alone, bad": head(200, *HEAD, ("grpc-status", "14"), end=True),
    "trailers alone, good": head(200, *HEAD, ("grpc-status", "0"), end=True),
    "a status in the head": head(200, *HEAD, ("grpc-status", "0"), body=GOOD[:-1]),
    "no message": parts(),
    "an empty message": parts(frame(b"")),
    "a message that says nothing": parts(frame(b"\x22\x00")),
    "two messages": parts(GOOD, GOOD),
    "bytes behind it": parts(GOOD, b"\0"),
    "half a frame": parts(GOOD[:3]),
    "half a message": parts(GOOD[:-1]),
    "a message that is too short": parts(b"\0\0\0\0\x02" + PASS),
    "compressed": parts(frame(PASS, 1)),
    "a flag that is none": parts(frame(PASS, 128)),
    "nonsense": parts(frame(b"\xff" * 30)),
    "a group": parts(frame(PASS + b"\x0b\x0c")),
    "giant": parts(frame(PASS + b"\x22\x80\x80\x10" + bytes(262_144))),
    "giant without end": parts(b"\0\xff\xff\xff\xff" + bytes(400_000)),
    "many lines": parts(frame(passing(*[("x", "y")] * 200))),
    "long lines": parts(frame(passing(*[("x", "y" * 1_000)] * 100))),
    "two lines in one": parts(frame(passing(("x-a", "b\r\nx-user: root")))),
    "a line in a name": parts(frame(passing(("x-a: b\r\nx-user", "root")))),
    "no name": parts(frame(passing(("", "root")))),
    "a name with a blank": parts(frame(passing(("x user", "root")))),
    "a NUL": parts(frame(passing(("x-a", "b\0")))),
    "a name to remove that is none": parts(frame(passing(remove=("x y",)))),
    "a line for the client that is two": parts(frame(passing(answer=(("x-a", "b\nc"),)))),
    "another query": parts(frame(asks_for_a_query())),
    "reset behind the head": parts(then="reset"),
    "reset behind the message": parts(GOOD, then="reset"),
    "closed behind the message": parts(GOOD, then="close"),
    "aborted behind the message": parts(GOOD, then="abort"),
    "reset": lambda ask: ask.refuse(2),
    "refused": lambda ask: ask.refuse(7),
    "aborted": lambda ask: ask.link.transport.abort(),
    "goes away with an error": parts(GOOD, then="goaway"),
    "no gRPC": head(200, ("content-type", "application/json"), body=GOOD),
    "no type": head(200, body=GOOD),
    "gRPC-Web": head(200, ("content-type", "application/grpc-web"), body=GOOD),
    "500": head(500, *HEAD, body=GOOD),
    "204": head(204, *HEAD, end=True),
    "302": head(302, *HEAD, ("location", "/"), body=GOOD),
}

NO = denying(("x-why", "y"), ("content-type", "text/plain"), status=401, body="who are you")
DENIALS: dict[str, tuple[Act, int, str | None]] = {
    "whole": (say(NO), 401, "y"),
    "another status behind it": (say(NO, ("grpc-status", "13")), 401, "y"),
    "no trailers": (parts(frame(NO), then="end"), 401, "y"),
    "reset behind it": (parts(frame(NO), then="reset"), 401, "y"),
    "aborted behind it": (parts(frame(NO), then="abort"), 401, "y"),
    "two messages": (parts(frame(NO), GOOD), 401, "y"),
    "half of it": (parts(frame(NO)[:20], then="reset"), 403, None),
    "its code alone": (parts(frame(NO)[:9]), 403, None),
    "a giant one": (parts(frame(NO + b"\x22\x80\x80\x10" + bytes(262_144))), 401, "y"),
    "nonsense behind it": (parts(frame(NO + b"\xff")), 401, None),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_nobody_passes(world: World, fault: str) -> None:
    route = await called(world, FAULTS[fault], status_on_error=503, cache=AuthCache(ttl=60_000))
    client = await route.client()
    for _ in range(2):
        answer = await client.ask(make_request())
        assert (answer.status, answer.body) == (503, b"")
    assert route.seen == []
    assert (world.counters["auth_errors"], world.counters["auth_denied"]) == (2, 0)
    assert [line["flags"] for line in world.lines()] == ["AUTH"] * 2


@pytest.mark.parametrize("fault", FAULTS)
async def test_fail_open(world: World, fault: str) -> None:
    route = await called(world, FAULTS[fault], fail_open=True, unit=True)
    answer = await route.ask(headers=[("x-user", "client")])
    assert answer.body == b"behind"
    assert b"root" not in route.seen[0].message.raw
    assert route.seen[0].message.values(b"x-user") == [b"client"]
    (line,) = world.lines()
    assert (line["flags"], line["policy"]) == ("AUTH", "security/ns/policy#extAuth")


@pytest.mark.parametrize("fail_open", [False, True])
@pytest.mark.parametrize("fault", DENIALS)
async def test_a_denial_is_one(world: World, fault: str, fail_open: bool) -> None:
    act, status, why = DENIALS[fault]
    route = await called(world, act, fail_open=fail_open, status_on_error=500)
    answer = await route.ask()
    assert answer.status == status and answer.value("x-why") == why
    assert route.seen == [] and world.counters["auth_denied"] == 1


class Drip:
    """What a service would write, kept, to be written as the test likes."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self.ready = asyncio.Event()
        self.data = b""
        self.ask: Ask | None = None

    def __call__(self, ask: Ask) -> None:
        self.ask = ask
        frames = ask.link.frames
        frames.send_headers(ask.stream, [(":status", "200"), *HEAD])
        frames.send_data(ask.stream, frame(self._message))
        frames.send_headers(ask.stream, [*OK], True)
        self.data = frames.data_to_send()
        self.ready.set()

    async def begun(self) -> bytes:
        await self.ready.wait()
        self.ready.clear()
        return self.data

    def write(self, data: bytes) -> None:
        assert self.ask is not None
        self.ask.link.transport.write(data)


async def test_byte_by_byte(world: World) -> None:
    drip = Drip(PASS)
    route = await called(world, drip)
    client = await route.client()
    await client.send(make_request())
    data = await drip.begun()
    for at in range(len(data)):
        assert route.seen == []
        drip.write(data[at : at + 1])
        await world.turns()
    assert (await client.response()).body == b"behind"
    assert route.seen[0].message.values(b"x-user") == [b"me"]


async def test_cut_at_every_byte(world: World) -> None:
    drip = Drip(PASS)
    route = await called(world, drip)
    client = await route.client()
    size, at = 1, 0
    while at < size:
        await client.send(make_request())
        data = await drip.begun()
        size = len(data)
        drip.write(data[:at])
        assert drip.ask is not None
        drip.ask.link.transport.close()
        assert (await client.response()).status == 403
        at += 1
    assert route.seen == []


async def hang(world: World, *, fail_open: bool) -> None:
    """At the question, behind a head, behind a message that would let pass."""
    route = await called(world, lambda ask: None, fail_open=fail_open, timeout=5_000)
    for sent in (None, b"", GOOD[:4], GOOD):
        route.answer(lambda ask, sent=sent: begin(ask, sent))
        client = await route.client()
        await client.send(make_request())
        ask = await route.service.ask()
        await world.until(lambda ask=ask: ask.ended)
        await world.turns(5)
        assert world.engine.active == 1
        shift(6)
        assert (await client.response()).status == (200 if fail_open else 403)
        await world.until(lambda ask=ask: ask.reset is not None)
    assert len(route.seen) == 4 * fail_open


def begin(ask: Ask, sent: bytes | None) -> None:
    if sent is not None:
        ask.head(200, *HEAD)
        ask.data(sent)


@apart(clock=True)
async def test_one_that_hangs(world: World) -> None:
    await hang(world, fail_open=False)


@apart(clock=True)
async def test_one_that_hangs_where_failures_let_pass(world: World) -> None:
    await hang(world, fail_open=True)


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What a server of HTTP/1.1 says to HTTP/2."""
    await reader.read(16)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    writer.close()


@pytest.mark.parametrize("fail_open", [False, True])
async def test_one_that_is_not_there(world: World, fail_open: bool) -> None:
    backend = await world.backend(lambda call: make_response(b"behind"))
    spec = make_auth(CALLED, grpc=True, fail_open=fail_open, status_on_error=500)
    http1 = await world.backend(lambda call: make_response(b"no HTTP/2"))
    other = await asyncio.start_server(refuse, "127.0.0.1", 0)
    world.keep(other)
    port = other.sockets[0].getsockname()[1]
    services = (
        (make_cluster(world.refusing_port(), name=CALLED, protocol="h2"),),
        (make_cluster(port, name=CALLED, protocol="h2"),),  # speaks another protocol
        (make_cluster(http1.port, name=CALLED),),  # and is said to
        (make_cluster(name=CALLED, protocol="h2"),),
        (),
    )
    port = 0
    for at, one in enumerate(services):
        world.apply(fleet_of(spec, backend.port, *one))
        port = port or await world.listen()
        client = await world.client(port)
        assert (await client.ask(make_request())).status == (200 if fail_open else 500), at
    assert backend.count == len(services) * fail_open


async def test_an_old_connection_is_no_error(world: World) -> None:
    route = await called(world, PASS)
    assert (await route.ask()).status == 200
    for link in route.service.open:
        link.goes_away()
        link.close()
    assert (await route.ask()).status == 200
    assert world.counters["auth_errors"] == 0


async def test_a_client_that_leaves_takes_its_question_with_it(world: World) -> None:
    route = await called(world, lambda ask: None)
    client = await route.client()
    await client.send(make_request())
    ask = await route.service.ask()
    client.close()
    await world.until(lambda: ask.reset is not None)
    assert world.engine.active == 0 and route.seen == []
