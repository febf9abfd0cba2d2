"""TLS to a real Redis: who is believed, who is let in, and where the private key never is."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from edgefast import ir
from edgefast.rate_limit.error_reply import Refused
from edgefast.rate_limit.redis_tls import make_context
from proxy.pki import Authority, Pair, encrypted
from rate_limit.caller import Ask, calling, config_of
from rate_limit.servers import RedisServer, running

AUTHORITY = Authority()
STRANGER = Authority("another CA")
CLIENT = AUTHORITY.issue("edgefast")
CHECK = Ask(b"counter")


def _started(folder: Path, clients: str, *names: str) -> Any:
    pair = AUTHORITY.issue(*names)
    for name, content in (
        ("ca.pem", AUTHORITY.bundle),
        ("cert.pem", pair.certificate),
        ("key.pem", pair.key),
        ("client.pem", CLIENT.certificate),
        ("client.key", CLIENT.key),
    ):
        (folder / name).write_bytes(content)
    server = RedisServer(folder)
    options = ["--port", "0", "--tls-port", str(server.port)]
    options += ["--tls-cert-file", f"{folder}/cert.pem", "--tls-key-file", f"{folder}/key.pem"]
    options += ["--tls-ca-cert-file", f"{folder}/ca.pem", "--tls-auth-clients", clients]
    client = {
        "ssl": True,
        "ssl_ca_certs": f"{folder}/ca.pem",
        "ssl_certfile": f"{folder}/client.pem",
        "ssl_keyfile": f"{folder}/client.key",
        "ssl_check_hostname": False,
    }
    return running(folder, *options, port=server.port, **client)


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for 127.0.0.1 that wants a certificate of its clients."""
    with _started(tmp_path_factory.mktemp("mutual"), "yes", "127.0.0.1", "localhost") as server:
        yield server


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server whose certificate is for localhost only; it lets anybody in."""
    with _started(tmp_path_factory.mktemp("named"), "no", "localhost") as server:
        yield server


def _count(config: ir.RateLimitStore) -> None:
    async def talk() -> None:
        async with calling(config) as caller:
            for _ in range(3):
                assert (await caller.settled(Ask(b"tls", limit=2**32 - 1)))[0] == 1

    uvloop.run(talk())


def _refused(config: ir.RateLimitStore) -> str:
    async def talk() -> str:
        async with calling(config) as caller:
            return "; ".join(sorted(set(map(str, await caller.until_unavailable(CHECK)))))

    return uvloop.run(talk())


def _pair(pair: Pair) -> dict[str, bytes]:
    return {"certificate": pair.certificate, "private_key": pair.key}


def test_both_sides_show_certificates(mutual: RedisServer) -> None:
    _count(config_of(mutual.address, tls=True, ca=AUTHORITY.bundle, **_pair(CLIENT)))


def test_a_name_is_compared_with_the_certificate(named: RedisServer) -> None:
    _count(config_of(f"localhost:{named.port}", tls=True, ca=AUTHORITY.bundle))
    reason = _refused(config_of(named.address, tls=True, ca=AUTHORITY.bundle))
    assert reason.startswith("TLS: IP address mismatch"), reason


def test_a_stranger_is_not_believed(named: RedisServer) -> None:
    address = f"localhost:{named.port}"
    assert _refused(config_of(address, tls=True, ca=STRANGER.bundle)).startswith("TLS: ")
    assert _refused(config_of(address, tls=True)).startswith("TLS: "), "the system does not know it"


def test_without_a_certificate_nobody_is_let_in(mutual: RedisServer) -> None:
    config = config_of(mutual.address, tls=True, ca=AUTHORITY.bundle)
    # TLS 1.3 tells the client after its own handshake: as an alert, or as the end of the connection.
    assert _refused(config)
    wrong = config_of(
        mutual.address, tls=True, ca=AUTHORITY.bundle, **_pair(STRANGER.issue("edgefast"))
    )
    assert _refused(wrong)


def test_tls_where_there_is_none_and_none_where_there_is(
    server: RedisServer, named: RedisServer
) -> None:
    assert _refused(config_of(server.address, tls=True, ca=AUTHORITY.bundle, timeout=100))
    assert _refused(config_of(named.address, timeout=100))


def test_pem_that_cannot_be_used_is_said(server: RedisServer) -> None:
    address = server.address
    assert (
        _refused(config_of(address, tls=True, ca=b"nonsense"))
        == "TLS: the CA is not a list of PEM certificates"
    )
    other = STRANGER.issue("edgefast")
    for pair in (
        Pair(CLIENT.certificate, other.key),
        Pair(b"nonsense", CLIENT.key),
        Pair(CLIENT.certificate, b"nonsense"),
        encrypted(CLIENT),
    ):
        config = config_of(address, tls=True, ca=AUTHORITY.bundle, **_pair(pair))
        assert _refused(config) == "TLS: the client certificate or its key cannot be used"
        with pytest.raises(Refused):
            make_context(config)


def test_the_key_is_never_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def watch(context: ssl.SSLContext, certfile: str, *rest: Any, **more: Any) -> None:
        loaded.append(os.readlink(certfile))
        load(context, certfile, *rest, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watch)
    before = set(os.listdir("/proc/self/fd"))
    context = make_context(config_of("a:1", tls=True, ca=AUTHORITY.bundle, **_pair(CLIENT)))
    assert [name.split()[0] for name in loaded] == ["/memfd:edgefast-store-key"]
    assert set(os.listdir("/proc/self/fd")) == before, "and it is closed"
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
