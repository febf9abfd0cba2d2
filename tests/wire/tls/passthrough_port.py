"""A proxy with one port of TLS that is passed through, to an HTTPS port of another proxy.

In: the port behind it, which runs already. Out: clients of it, whose handshakes are with the backend.
"""

from __future__ import annotations

import ssl

from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.tls.port import NAME, TlsPort


class PassthroughPort(Gateway):
    """Use as a context manager."""

    def __init__(self, behind: TlsPort) -> None:
        self.port = free_port()
        self._behind = behind
        listener = make.listener(self.port, "tls", protocol="TLS", tls={"mode": "Passthrough"})
        route = make.route("all", [make.rule("behind")], [NAME])
        objects = [
            make.gateway("web", [listener]),
            route | {"kind": "TLSRoute"},
            *make.service("behind", [("127.0.0.1", behind.port)]),
        ]
        super().__init__(objects)

    def client(self, context: ssl.SSLContext | None = None) -> Client:
        """A connection with HTTP/1.1 inside of the backend's TLS."""
        tls = context or self._behind.context()
        return Client(("127.0.0.1", self.port), tls=tls, sni=NAME)

    def ask(self) -> int:
        """Status of a request on a new connection."""
        with self.client() as client:
            return client.request("GET", "/", NAME).status
