"""Http: ways to a server: its addresses, proxies by their address alone, servers that speak too early; on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controller.certs.authority_set import make_authority_set
from controller.certs.issue import issue_server
from controller.kube import http as module
from controller.kube.access import Plain
from tests.controller.kube.test_http import both_loops
from tests.controller.waiting import until

from .test_http import OK, ask, client, listening, serving


@contextlib.contextmanager
def swallowing() -> Iterator[tuple[str, int]]:
    """Give an address that never answers a connect: its queue is full, and nobody accepts."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    """Let every name have these addresses, on the loop that runs."""

    async def resolve(host: str, port: int, **_: object) -> list[Any]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        # uvloop asks for numbers, too.
        found = [(host, port)] if host[0].isdigit() else addresses
        return [(*kind, one) for one in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)


@both_loops
async def test_an_address_that_is_silent_leaves_time_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CONNECT_TIMEOUT", 1.0)
    with swallowing() as silent:
        async with serving() as server, client(Plain("http://api.example")) as http:
            resolve_to(monkeypatch, silent, ("127.0.0.1", server.port))
            assert await ask(http) == "200 ok"
        async with client(Plain("http://api.example")) as http:
            resolve_to(monkeypatch, *[silent] * 1000)  # of which a few are tried
            with pytest.raises(TimeoutError):
                await ask(http)


@pytest.mark.parametrize("named", ["127.0.0.1:{}", "localhost:{}", "u:p@localhost:{}"])
@both_loops
async def test_a_proxy_may_be_named_by_its_address_alone(named: str) -> None:
    async with serving() as proxy:
        access = Plain("http://api.example")
        access.proxy = named.format(proxy.port)
        async with client(access) as http:
            assert await ask(http) == "200 ok"
        assert proxy.requests[0][0].startswith(b"GET http://api.example/x HTTP/1.1\r\n")
        assert (b"Proxy-Authorization: " in proxy.requests[0][0]) == ("@" in named)


@both_loops
async def test_a_server_that_speaks_with_its_handshake_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    authority = make_authority_set("ns", datetime.now(UTC)).current
    pair = issue_server(
        authority, namespace="ns", name="api", domain="example", now=datetime.now(UTC)
    )
    (tmp_path / "crt").write_text(pair.certificate_pem)
    (tmp_path / "key").write_text(pair.key_pem)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    served.maximum_version = ssl.TLSVersion.TLSv1_2  # there the last flight is the server's

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = served.wrap_bio(came, going, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(going.read())
                came.write(await reader.read(65536))
        tls.write(OK)
        writer.write(going.read())  # both at once
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    access = Plain("https://api.ns:6443")
    access.tls = ssl.create_default_context(cadata=authority.certificate_pem)
    async with listening(serve) as port, client(access) as http:
        with pytest.MonkeyPatch.context() as patched:
            resolve_to(patched, ("127.0.0.1", port))
            wire = await http._connect()
        await until(lambda: wire.lost)
        assert not http._open
