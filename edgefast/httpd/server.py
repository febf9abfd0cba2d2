"""A small HTTP/1.1 server for operators: admin, metrics and readiness.

In: a bound socket, a table of (method, path) -> handler, and the set of probe paths.
Out: answers. h11 parses the messages. These bounds apply: connections (connection_limit.py),
concurrent answers (concurrency_limit.py), sizes (message.py), requests per connection, and a
deadline on every read (connections.py) and write. Other requests never delay a probe, and pages of
other sites get no answer (origin_check.py). The server runs in the event loop of its process, so a
handler with real work must leave the loop (asyncio.to_thread).
Must never: serve user traffic, or map a path to the file system.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping

import h11

from edgefast.daemon.logs import LogThrottle
from edgefast.httpd.acceptor import Acceptor, bind_server
from edgefast.httpd.concurrency_limit import LINE, Busy, ConcurrencyLimit
from edgefast.httpd.connection_limit import ConnectionLimit, count_connections
from edgefast.httpd.connections import ClientConnection
from edgefast.httpd.message import (
    Reply,
    Request,
    connect,
    read_request,
    receive,
    send_reply,
)
from edgefast.httpd.origin_check import refuse_cross_origin

__all__ = ["Handler", "HttpServer", "Reply", "Request", "bind_server"]

log = logging.getLogger(__name__)

#: Answers that cost something, at a time: few enough that their threads leave the loop its share of the interpreter.
_AT_ONCE = 2
_REQUESTS = 100  # per connection
#: Seconds for an answer to be taken, and for what still comes after one that refuses.
_WRITE_DEADLINE = 30.0
_LINGER = 1.0

Handler = Callable[[Request], Awaitable[Reply]]


class HttpServer:
    """Serves one bound socket."""

    def __init__(
        self,
        sock: socket.socket,
        routes: Mapping[tuple[str, str], Handler],
        *,
        probes: Collection[str] = (),
        any_host: bool = False,
        at_once: int = _AT_ONCE,
        admits: Callable[[socket.socket], bool] | None = None,
    ) -> None:
        """`probes`: paths that are answered whatever else goes on; their handlers do not wait and cost nothing.

        `any_host`: requests may name any host, for a server whose names others choose. `at_once`: how many requests for
        other paths are at work at a time. `admits`: tells whether a connection may send requests; None: every connection may.
        """
        self._routes = routes
        self._probes = frozenset(probes)
        self._any_host = any_host
        self._turns = ConcurrencyLimit(at_once)
        self._places: ConnectionLimit[ClientConnection] = ConnectionLimit(
            count_connections(at_once + LINE)
        )
        self._http_acceptor = Acceptor(sock, self._places, self._attend, admits)
        self._rubbish = LogThrottle(log)
        self.address = self._http_acceptor.address

    def fileno(self) -> int:
        """Return the listening socket's descriptor."""
        return self._http_acceptor.fileno()

    def retire(self) -> None:
        """Accept no more: another process serves the socket."""
        self._http_acceptor.retire()

    def shut(self) -> None:
        """Close the listening socket: its name is free for another process."""
        self._http_acceptor.retire()
        self._http_acceptor.shut()

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._http_acceptor.run()

    async def _attend(self, client: ClientConnection) -> bool:
        """Answer one request; returns whether its connection may bring another one."""
        try:
            return await self._converse(client)
        except (OSError, TimeoutError):
            pass  # the client went away or is too slow: nobody is left to tell
        except Exception:
            log.exception("%s: a connection failed", self.address)
        return False

    async def _converse(self, client: ClientConnection) -> bool:
        connection, sock = connect(bytes(client.data)), client.sock
        client.data.clear()
        client.answered += 1
        try:
            async with asyncio.timeout_at(client.until):
                request = await read_request(connection, sock)
        except h11.RemoteProtocolError as error:
            await self._refuse(connection, sock, error)
            return False
        if request is None:
            return False
        reply, last = await self._answer(request, client), client.answered >= _REQUESTS
        self._places.wait(client)
        async with asyncio.timeout(_WRITE_DEADLINE):
            head_only = request.method == "HEAD"
            await send_reply(connection, sock, reply, close=last, head_only=head_only)
        client.data += connection.trailing_data[0]
        return connection.our_state is not h11.MUST_CLOSE

    async def _refuse(
        self, connection: h11.Connection, sock: socket.socket, error: h11.RemoteProtocolError
    ) -> None:
        """Answer what cannot be parsed."""
        why = ascii(str(error))[1:-1]
        self._rubbish.warn("%s refused an invalid request: %s", self.address, why)
        if connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            reply = Reply(error.error_status_hint, f"bad request: {why}\n".encode())
            async with asyncio.timeout(_WRITE_DEADLINE):
                await send_reply(connection, sock, reply, close=True)
            await _linger(sock)

    async def _answer(self, request: Request, client: ClientConnection) -> Reply:
        if refusal := refuse_cross_origin(request, any_host=self._any_host):
            return refusal
        method = "GET" if request.method == "HEAD" else request.method
        handler = self._routes.get((method, request.path))
        if handler is None:
            return self._point(request.path)
        try:
            if request.path in self._probes:
                return await handler(request)
            self._places.work(client)  # it waits for us from now on, in the line for a turn too
            async with self._turns.take():
                return await handler(request)
        except Busy:
            return Reply(503, b"other answers are being made; try again\n")
        except Exception:
            log.exception("%s %s at %s failed", method, request.path, self.address)
            return Reply(500, b"a mistake of this program; its log has more\n")

    def _point(self, path: str) -> Reply:
        """Say what there is instead."""
        allowed = sorted(method for method, known in self._routes if known == path)
        if allowed:
            return Reply(405, f"use {' or '.join(allowed)}\n".encode())
        paths = sorted(f"{method} {known}" for method, known in self._routes)
        return Reply(
            404, ("not found; this server has these paths:\n" + "\n".join(paths) + "\n").encode()
        )


async def _linger(sock: socket.socket) -> None:
    """Read and drop what still comes, so that the client sees the answer and not a reset."""
    sock.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(_LINGER):
        while await receive(sock):
            pass
