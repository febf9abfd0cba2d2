"""The client against a real server: whom it connects to and what it shows, over gRPC, TLS and loopback."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from edgefast.xds import client as clients
from edgefast.xds import limits
from edgefast.xds.client import XdsClient
from proxy.pki import Authority
from xds.living import NODE, Taker, hasten, running, until, write_files
from xds.plain import PlainServer, client_pair
from xds.tables import table

pytestmark = pytest.mark.wire


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


async def test_credentials_are_read_for_every_connection(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    stranger = Authority("another CA")
    # Wrong at first: an authority that did not sign the server, nor is known to it.
    files = write_files(tmp_path, stranger, token="first")
    async with PlainServer(authority, mutual=True) as server:
        server.publish(table(a="1"))
        async with running(server.target, files, taker) as client:
            await until(lambda: client.facts.failures > 1, "refused handshakes")
            assert not server.streams
            write_files(tmp_path, authority, token="second")
            await until(lambda: taker.tables, "a table")
            first = server.last
            assert first.metadata["authorization"] == "Bearer second"
            before = first.peer["x509_pem_cert"][0]
            write_files(tmp_path, authority, client_pair(authority), token="third\n")
            first.leave.set()
            await until(lambda: len(server.streams) == 2, "the next stream")
            assert server.last.metadata["authorization"] == "Bearer third"
            assert server.last.peer["x509_pem_cert"][0] != before


async def test_a_missing_file_is_named_and_waited_for(tmp_path: Path, authority: Authority) -> None:
    taker = Taker()
    files = write_files(tmp_path, authority)
    (tmp_path / "tls.key").rename(tmp_path / "away")
    async with PlainServer(authority, mutual=True) as server:
        server.publish(table(a="1"))
        async with running(server.target, files, taker) as client:
            await until(lambda: client.facts.failures > 1, "failures")
            assert f"{tmp_path / 'tls.key'}: No such file" in client.facts.failed
            (tmp_path / "away").rename(tmp_path / "tls.key")
            await until(lambda: taker.tables, "a table")


@pytest.mark.parametrize("name", ["other.test", "localhost"])
async def test_the_server_is_who_it_should_be(
    tmp_path: Path, authority: Authority, name: str
) -> None:
    taker = Taker()
    files = write_files(tmp_path, authority)
    async with PlainServer(authority, name="localhost") as server:
        server.publish(table(a="1"))
        async with running(server.target, files, taker, server_name=name) as client:
            if name == "localhost":
                await until(lambda: taker.tables, "a table")
            else:
                await until(lambda: client.facts.failures > 1, "refusals")
                assert not server.streams


async def test_a_server_without_our_certificate_is_refused(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    stranger = Authority("stranger")
    async with PlainServer(stranger) as server:
        server.publish(table(a="1"))
        files = write_files(tmp_path, authority)
        async with running(server.target, files, taker) as client:
            await until(lambda: client.facts.failures > 1, "refusals")
            assert not server.streams and not taker.tables


async def test_of_several_addresses_one_that_answers(tmp_path: Path, authority: Authority) -> None:
    taker = Taker()
    files = write_files(tmp_path, authority)
    gone = PlainServer(authority)
    async with gone:
        pass
    async with PlainServer(authority) as server:
        server.publish(table(a="1"))
        target = f"ipv4:127.0.0.1:{gone.port},127.0.0.1:{server.port}"
        async with running(target, files, taker, server_name="localhost") as client:
            await until(lambda: taker.tables, "a table")
            assert client.facts.connected


def test_credentials_never_show(tmp_path: Path, authority: Authority) -> None:
    shown = repr(write_files(tmp_path, authority, token="s3cret").read())
    assert "s3cret" not in shown and "PRIVATE" not in shown


def test_another_replica_is_followed_within_ten_seconds() -> None:
    """A stopped controller answers no ping; the Service may select it once more before it selects another one."""
    silence = limits.KEEPALIVE_TIME + limits.KEEPALIVE_TIMEOUT
    assert (
        silence + clients._BACKOFF_FIRST + clients._CONNECT_FIRST + 2 * clients._BACKOFF_FIRST < 10
    )
    assert limits.KEEPALIVE_MINIMUM < limits.KEEPALIVE_TIME


@pytest.mark.parametrize("reached", [False, True])
def test_a_server_that_comes_back_has_its_proxies_soon(
    monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    """While no server answers, the wait is at most 2 s; a server that answers and refuses gets fewer requests."""
    monkeypatch.undo()
    client = XdsClient("ipv4:127.0.0.1:1", lambda: pytest.fail("not read"), NODE, Taker())
    client._reached = reached
    delays = [client._next_delay() for _ in range(12)]
    assert delays[0] <= 0.2 and 1.0 <= max(delays[6:]) <= (15.0 if reached else 2.0)
    assert reached == (max(delays) > 2.0)


async def test_a_server_that_accepts_and_says_nothing_is_left_soon(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_CONNECT_FIRST", 0.2)

    taker = Taker()
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        target = f"ipv4:127.0.0.1:{stopped.getsockname()[1]}"
        async with running(target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: client.facts.failures > 1, "two tries")
            assert not client._reached and client._patience > 0.4
