"""Backends of the layer 4 example: what answers datagrams, and the TLS that such a backend has itself.

In: the name of a Service. Out: to each datagram one of JSON that tells what came, to whom it came from; a TLS context with a throw-away
certificate, whose key is in a file for no longer than it is read. It is for trying: it keeps nothing, and nobody has reason to trust it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

from make_cert import make_pair


def make_context(service: str) -> ssl.SSLContext:
    """TLS as `service`.example.com."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("certificate", "key")]
        for path, text in zip(paths, make_pair([f"{service}.example.com"]), strict=True):
            path.write_bytes(text)
        context.load_cert_chain(paths[0], paths[1])
    return context


class Datagrams(asyncio.DatagramProtocol):
    """A server of UDP."""

    def __init__(self, service: str, endpoint: str) -> None:
        self._reported = {"service": service, "endpoint": endpoint}
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        told = {**self._reported, "text": data.decode("utf-8", "replace")}
        self._transport.sendto(json.dumps(told).encode() + b"\n", addr)
