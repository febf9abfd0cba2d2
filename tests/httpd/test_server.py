"""The operators' HTTP server: framing, limits, methods, and clients that misbehave."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.httpd.server import HttpServer, Reply, Request, bind_server

LOOPBACK = Address("127.0.0.1", 0)
Send = Callable[[bytes], Awaitable[bytes]]


async def echo(request: Request) -> Reply:
    text = f"{request.method} {request.path} {sorted(request.query.items())} {request.body!r}"
    return Reply(200, text.encode())


async def broken(request: Request) -> Reply:
    raise RuntimeError("bug")


def serve(
    talk: Callable[[int], Awaitable[Any]],
    *,
    any_host: bool = False,
    address: Address = LOOPBACK,
) -> Any:
    """Run a server and a conversation with it."""

    async def main() -> Any:
        sock = bind_server(address)
        routes = {("GET", "/a"): echo, ("POST", "/b"): echo, ("GET", "/broken"): broken}
        server = HttpServer(sock, routes, any_host=any_host)
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


CLOSE = b"Host: 127.0.0.1\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status", "part"),
    [
        (b"GET /a?x=1 HTTP/1.1\r\n" + CLOSE + b"\r\n", 200, b"GET /a [('x', '1')] b''"),
        (b"HEAD /a HTTP/1.1\r\n" + CLOSE + b"\r\n", 200, b"content-length"),
        (b"POST /b HTTP/1.1\r\nContent-Length: 3\r\n" + CLOSE + b"\r\nabc", 200, b"b'abc'"),
        (b"GET /b HTTP/1.1\r\n" + CLOSE + b"\r\n", 405, b"use POST"),
        (b"GET /../etc/passwd HTTP/1.1\r\n" + CLOSE + b"\r\n", 404, b"GET /a"),
        (b"rubbish\r\n\r\n", 400, b"bad request"),
        (
            b"GET /a HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
            431,
            b"bad request",
        ),
        (b"POST /b HTTP/1.1\r\nContent-Length: 9999\r\n" + CLOSE + b"\r\n" + b"z" * 9999, 413, b""),
    ],
)
def test_answers(request_bytes: bytes, status: int, part: bytes) -> None:
    answer = serve(lambda port: exchange(port, request_bytes))
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert part in answer


def test_connections_are_kept_and_pipelined() -> None:
    two = (
        b"GET /a?n=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        + b"GET /a?n=2 HTTP/1.1\r\n"
        + CLOSE
        + b"\r\n"
    )
    answer = serve(lambda port: exchange(port, two))
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"('n', '1')") < answer.index(b"('n', '2')")


def test_a_bug_costs_one_answer_only() -> None:
    async def talk(port: int) -> bytes:
        broken = await exchange(port, b"GET /broken HTTP/1.1\r\n" + CLOSE + b"\r\n")
        assert broken.startswith(b"HTTP/1.1 500 ") and b"bug" not in broken
        return await exchange(port, b"GET /a HTTP/1.1\r\n" + CLOSE + b"\r\n")

    assert serve(talk).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "line",
    [
        b"GET //[ HTTP/1.1",
        b"GET http://[/a HTTP/1.1",
        b"GET //]/a HTTP/1.1",
        b"GET /a?" + b"&".join(b"x%d=1" % number for number in range(21)) + b" HTTP/1.1",
        b"POST //[::1 HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
)
def test_what_cannot_be_parsed_is_refused_in_one_line(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the answer, and of the log for all that come in a while."""

    async def talk(port: int) -> list[bytes]:
        request = line + b"\r\n" + CLOSE + b"\r\n"
        return [await exchange(port, request) for _ in range(5)]

    for answer in serve(talk):
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 "), answer
        assert body.startswith(b"bad request: ") and body.count(b"\n") == 1
    told = [record for record in caplog.records if record.name.startswith("edgefast")]
    assert len(told) == 1 and told[0].exc_info is None


# --- who may ask --------------------------------------------------------------------------------------


def ask(head: str, method: str = "POST", *, any_host: bool = False) -> int:
    """The status of a request with these headers."""
    path = "/b" if method == "POST" else "/a"
    lines = [f"{method} {path} HTTP/1.1", *head.splitlines(), "Connection: close", "", ""]
    answer = serve(lambda port: exchange(port, "\r\n".join(lines).encode()), any_host=any_host)
    return int(answer.split()[1])


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("any_host", [True, False])
@pytest.mark.parametrize(
    "head",
    [
        "Host: 127.0.0.1:19000\nOrigin: https://evil.example",
        "Host: 127.0.0.1:19000\nOrigin: http://127.0.0.1:8080",  # another port is another site
        "Host: 127.0.0.1:19000\nOrigin: null",
        "Host: localhost\nOrigin: http://localhost\nOrigin: http://evil.example",
        "Host: localhost\nSec-Fetch-Site: cross-site",
        "Host: localhost\nSec-Fetch-Site: same-site",
        "Host: localhost\nSec-Fetch-Site: CROSS-SITE",
    ],
)
def test_a_page_of_another_site_gets_nothing(head: str, any_host: bool, method: str) -> None:
    assert ask(head, method, any_host=any_host) == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1:19000", True),
        ("127.0.0.1", True),
        ("[::1]:19000", True),
        ("[::1]", True),
        ("10.1.2.3:19000", True),  # a rebound name is never an address
        ("LocalHost:19000", True),
        ("evil.example", False),
        ("evil.example:19000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1:19000:80", False),
    ],
)
def test_names_that_some_dns_may_point_here_are_refused(host: str, own: bool, method: str) -> None:
    assert ask(f"Host: {host}", method) == (200 if own else 421)
    assert ask(f"Host: {host}", method, any_host=True) == 200


def test_its_own_pages_and_tools_may_ask() -> None:
    own = "Host: localhost:19000\nOrigin: http://localhost:19000\nSec-Fetch-Site: same-origin"
    assert ask(own) == 200
    assert ask("Host: localhost\nSec-Fetch-Site: none", "GET") == 200
    old = b"GET /a HTTP/1.0\r\n\r\n"  # as some health checks still ask
    assert serve(lambda port: exchange(port, old)).startswith(b"HTTP/1.1 200")


# --- where --------------------------------------------------------------------------------------------


def test_everywhere_is_both_families() -> None:
    async def talk(port: int) -> list[bytes]:
        request = b"GET /a HTTP/1.1\r\n" + CLOSE + b"\r\n"
        answers = []
        for host in ("127.0.0.1", "::1"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            answers.append(await reader.read())
            writer.close()
        return answers

    for answer in serve(talk, address=Address(EVERYWHERE, 0)):
        assert answer.startswith(b"HTTP/1.1 200")


def test_everywhere_without_ipv6_is_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def without(family: int, *more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *more)

    monkeypatch.setattr(socket, "socket", without)
    with bind_server(Address(EVERYWHERE, 0)) as sock:
        assert sock.getsockname()[0] == "0.0.0.0"
    with pytest.raises(OSError):
        bind_server(Address("::1", 0))
