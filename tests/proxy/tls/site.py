"""One HTTPS port of a real engine, and handshakes with it, for tests of who answers whom.

In: listeners, secrets. Out: what a client knows after a handshake and one answered request. Must never be shared by tests.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Coroutine
from typing import Any

from cryptography import x509

from core.fleets import PORT, make_fleet, make_host, make_listener
from core.world import World
from edgefast import ir
from edgefast.core import TlsContext
from edgefast.proxy.tls.server import ServerPort, ServerTls
from proxy.pki import Authority, Pair

CA = Authority()
OTHER_CA = Authority("other CA")
CERTIFICATE_REQUEST = 13  # RFC 8446 4


def secret(name: str, pair: Pair, ca: bytes = b"") -> ir.Secret:
    """A pair under a name."""
    return ir.Secret(name=name, certificate=pair.certificate, private_key=pair.key, ca=ca)


def listener(hostname: str, *certificates: str, port: int = 443, **tls: object) -> ir.Listener:
    """An HTTPS listener."""
    return ir.Listener(
        name=f"default/gateway/{hostname}",
        port=port,
        bind_port=port,
        protocol="HTTPS",
        hostname=hostname,
        tls=ir.ListenerTls(certificates=certificates, **tls),  # type: ignore[arg-type]
    )


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Show a pair."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)


def client(bundle: bytes = CA.bundle, pair: Pair | None = None) -> ssl.SSLContext:
    """A client that verifies."""
    context = ssl.create_default_context(cadata=bundle.decode())
    context.set_alpn_protocols(["http/1.1"])
    if pair is not None:
        load(context, pair)
    return context


def adopt(*listeners: ir.Listener, **secrets: ir.Secret) -> ServerPort:
    """The one port of these listeners."""
    ports = ServerTls().adopt(listeners, secrets, frozenset(secrets))
    assert list(ports) == [(443, ())]
    return ports[443, ()]


async def within_deadline(work: Coroutine[Any, Any, Any]) -> Any:
    """Let no test hang."""
    async with asyncio.timeout(60):
        return await work


class Handshake:
    """What a client knows after a handshake, and the session it was given."""

    def __init__(self, sock: ssl.SSLObject, asked: bool) -> None:
        self.client = sock
        self.asked = asked  # for a certificate
        self.session = sock.session
        self.reused = bool(sock.session_reused)

    @property
    def names(self) -> set[str]:
        """DNS names of the certificate that the server showed."""
        der = self.client.getpeercert(binary_form=True)
        assert der is not None
        certificate = x509.load_der_x509_certificate(der)
        san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return set(san.value.get_values_for_type(x509.DNSName))


class Server:
    """An engine that answers each request on its port with 204."""

    def __init__(self, port: ServerPort) -> None:
        self.port = port  # may be replaced: for new handshakes
        self.world = World()
        self.world.apply(
            make_fleet(
                make_listener(protocol="HTTPS"),
                make_host(ir.Rule(route="ns/web", index=0, status=204)),
            )
        )
        self._place = self._run(self.world.listen(PORT, self._choose))

    def _choose(self, name: str) -> TlsContext | None:
        return self.port.choose(name)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.loop.run_until_complete(within_deadline(work))

    def shake(
        self,
        context: ssl.SSLContext,
        name: str | None,
        session: ssl.SSLSession | None = None,
    ) -> Handshake:
        """A handshake and a request. Raises ssl.SSLError, ConnectionError or EOFError where the server ends it."""
        done: Handshake = self._run(self._shake(context, name, session))
        return done

    async def _shake(
        self, context: ssl.SSLContext, name: str | None, session: ssl.SSLSession | None
    ) -> Handshake:
        asked: list[object] = []

        def note(_: object, direction: str, *rest: object) -> None:
            if direction == "read" and rest[2] == CERTIFICATE_REQUEST:
                asked.append(rest)

        context._msg_callback = note  # type: ignore[attr-defined]
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(to_client, to_server, server_hostname=name, session=session)
        loop = asyncio.get_running_loop()
        with socket.socket() as sock:
            sock.setblocking(False)
            await loop.sock_connect(sock, ("127.0.0.1", self._place))

            async def drive(step: Any) -> Any:
                while True:
                    try:
                        result = step()
                    except ssl.SSLWantReadError:
                        result = None
                    await loop.sock_sendall(sock, to_server.read())
                    if result is not None:
                        return result
                    data = await loop.sock_recv(sock, 65536)
                    if not data:
                        raise EOFError
                    to_client.write(data)

            await drive(lambda: tls.do_handshake() or True)
            tls.write(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            answer = await drive(lambda: tls.read(4096))
            assert answer.startswith(b"HTTP/1.1 204")
            return Handshake(tls, bool(asked))

    def close(self) -> None:
        """Check that nothing is left, and end."""
        try:
            self._run(self.world.finish())
        finally:
            self.world.close()
