"""gRPC requests: own answers in its words, grpc-timeout, how they are counted and logged. Time is moved, not waited for."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from core.apart import apart, shift
from core.backend import Call
from core.client import Client
from core.fleets import ROW, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir

Lines = Iterable[tuple[str, str]]
DONE = b"0\r\nGrpc-Status: %d\r\n\r\n"


def grpc_head(path: str = "/a.B/C", headers: Lines = (), kind: str = "application/grpc") -> bytes:
    """A request of gRPC in HTTP/1.1's words, with an empty message."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return (
        f"POST {path} HTTP/1.1\r\nhost: test\r\nte: trailers\r\ncontent-type: {kind}\r\n{lines}content-length: 5\r\n\r\n"
    ).encode() + bytes(5)


def reply(call: Call, status: int = 0) -> None:
    """An answer of one empty message."""
    call.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\n\0\0\0\0\0\r\n" + DONE % status
    )


async def ask(client: Client, head: bytes) -> tuple[int, str | None, str | None]:
    """Status, grpc-status and grpc-message of an answer that has no body."""
    await client.send(head)
    answer = await client.response()
    assert answer.body == b""
    fields = {name.lower(): value for name, value in answer.headers}
    assert fields.get("content-type") == "application/grpc"
    return answer.status, fields.get("grpc-status"), fields.get("grpc-message")


async def test_without_a_route(world: World) -> None:
    client = await world.client_of(make_fleet(make_host(("/other", make_rule())), make_cluster()))
    found = await ask(client, grpc_head())
    assert found == (200, "12", "no route takes this call")
    (line,) = world.lines()
    assert (line["status"], line["grpc_status"], line["flags"]) == (200, "UNIMPLEMENTED", "NR")
    assert world.counters.row("-\t-")["requests_4xx"] == 1


async def test_others_are_answered_as_ever(world: World) -> None:
    client = await world.client_of(make_fleet(make_host(("/other", make_rule())), make_cluster()))
    for kind in ("application/json", "application/grpcx", "application/grpc-web"):
        await client.send(grpc_head(kind=kind))
        answer = await client.response()
        assert (answer.status, answer.value("grpc-status")) == (404, None)
    await client.get()
    assert all("grpc_status" not in line for line in world.lines())


async def test_without_an_endpoint(world: World) -> None:
    client = await world.client_of(make_fleet(make_cluster()))
    assert await ask(client, grpc_head()) == (200, "14", "no healthy endpoint")
    (line,) = world.lines()
    assert (line["grpc_status"], line["flags"]) == ("UNAVAILABLE", "NE")
    row = world.counters.row(ROW)
    assert (row["grpc_UNAVAILABLE"], row["requests_5xx"], row["requests_2xx"]) == (1, 1, 0)


async def test_a_refused_rule(world: World) -> None:
    client = await world.client_of(make_fleet(make_rule(status=500), make_cluster()))
    said = "the route or its backend is refused by its configuration"
    assert await ask(client, grpc_head()) == (200, "2", said)


