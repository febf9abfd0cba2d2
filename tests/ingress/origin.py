"""The origin of the oracle: plays every backend, the authentication service and the Service of error pages.

In: requests of nginx on one loopback port. Out: the scripted status with the request repeated as JSON. Calls of the
authentication service are kept by the number that the client gave the request. It runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable

from ingress.message import answer_auth, answer_backend, answer_headers, first
from ingress.nginx_config import AUTH, NUMBER

Head = tuple[str, str, list[tuple[str, str]]]


class Origin:
    """A running origin."""

    def __init__(self) -> None:
        self.calls: dict[str, Head] = {}
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._thread.start()
        self._ready.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self._answer), "127.0.0.1", 0)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(server.wait_closed())
        self._loop.close()

    def close(self) -> None:
        """Stop it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _answer(self, head: Head) -> bytes:
        method, target, headers = head
        if first(headers, AUTH):
            self.calls[first(headers, NUMBER)] = head
            status, extra = answer_auth(headers)
            return _response(status, b"", extra)
        body = json.dumps({"method": method, "target": target, "headers": headers}).encode()
        return _response(answer_backend(headers), body, answer_headers(headers))


def _response(status: int, body: bytes, extra: tuple[tuple[str, str], ...]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in extra]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, answer: Callable[[Head], bytes]) -> None:
        self._answer, self._buffer = answer, b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            raw, _, rest = self._buffer.partition(b"\r\n\r\n")
            lines = raw.decode("latin-1").split("\r\n")
            headers = [
                (name, value.strip())
                for name, _, value in (one.partition(":") for one in lines[1:])
            ]
            length = int(first(headers, "content-length") or 0)
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            method, target, _ = lines[0].split(" ")
            assert self._transport is not None
            self._transport.write(self._answer((method, target, headers)))
