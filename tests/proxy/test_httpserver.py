"""The operators' HTTP server: framing, limits, methods, and clients that misbehave."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from edgefast.proxy.address import Address
from edgefast.proxy.httpserver import HttpServer, Reply, Request, bind_server

Send = Callable[[bytes], Awaitable[bytes]]


async def echo(request: Request) -> Reply:
    text = f"{request.method} {request.path} {sorted(request.query.items())} {request.body!r}"
    return Reply(200, text.encode())


async def broken(request: Request) -> Reply:
    raise RuntimeError("bug")


def serve(talk: Callable[[int], Awaitable[Any]]) -> Any:
    """Run a server and a conversation with it."""

    async def main() -> Any:
        sock = bind_server(Address("127.0.0.1", 0))
        routes = {("GET", "/a"): echo, ("POST", "/b"): echo, ("GET", "/broken"): broken}
        server = HttpServer(sock, routes)
        running = asyncio.ensure_future(server.run())
        try:
            async with asyncio.timeout(30):
                return await talk(server.address.port)
        finally:
            running.cancel()
            await asyncio.wait([running])

    return uvloop.run(main())


async def exchange(port: int, data: bytes) -> bytes:
    """Send, then read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


CLOSE = b"Host: x\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status", "part"),
    [
        (b"GET /a?x=1 HTTP/1.1\r\n" + CLOSE + b"\r\n", 200, b"GET /a [('x', '1')] b''"),
        (b"HEAD /a HTTP/1.1\r\n" + CLOSE + b"\r\n", 200, b"content-length"),
        (b"POST /b HTTP/1.1\r\nContent-Length: 3\r\n" + CLOSE + b"\r\nabc", 200, b"b'abc'"),
        (b"GET /b HTTP/1.1\r\n" + CLOSE + b"\r\n", 405, b"use POST"),
        (b"GET /../etc/passwd HTTP/1.1\r\n" + CLOSE + b"\r\n", 404, b"GET /a"),
        (b"rubbish\r\n\r\n", 400, b"bad request"),
        (b"GET /a HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40_000 + b"\r\n\r\n", 431, b"bad request"),
        (b"POST /b HTTP/1.1\r\nContent-Length: 9999\r\n" + CLOSE + b"\r\n" + b"z" * 9999, 413, b""),
    ],
)
def test_answers(request_bytes: bytes, status: int, part: bytes) -> None:
    answer = serve(lambda port: exchange(port, request_bytes))
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert part in answer


def test_connections_are_kept_and_pipelined() -> None:
    two = b"GET /a?n=1 HTTP/1.1\r\nHost: x\r\n\r\n" + b"GET /a?n=2 HTTP/1.1\r\n" + CLOSE + b"\r\n"
    answer = serve(lambda port: exchange(port, two))
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"('n', '1')") < answer.index(b"('n', '2')")


def test_a_bug_costs_one_connection_only() -> None:
    async def talk(port: int) -> bytes:
        assert await exchange(port, b"GET /broken HTTP/1.1\r\n" + CLOSE + b"\r\n") == b""
        return await exchange(port, b"GET /a HTTP/1.1\r\n" + CLOSE + b"\r\n")

    assert serve(talk).startswith(b"HTTP/1.1 200")


def test_silent_clients_do_not_keep_others_out() -> None:
    """As many connections as there are places, all silent: they are dropped when they go."""

    async def talk(port: int) -> bytes:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(64)]
        waiting = asyncio.ensure_future(exchange(port, b"GET /a HTTP/1.1\r\n" + CLOSE + b"\r\n"))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        for sock in silent:
            sock.close()
        return await waiting

    assert serve(talk).startswith(b"HTTP/1.1 200")