@apart(clock=True)
async def test_a_timeout_of_the_route(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(timeouts=ir.Timeouts(request=1000))
    client = await world.client_of(make_fleet(make_cluster(backend.port), rule))
    await client.send(grpc_head(headers=[("grpc-timeout", "1H")]))
    call = await backend.call()
    assert 0 < sent_timeout(call) <= 1000
    shift(2)
    answer = await client.response()
    fields = dict(answer.headers)
    assert (answer.status, fields["grpc-status"]) == (200, "4")
    assert world.lines()[0]["flags"] == "UT"


def sent_timeout(call: Call) -> int:
    """grpc-timeout as the backend got it, in milliseconds."""
    value = call.message.value(b"grpc-timeout")
    assert value is not None and value.endswith(b"m") and len(value) == 9
    return int(value[:-1])


@apart(clock=True)
async def test_a_client_waits_no_longer_than_it_says(world: World) -> None:
    backend, client = await world.pair()
    for _ in range(8):  # whoever asks for a moment only has no endpoint ejected
        await client.send(grpc_head(headers=[("grpc-timeout", "3S")]))
        call = await backend.call()
        assert 2000 < sent_timeout(call) <= 3000
        shift(4)
        answer = await client.response()
        assert (answer.status, dict(answer.headers)["grpc-status"]) == (200, "4")
    assert world.counters["endpoint_ejections"] == 0
    assert world.counters.row(ROW)["timeouts"] == 8
    assert world.counters.row(ROW)["grpc_DEADLINE_EXCEEDED"] == 8


@apart(clock=True)
async def test_a_timeout_ends_an_answer_that_has_begun(world: World) -> None:
    backend, client = await world.pair()
    await client.send(grpc_head(headers=[("grpc-timeout", "3S")]))
    call = await backend.call()
    call.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\n\0\0\0\0\0\r\n"
    )
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    shift(4)
    answer = await client.response()
    assert (answer.status, answer.body) == (200, bytes(5))
    assert dict(answer.trailers)["grpc-status"] == "4"
    assert world.lines()[0]["grpc_status"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("value", ["", "1", "1s", "123456789S", "-1S"])
async def test_what_is_no_timeout_is_the_backends_to_judge(world: World, value: str) -> None:
    backend, client = await world.pair()
    await client.send(grpc_head(headers=[("grpc-timeout", value)]))
    call = await backend.call()
    assert call.message.value(b"grpc-timeout") == value.encode()
    reply(call)
    assert (await client.response()).status == 200


async def test_statuses_of_backends_are_counted(world: World) -> None:
    backend, client = await world.pair()
    for status in (0, 5, 13, 77):
        await client.send(grpc_head())
        reply(await backend.call(), status)
        answer = await client.response()
        assert answer.body == bytes(5)
    await client.send(grpc_head())  # Trailers-Only
    (await backend.call()).send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ngrpc-status: 7\r\ncontent-length: 0\r\n\r\n"
    )
    await client.response()
    await client.send(grpc_head())  # no gRPC at all
    (await backend.call()).send(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")
    await client.response()
    row = world.counters.row(ROW)
    counted = {name: n for name, n in row.items() if name.startswith("grpc_") and n}
    assert counted == {
        "grpc_OK": 1, "grpc_NOT_FOUND": 1, "grpc_INTERNAL": 1, "grpc_UNKNOWN": 1, "grpc_PERMISSION_DENIED": 1,
        "grpc_UNAUTHENTICATED": 1,
    }  # fmt: skip
    assert (row["requests_2xx"], row["requests_4xx"], row["requests_5xx"]) == (1, 3, 2)
    assert [line["grpc_status"] for line in world.lines()] == [
        "OK", "NOT_FOUND", "INTERNAL", "77", "PERMISSION_DENIED", "UNAUTHENTICATED",
    ]  # fmt: skip
    assert {line["status"] for line in world.lines()} == {200, 401}


async def test_operators_of_the_log(world: World) -> None:
    backend = await world.backend()
    text = (
        ir.LogPiece(operator="GRPC_STATUS", text="CAMEL_STRING"),
        ir.LogPiece(text=" "),
        ir.LogPiece(operator="GRPC_STATUS", text="SNAKE_STRING"),
        ir.LogPiece(text=" "),
        ir.LogPiece(operator="GRPC_STATUS", text="NUMBER"),
        ir.LogPiece(text=" "),
        ir.LogPiece(operator="GRPC_STATUS_NUMBER"),
    )
    fleet = make_fleet(make_listener(log=ir.AccessLog(text=text)), make_cluster(backend.port))
    client = await world.client_of(fleet)
    await client.send(grpc_head())
    reply(await backend.call(), 4)
    await client.response()
    await client.send(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n")
    (await backend.call()).reply(b"")
    await client.response()
    assert world.texts() == ["DeadlineExceeded DEADLINE_EXCEEDED 4 4", "- - - -"]


async def test_failed_calls_pass_a_filter_of_failed_requests(world: World) -> None:
    backend = await world.backend()
    log = ir.AccessLog(min_status=500)
    fleet = make_fleet(make_listener(log=log), make_cluster(backend.port))
    client = await world.client_of(fleet)
    for status in (0, 14, 5):
        await client.send(grpc_head())
        reply(await backend.call(), status)
        await client.response()
    assert [line["grpc_status"] for line in world.lines()] == ["UNAVAILABLE"]
