"""A backend for hours: answers at once, switches protocols and echoes, keeps nothing of what it saw.

In: connections from a proxy. Out: 200 with the path as body, or 101 and an echo; datagrams come back. One thread with a loop of its own.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Self, cast

SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


class _Link(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self) -> None:
        self._head = b""
        self._body = 0  # bytes still to come
        self._echoes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        while data and not self._echoes:
            if self._body:
                taken = min(self._body, len(data))
                self._body -= taken
                data = data[taken:]
                continue
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._head = b""
            self._answer(head)
        if data:
            self.transport.write(data)

    def _answer(self, head: bytes) -> None:
        lines = head.split(b"\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in lines[1:])
        self._body = int(fields.get(b"content-length", b"0"))
        if b"upgrade" in fields:
            self._echoes = True
            self.transport.write(SWITCH)
            return
        path = lines[0].split(b" ")[1]
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(data, addr)


class SoakOrigin:
    """Use as a context manager; `port` and `udp_port` are what a backend needs."""

    port = 0
    udp_port = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        starting = self._loop.create_server(_Link, "127.0.0.1", 0, backlog=1024)
        self._server = self._loop.run_until_complete(starting)
        self.port = self._server.sockets[0].getsockname()[1]
        echoing = self._loop.create_datagram_endpoint(_Echo, local_addr=("127.0.0.1", 0))
        self._datagrams, _ = self._loop.run_until_complete(echoing)
        self.udp_port = self._datagrams.get_extra_info("sockname")[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._server.close()
        self._datagrams.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
