"""One fetch against servers that answer well, badly, too much, too late or not at all."""

from __future__ import annotations

import asyncio
import re
import ssl
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgefast import ir
from edgefast.auth.jwt.key_set import SET_LIMIT
from edgefast.ir.credentials import RemoteKeys
from edgefast.netaddr import ANY_NETWORK
from edgefast.proxy.jwks.http_fetch import FetchError, fetch
from edgefast.proxy.jwks.target import Target, find_target
from edgefast.rate_limit.names import Names
from proxy.pki import Authority, Pair

pytestmark = pytest.mark.wire

AUTHORITY = Authority()
BODY = b'{"keys":[]}'
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n" + BODY


def context(pair: Pair, *, client: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        made.load_cert_chain(file.name)
    if client:
        made.load_verify_locations(cadata=AUTHORITY.bundle.decode())
        made.verify_mode = ssl.CERT_REQUIRED
    return made


class Server:
    """Answers each request with these bytes, then closes or waits."""

    def __init__(
        self,
        answer: bytes,
        *,
        closes: bool = True,
        hears: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._closes = closes
        self._hears = hears
        self._tls = tls
        self.requests: list[bytes] = []
        self.port = 0

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._hears:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(self._answer)
            await writer.drain()
            if not self._closes:
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort() if not self._closes else writer.close()


def target(*servers: Server, tls: ir.UpstreamTls | None = None, secrets: Any = None) -> Target:
    endpoints = tuple(ir.Endpoint("127.0.0.1", one.port) for one in servers)
    cluster = ir.Cluster(name="c", endpoints=endpoints, tls=tls)
    return find_target(RemoteKeys("http://idp.ns:8080/keys?x=1", "c"), cluster, (secrets or {}).get)


async def said(answer: bytes, *, closes: bool = True, deadline: float = 30.0) -> str:
    """Return what is said of this answer."""
    async with Server(answer, closes=closes) as server:
        with pytest.raises(FetchError) as error:
            await fetch(target(server), Names(), deadline)
    return str(error.value)


async def test_what_is_asked() -> None:
    async with Server(GOOD) as server:
        assert await fetch(target(server), Names()) == BODY
    (request,) = server.requests
    assert request.startswith(b"GET /keys?x=1 HTTP/1.1\r\n")
    assert b"\r\nhost: idp.ns:8080\r\n" in request.lower()


@pytest.mark.parametrize("by_cluster", [True, False])
async def test_a_name_that_resolves_to_a_refused_address(by_cluster: bool) -> None:
    """At each fetch: a name is harmless when its policy is checked, and may point anywhere later."""
    async with Server(GOOD) as server:
        endpoints = (ir.Endpoint(hostname="localhost", port=server.port),)
        cluster = ir.Cluster(name="c", endpoints=endpoints, allowed=("127.0.0.8/29",))
        spec = RemoteKeys("http://idp.ns/keys", "c")
        if not by_cluster:
            spec = RemoteKeys(f"https://localhost:{server.port}/keys", allowed=("10.0.0.0/8",))
        found = find_target(spec, cluster, {}.get)
        with pytest.raises(FetchError, match="not allowed as a backend"):
            await fetch(found, Names())
        assert not server.requests
        if by_cluster:
            cluster = msgspec.structs.replace(cluster, allowed=("127.0.0.0/8", "::1/128"))
            assert await fetch(find_target(spec, cluster, {}.get), Names()) == BODY


async def test_servers_of_the_proxy_are_not_asked() -> None:
    async with Server(GOOD) as server:
        with pytest.raises(FetchError, match="is a server of this proxy"):
            await fetch(target(server), Names(), own_ports=(server.port,))
        assert not server.requests


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + GOOD,
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"key\r\n6\r\ns":[]}\r\n0\r\n\r\n',
        b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\n\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    ],
)
async def test_answers_that_are_taken(answer: bytes) -> None:
    async with Server(answer) as server:
        assert await fetch(target(server), Names()) == BODY


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://evil.test/\r\ncontent-length: 0\r\n\r\n",
            r"redirect \(302\)",
        ),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", r"redirect \(304\)"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx", "compressed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n" + BODY, "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "the answer is not HTTP|closed before"),
        (b"SSH-2.0-OpenSSH_9\r\n", "the answer is not HTTP"),
        (b"", "the answer is not HTTP|closed before"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + GOOD, "too many informational answers"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 5000, "the answer is not HTTP"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n" + b" " * (SET_LIMIT + 1),
            "more than 1048576",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (SET_LIMIT + 1), "more than 1048576"),
    ],
)
async def test_answers_that_are_not(answer: bytes, why: str) -> None:
    assert re.search(why, await said(answer))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", GOOD[:-1]])
