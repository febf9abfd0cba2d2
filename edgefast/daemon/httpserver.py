"""A small HTTP/1.1 server for operators: admin, metrics and readiness.

In: an address and a table of (method, path) -> handler. Out: answers. Framing is h11's.
Bounded in every direction: connections, head and body size, requests per connection, a deadline on
every read and write. A browser must not be a way in: what a page of another site sends is refused,
and so is a name that some DNS may point here. It runs in the agent's loop, so a handler with real
work must leave the loop (asyncio.to_thread). Must never serve user traffic or follow a path into the
file system.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

import h11
import msgspec

from edgefast.daemon.address import EVERYWHERE, Address, family_of

__all__ = ["Handler", "HttpServer", "Reply", "Request", "bind_server"]

log = logging.getLogger(__name__)

_NO_FAMILY = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}
_CONNECTIONS = 64
_REQUESTS = 100  # per connection
_HEAD = 16 * 1024
_BODY = 4 * 1024
_READ_DEADLINE = 10.0
_WRITE_DEADLINE = 30.0
_LINGER = 1.0
_CHUNK = 8 * 1024  # per read: half a head, so that the limit on heads is felt


class Request(msgspec.Struct, frozen=True):
    """What a handler sees; `host`, `origin` and `accept` are "" where the request has no such header."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    host: str = ""
    origin: str = ""
    fetched_from: str = ""  # Sec-Fetch-Site: what a browser says of the page that asks
    accept: str = ""  # in lower case


