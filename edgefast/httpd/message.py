"""Requests and replies of the small HTTP servers, between h11 and the handlers.

In: bytes of a socket.
Out: a `Request` with its body, or h11.RemoteProtocolError with the status of the answer; the bytes
of a `Reply`. A parse error in any layer is that one error. Every size is bounded; the caller bounds
the time.
Must never: block the event loop while it waits for this client.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

import h11
import msgspec

__all__ = ["CHUNK", "HEAD", "Reply", "Request", "connect", "read_request", "receive", "send_reply"]

HEAD = 16 * 1024
_BODY = 4 * 1024
_FIELDS = 20  # of a query
CHUNK = 8 * 1024  # per read: half a head, so that the limit on heads is felt


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
    peer: str = ""  # the address that it came from; "" of a unix socket


class Reply(msgspec.Struct, frozen=True):
    """What a handler answers."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()  # more of them


def connect(data: bytes) -> h11.Connection:
    """Begin a conversation with what has come of it."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD)
    connection.receive_data(data)
    return connection


async def read_request(connection: h11.Connection, sock: socket.socket) -> Request | None:
    """Read one request with its body; None at the end of the connection. Raises h11.RemoteProtocolError."""
    head: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                go_on = connection.send(h11.InformationalResponse(status_code=100, headers=[]))
                await asyncio.get_running_loop().sock_sendall(sock, go_on or b"")
            connection.receive_data(await receive(sock))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _BODY:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return _make_request(head, body, _peer_of(sock))
        else:
            return None


def _peer_of(sock: socket.socket) -> str:
    try:
        name = sock.getpeername()
    except OSError:  # it is gone
        return ""
    return str(name[0]) if isinstance(name, tuple) else ""


def _make_request(head: h11.Request, body: bytes, peer: str) -> Request:
    try:
        target = urlsplit(head.target.decode("ascii", "replace"))
        query = dict(parse_qsl(target.query, max_num_fields=_FIELDS))
    except ValueError as error:
        raise h11.RemoteProtocolError(str(error)) from None
    return Request(
        method=head.method.decode("ascii"),
        path=target.path,
        query=query,
        body=body,
        host=_field(head, b"host"),
        origin=_field(head, b"origin"),
        fetched_from=_field(head, b"sec-fetch-site"),
        accept=_field(head, b"accept"),
        peer=peer,
    )


def _field(head: h11.Request, name: bytes) -> str:
    """Return a header's value in lower case; of several all, so that none of them is overlooked."""
    return ",".join(v.decode("latin-1").strip().lower() for n, v in head.headers if n == name)


async def receive(sock: socket.socket) -> bytes:
    """Read the available bytes at once, or wait; an immediate request does not wait for a loop iteration."""
    try:
        return sock.recv(CHUNK)
    except (BlockingIOError, InterruptedError):
        return await asyncio.get_running_loop().sock_recv(sock, CHUNK)


async def send_reply(
    connection: h11.Connection,
    sock: socket.socket,
    reply: Reply,
    *,
    close: bool = False,
    head_only: bool = False,
) -> None:
    """Send a reply; `close`: and say that it is the last one."""
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
