"""Http: connections that are kept, lost, tunnelled; on loopback with servers that say what a test wants."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller.certs.authority_set import make_authority_set
from controller.certs.issue import issue_server
from controller.kube.access import Plain
from controller.kube.http import Http
from controller.kube.wire import Broken

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """What came, by connection."""

    def __init__(self) -> None:
        self.requests: list[list[bytes]] = []
        self.port = 0

    async def read(self, reader: asyncio.StreamReader, mine: list[bytes]) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(one[16:]) for one in lines if one.startswith(b"content-length: ")), 0)
        mine.append(head + await reader.readexactly(length))
        return mine[-1]


both_loops = pytest.mark.usefixtures("loop_factory")


@contextlib.asynccontextmanager
async def serving(
    answers: int = 1_000_000, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Answer that many requests of each connection, and close it at the next one."""
    made = Server()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine: list[bytes] = []
        made.requests.append(mine)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await made.read(reader, mine)
                if len(mine) > answers:
                    break
                writer.write(OK)
        writer.close()

    async with listening(serve, tls) as port:
        made.port = port
        yield made


@contextlib.asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    open_: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_[task] = writer
        await serve(reader, writer)

    server = await asyncio.start_server(note, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_.values():
            writer.transport.abort()
        await asyncio.gather(*open_, return_exceptions=True)


@contextlib.asynccontextmanager
async def client(access: Plain) -> AsyncIterator[Http]:
    made = Http(access, {"User-Agent": "tests"})
    try:
        yield made
    finally:
        await made.close()


async def ask(http: Http, method: str = "GET", path: str = "/x", body: bytes | None = None) -> str:
    answer = await http.send(method, path, {}, body)
    said = await answer.read()
    while more := await answer.read():
        said += more
    answer.leave()
    return f"{answer.status} {said.decode()}"


@both_loops
async def test_a_connection_is_used_again_and_none_for_two_at_once() -> None:
    async with serving() as server, client(Plain(f"http://127.0.0.1:{server.port}")) as http:
        for _ in range(3):
            assert await ask(http) == "200 ok"
        assert [len(one) for one in server.requests] == [3]
        assert await ask(http, "PATCH", "/y", b"{}") == "200 ok"
        assert server.requests[0][-1].startswith(b"PATCH /y HTTP/1.1\r\nHost: 127.0.0.1:")
        assert server.requests[0][-1].endswith(b"Content-Length: 2\r\n\r\n{}")
        await asyncio.gather(*(ask(http) for _ in range(4)))
        assert len(server.requests) == 4


@both_loops
async def test_what_only_reads_is_asked_again_on_a_new_connection_and_nothing_else() -> None:
    async with serving(1) as server, client(Plain(f"http://127.0.0.1:{server.port}")) as http:
        assert await ask(http) == "200 ok"
        assert await ask(http) == "200 ok"  # the server closed the first one instead of an answer
        assert [len(one) for one in server.requests] == [2, 1]
        with pytest.raises(Broken):
            await ask(http, "PATCH", body=b"{}")
        assert [len(one) for one in server.requests] == [2, 2]
    async with serving(0) as server, client(Plain(f"http://127.0.0.1:{server.port}")) as http:
        with pytest.raises(Broken):
            await ask(http)  # a new connection: there is no reason why another one should do better
        assert [len(one) for one in server.requests] == [1]


@both_loops
async def test_a_call_that_is_cancelled_takes_its_connection_with_it() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        gone.set()
        writer.close()

    async with listening(serve) as port, client(Plain(f"http://127.0.0.1:{port}")) as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(http)
        # The request is read to its end only if nobody holds the connection.
        await gone.wait()
        assert not http._open


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/é"])
@both_loops
async def test_nothing_is_sent_that_would_be_read_otherwise(path: str) -> None:
    async with serving() as server, client(Plain(f"http://127.0.0.1:{server.port}")) as http:
        with pytest.raises(Broken):
            await ask(http, path=path)
        with pytest.raises(Broken):
            await http.send("GET", "/", {"Authorization": "Bearer a\nb"}, None)
        assert not server.requests


@both_loops
async def test_a_proxy_is_asked_for_the_whole_address() -> None:
    async with serving() as proxy:
        access = Plain("http://api.example:8080/prefix")
        access.proxy = f"http://user:p%40ss@127.0.0.1:{proxy.port}"
        async with client(access) as http:
            assert await ask(http) == "200 ok"
        (said,) = proxy.requests[0]
        assert said.startswith(b"GET http://api.example:8080/prefix/x HTTP/1.1\r\n")
        assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:p@ss") in said


@both_loops
async def test_a_tunnel_leads_to_the_server_that_was_meant(tmp_path: Path) -> None:
    authority = make_authority_set("ns", datetime.now(UTC)).current
    pair = issue_server(
        authority, namespace="ns", name="api", domain="example", now=datetime.now(UTC)
    )
    (tmp_path / "crt").write_text(pair.certificate_pem)
    (tmp_path / "key").write_text(pair.key_pem)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    told: list[bytes] = []
    async with serving(tls=served) as server:

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.append(await reader.readuntil(b"\r\n\r\n"))
            if b"closed.ns" in told[-1]:
                writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                writer.close()
                return
            there = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n")
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))

        async with listening(tunnel) as port:

            def through(host: str, name: str | None = None) -> Plain:
                access = Plain(f"https://{host}:6443")
                access.proxy = f"http://127.0.0.1:{port}"
                access.tls = ssl.create_default_context(cadata=authority.certificate_pem)
                access.server_name = name
                return access

            async with client(through("api.ns")) as http:
                assert await ask(http) == "200 ok"
                assert await ask(http) == "200 ok"
            assert told[0].startswith(b"CONNECT api.ns:6443 HTTP/1.1\r\nHost: api.ns:6443\r\n")
            assert len(told) == len(server.requests) == 1
            async with client(through("10.0.0.1", "api.ns")) as http:
                assert await ask(http) == "200 ok"
            async with client(through("other.ns")) as http:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await ask(http)
            async with client(through("closed.ns")) as http:
                with pytest.raises(OSError, match="403 Forbidden"):
                    await ask(http)


@pytest.mark.parametrize("scheme", ["https", "socks5"])
@both_loops
async def test_a_proxy_of_another_kind_is_refused_with_words(scheme: str) -> None:
    access = Plain("http://api.example")
    access.proxy = f"{scheme}://127.0.0.1:1"
    async with client(access) as http:
        with pytest.raises(OSError, match=f"{scheme}:// cannot be used"):
            await ask(http)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()