class Reply(msgspec.Struct, frozen=True):
    """What a handler answers."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()  # more of them


Handler = Callable[[Request], Awaitable[Reply]]


def bind_server(address: Address) -> socket.socket:
    """Bind and listen; EVERYWHERE is both families, or IPv4 where there is no other. Raises OSError."""
    try:
        return _bind(address)
    except OSError as error:
        if address.host != EVERYWHERE or error.errno not in _NO_FAMILY:
            raise
        return _bind(Address("0.0.0.0", address.port))


def _bind(address: Address) -> socket.socket:
    sock = socket.socket(family_of(address.host), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address.host == EVERYWHERE:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address.host, address.port))
        sock.listen(_CONNECTIONS)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


class HttpServer:
    """Serves one bound socket."""

    def __init__(
        self,
        sock: socket.socket,
        routes: Mapping[tuple[str, str], Handler],
        *,
        any_host: bool = False,
    ) -> None:
        """`any_host`: requests may name any host, for a server whose names others choose."""
        self._sock = sock
        self._routes = routes
        self._any_host = any_host
        self._free = asyncio.Semaphore(_CONNECTIONS)
        host, port = sock.getsockname()[:2]
        self.address = Address(host, port)

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as connections:
                while True:
                    await self._free.acquire()
                    try:
                        connection, _ = await loop.sock_accept(self._sock)
                    except OSError as error:
                        # Out of descriptors, most likely: wait for some to come back.
                        log.warning("%s cannot accept: %s", self.address, error)
                        self._free.release()
                        await asyncio.sleep(0.5)
                        continue
                    except BaseException:
                        self._free.release()
                        raise
                    connections.create_task(self._attend(connection))
        finally:
            self._sock.close()

    async def _attend(self, sock: socket.socket) -> None:
        try:
            sock.setblocking(False)
            await self._converse(sock)
        except (OSError, TimeoutError):
            pass  # the client went away or is too slow: nobody is left to tell
        except Exception:
            log.exception("request to %s failed", self.address)
        finally:
            sock.close()
            self._free.release()

    async def _converse(self, sock: socket.socket) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        for _ in range(_REQUESTS):
            try:
                async with asyncio.timeout(_READ_DEADLINE):
                    request = await _read_request(connection, sock)
                if request is None:
                    return
                reply = await self._answer(request)
            except h11.RemoteProtocolError as error:
                if connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                    status = error.error_status_hint
                    async with asyncio.timeout(_WRITE_DEADLINE):
                        await _send(connection, sock, Reply(status, b"bad request\n"), close=True)
                    await _linger(sock)
                return
            async with asyncio.timeout(_WRITE_DEADLINE):
                await _send(connection, sock, reply, head_only=request.method == "HEAD")
            if connection.our_state is h11.MUST_CLOSE:
                return
            connection.start_next_cycle()

    async def _answer(self, request: Request) -> Reply:
        if refusal := self._refuse(request):
            return refusal
        method = "GET" if request.method == "HEAD" else request.method
        handler = self._routes.get((method, request.path))
        if handler is not None:
            return await handler(request)
        allowed = sorted(method for method, path in self._routes if path == request.path)
        if allowed:
            return Reply(405, f"use {' or '.join(allowed)}\n".encode())
        paths = sorted(f"{method} {path}" for method, path in self._routes)
        return Reply(404, ("not here; this server knows:\n" + "\n".join(paths) + "\n").encode())

    def _refuse(self, request: Request) -> Reply | None:
        """Refuse what a page of another site may have made a browser send.

        Such a page can POST here without being asked (a "simple" request of the Fetch standard), and
        reads the answers too once its own name resolves to this machine (DNS rebinding). Tools send
        neither Origin nor Sec-Fetch-Site.
        """
        if request.fetched_from not in ("", "none", "same-origin"):
            return Reply(403, b"refused: requested by a page of another site\n")
        if request.origin and request.origin.partition("://")[2] != request.host:
            return Reply(403, b"refused: requested by a page of another site\n")
        if self._any_host or not request.host or _is_own(request.host):
            return None
        return Reply(
            421, b"refused: the Host header must be an IP address or localhost, not a name\n"
        )


def _is_own(host: str) -> bool:
    """Tell whether a Host header names this machine without asking anybody: an address, or localhost."""
    name, _, port = host.rpartition(":")
    name = name if name and port.isdecimal() else host
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


async def _linger(sock: socket.socket) -> None:
    """Read and drop what still comes, so that the client sees the answer and not a reset."""
    sock.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(_LINGER):
        while await asyncio.get_running_loop().sock_recv(sock, _CHUNK):
            pass


async def _read_request(connection: h11.Connection, sock: socket.socket) -> Request | None:
    """Read one request with its body; None at the end of the connection."""
    loop = asyncio.get_running_loop()
    head: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = connection.send(h11.InformationalResponse(status_code=100, headers=[]))
                await loop.sock_sendall(sock, go_on or b"")
            connection.receive_data(await loop.sock_recv(sock, _CHUNK))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _BODY:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            target = urlsplit(head.target.decode("ascii", "replace"))
            query = dict(parse_qsl(target.query, max_num_fields=20))
            return Request(
                method=head.method.decode("ascii"),
                path=target.path,
                query=query,
                body=body,
                host=_field(head, b"host"),
                origin=_field(head, b"origin"),
                fetched_from=_field(head, b"sec-fetch-site"),
                accept=_field(head, b"accept"),
            )
        else:
            return None


def _field(head: h11.Request, name: bytes) -> str:
    """Return a header's value in lower case; of several all, so that none of them is overlooked."""
    return ",".join(v.decode("latin-1").strip().lower() for n, v in head.headers if n == name)


async def _send(
    connection: h11.Connection,
    sock: socket.socket,
    reply: Reply,
    *,
    close: bool = False,
    head_only: bool = False,
) -> None:
    headers = [
        ("content-type", reply.content_type),
        ("content-length", str(len(reply.body))),
        ("cache-control", "no-store"),
        *reply.headers,
        *([("connection", "close")] if close else []),
    ]
    reason = HTTPStatus(reply.status).phrase.encode()
    head = h11.Response(status_code=reply.status, headers=headers, reason=reason)
    data = connection.send(head) or b""
    if not head_only:
        data += connection.send(h11.Data(data=reply.body)) or b""
    data += connection.send(h11.EndOfMessage()) or b""
    await asyncio.get_running_loop().sock_sendall(sock, data)
