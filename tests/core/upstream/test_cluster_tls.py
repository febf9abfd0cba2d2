"""TLS towards backends while the cluster's settings change: old connections are not used again, nothing goes out in plain."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator

import pytest

from core.backend import make_response, say
from core.certificates import Site
from core.client import make_request
from core.conftest import check
from core.fleets import CLUSTER, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.logs import text_log
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext


@pytest.fixture(scope="module")
def site() -> Site:
    return Site("a.test", "b.test")


@pytest.fixture(scope="module")
def old() -> Site:
    return Site("old.test", seconds=-60)


@pytest.fixture
def secure(site: Site, old: Site) -> Iterator[World]:
    """A world that knows a context for every name."""
    contexts: dict[str, TlsContext] = {}

    def give(tls: ir.UpstreamTls) -> TlsContext:
        return contexts.setdefault(tls.sni, (old if tls.sni == "old.test" else site).dialler())

    yield from check(World(upstream_tls=give))


A, B = ir.UpstreamTls(sni="a.test"), ir.UpstreamTls(sni="b.test")


async def test_new_tls_settings_get_new_connections(secure: World, site: Site) -> None:
    backend = await secure.backend(say("x"), site.server())
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A)))
    client = await secure.client(port)
    for _ in range(3):
        assert (await client.get()).status == 200
    assert len(backend.links) == 1
    secure.apply(make_fleet(make_cluster(backend.port, tls=B)))
    assert (await client.get()).status == 200
    assert len(backend.links) == 2
    await secure.until(lambda: len(backend.open) == 1, "the old connection is closed")


async def test_many_new_connections_at_once(secure: World, site: Site) -> None:
    """More than a turn takes steps for: the others have theirs in the next ones."""
    backend = await secure.backend(say("x"), site.server())
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A)))
    clients = [await secure.client(port) for _ in range(40)]
    answers = await asyncio.gather(*(client.get() for client in clients))
    assert {answer.status for answer in answers} == {200}


async def test_connections_in_use_do_not_outlive_their_tls_settings(
    secure: World, site: Site
) -> None:
    backend = await secure.backend(None, site.server())
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=A)))
    client = await secure.client(port)
    await client.send(make_request("/1"))
    call = await backend.call()
    secure.apply(make_fleet(make_cluster(backend.port, tls=B)))
    call.reply(b"1")
    assert (await client.response()).body == b"1"
    await client.send(make_request("/2"))
    second = await backend.call()
    assert second.link is not call.link
    second.reply(b"2")
    assert (await client.response()).body == b"2"


async def test_tls_settings_go_away(secure: World, site: Site) -> None:
    crypted, plain = await secure.backend(say("tls"), site.server()), await secure.backend(say("x"))
    port = await secure.serve(make_fleet(make_cluster(crypted.port, tls=A)))
    client = await secure.client(port)
    assert (await client.get()).body == b"tls"
    secure.apply(make_fleet(make_cluster(crypted.port)))
    await secure.until(lambda: crypted.open == [], "its connections are closed")
    secure.apply(make_fleet(make_cluster(plain.port)))
    assert (await client.get()).body == b"x"


async def test_a_backend_with_another_name_is_not_believed(secure: World, site: Site) -> None:
    backend = await secure.backend(say("x"), site.server())
    wrong = ir.UpstreamTls(sni="c.test")
    port = await secure.serve(make_fleet(make_cluster(backend.port, tls=wrong)))
    answer = await (await secure.client(port)).get()
    assert (answer.status, answer.body) == (503, b"the backend could not be reached\n")
    assert backend.count == 0
    assert secure.counters["upstream_connect_failures"] >= 1


@pytest.mark.parametrize(
    "reason",
    [
        "certificate_name_mismatch",
        "certificate_expired",
        "certificate_unknown_authority",
        "handshake_refused",
        "protocol",
        "closed",
    ],
)
async def test_a_failed_handshake_has_a_reason(
    secure: World, site: Site, old: Site, reason: str
) -> None:
    """The access log and a counter by cluster give the reason; no other reason is counted."""
    shown = {
        "certificate_expired": old,
        "certificate_unknown_authority": Site("a.test"),
    }.get(reason, site)
    name = {"certificate_expired": "old.test", "certificate_name_mismatch": "c.test"}.get(reason)
    raw = {
        "protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "closed": b"",
        "handshake_refused": bytes([21, 3, 3, 0, 2, 2, 40]),
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(raw[reason])
        writer.close()

    plain = await asyncio.start_server(answer, "127.0.0.1", 0)
    crypted = await secure.backend(say("x"), shown.server())
    number = plain.sockets[0].getsockname()[1] if reason in raw else crypted.port
    cluster = make_cluster(number, tls=ir.UpstreamTls(sni=name or "a.test"))
    text = text_log("%UPSTREAM_TLS_FAILURE_REASON% %UPSTREAM_TRANSPORT_FAILURE_REASON%")
    rest = make_host(make_rule()), cluster
    port = await secure.serve(make_fleet(make_listener(log=text), *rest))
    assert (await (await secure.client(port)).get()).status == 503
    secure.apply(make_fleet(make_listener(), *rest))
    assert (await (await secure.client(port)).get()).status == 503
    first, second = secure.texts()
    assert first == f"{reason} tls_error"
    assert json.loads(second)["upstream_tls_failure"] == reason
    assert secure.counters.tls_failures() == {f"{CLUSTER}\t{reason}": 2}
    plain.close()


async def test_settings_that_change_during_a_handshake_send_nothing_in_plain(
    secure: World, site: Site
) -> None:
    """The handshake is held back until the cluster speaks plain HTTP; what is dialled as TLS stays TLS."""
    seen = bytearray()
    held = asyncio.Event()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = site.server().wrap_bio(incoming, outgoing, server_side=True)
    plain = bytearray()

    async def shake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(65536)
        held.set()
        await go.wait()
        incoming.write(first)
        try:
            while True:
                try:
                    plain.extend(tls.read(65536))
                    if b"\r\n\r\n" in plain:
                        tls.write(make_response(b"tls"))
                except ssl.SSLWantReadError:
                    pass
                if outgoing.pending:
                    writer.write(outgoing.read())
                data = await reader.read(65536)
                if not data:
                    break
                seen.extend(data)
                incoming.write(data)
        except (ssl.SSLError, OSError):
            pass
        writer.close()

    go = asyncio.Event()
    server = await asyncio.start_server(shake, "127.0.0.1", 0)
    number = server.sockets[0].getsockname()[1]
    port = await secure.serve(make_fleet(make_cluster(number, tls=A)))
    client = await secure.client(port)
    await client.send(make_request("/secret"))
    await held.wait()
    secure.apply(make_fleet(make_cluster(number)))
    go.set()
    await client.response()
    server.close()
    assert b"/secret" not in seen