async def test_silence_has_an_end(answer: bytes) -> None:
    assert await said(answer, closes=False, deadline=0.05) == "no answer within 0.05 s"


async def test_the_next_endpoint_is_tried_when_one_does_not_listen() -> None:
    async with Server(GOOD) as gone:
        pass
    async with Server(GOOD) as server:
        assert await fetch(target(gone, server), Names()) == BODY
    with pytest.raises(FetchError, match="refused"):
        await fetch(target(gone), Names())


async def test_a_unix_socket(tmp_path: Path) -> None:
    server = Server(GOOD)
    path = str(tmp_path / "s")
    listening = await asyncio.start_unix_server(server._serve, path)
    cluster = ir.Cluster(name="c", endpoints=(ir.Endpoint(path),))
    asked = find_target(RemoteKeys("http://idp/keys", "c"), cluster, {}.get)
    try:
        assert await fetch(asked, Names()) == BODY
    finally:
        listening.close()


async def test_a_name_that_is_none() -> None:
    cluster = ir.Cluster(name="c", endpoints=(ir.Endpoint(hostname="x" * 64 + ".test", port=80),))
    asked = find_target(RemoteKeys("http://idp/keys", "c"), cluster, {}.get)
    with pytest.raises(FetchError):
        await fetch(asked, Names())


SECRETS = {
    "ca": ir.Secret("ca", ca=AUTHORITY.bundle),
    "pair": ir.Secret(
        "pair", **dict(zip(("certificate", "private_key"), AUTHORITY.issue("me.test"), strict=True))
    ),
}


@pytest.mark.parametrize(
    ("tls", "why"),
    [
        (ir.UpstreamTls(sni="idp.test", ca="ca"), ""),
        (ir.UpstreamTls(sni="other.test", ca="ca"), "certificate is not trusted"),
        (ir.UpstreamTls(sni="idp.test"), "certificate is not trusted"),
        (ir.UpstreamTls(sni="other.test", ca="ca", sans=(("Hostname", "idp.test"),)), ""),
        (ir.UpstreamTls(sni="idp.test", ca="ca", sans=(("URI", "spiffe://idp"),)), ""),
        (
            ir.UpstreamTls(sni="idp.test", ca="ca", sans=(("Hostname", "other.test"),)),
            "does not contain a required name",
        ),
        (
            ir.UpstreamTls(sni="idp.test", sans=(("Hostname", "idp.test"),)),
            "certificate is not trusted",
        ),
    ],
)
async def test_who_may_answer(tls: ir.UpstreamTls, why: str) -> None:
    pair = AUTHORITY.issue("idp.test", uris=("spiffe://idp",))
    async with Server(GOOD, tls=context(pair)) as server:
        asked = target(server, tls=tls, secrets=SECRETS)
        if not why:
            assert await fetch(asked, Names()) == BODY
            return
        with pytest.raises(FetchError, match=why):
            await fetch(asked, Names())
    assert server.requests == [], "nothing was asked of it"


async def test_a_certificate_of_ours() -> None:
    async with Server(GOOD, tls=context(AUTHORITY.issue("idp.test"), client=True)) as server:
        tls = ir.UpstreamTls(sni="idp.test", ca="ca", certificate="pair")
        assert await fetch(target(server, tls=tls, secrets=SECRETS), Names()) == BODY
        with pytest.raises(FetchError):
            bare = ir.UpstreamTls(sni="idp.test", ca="ca")
            await fetch(target(server, tls=bare, secrets=SECRETS), Names())


async def test_the_systems_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(AUTHORITY.bundle)
    async with Server(GOOD, tls=context(AUTHORITY.issue("localhost"))) as server:
        spec = RemoteKeys(f"https://localhost:{server.port}/keys", allowed=ANY_NETWORK)
        with pytest.raises(FetchError, match="not trusted"):
            await fetch(find_target(spec, None, {}.get), Names())
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        assert await fetch(find_target(spec, None, {}.get), Names()) == BODY


async def test_plain_text_where_tls_is_asked_for() -> None:
    async with Server(GOOD, hears=False) as server:
        tls = ir.UpstreamTls(sni="idp.test", ca="ca")
        with pytest.raises(FetchError, match="TLS failed|closed|reset|is not HTTP"):
            await fetch(target(server, tls=tls, secrets=SECRETS), Names())
