"""Connection: requests to one API server, as bytes, under one set of bounds.

In: an Access. Out: the bodies of successes, and streams; ApiError for whatever is no success. Calls share connections,
a bound on calls per second and one on calls under way; a stream has a connection of its own. A machine that is gone
without a word is noticed by TCP within about 30 s. Source: Kubernetes API concepts.
Must never: retry what may have been done already; only 429 and 401, which say "not done", are asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
import yarl

from controller.kube.access import Access
from controller.kube.errors import SILENT, TIMEOUT, UNREACHABLE, ApiError, error_from
from controller.kube.pace import Bucket
from edgefast import __version__

__all__ = ["CALL_DEADLINE", "JSON", "Connection", "Request"]

#: Seconds for one call, waiting for its turn included.
CALL_DEADLINE = 10.0
JSON = "application/json"
_CONNECT_TIMEOUT = 5.0
#: Seconds for which an unused connection is kept; API servers keep theirs for 90 or more.
_IDLE = 75.0
#: Largest answer taken: a page of 500 objects of 1 MiB (the limit of etcd) would not be larger.
_MAX_ANSWER = 512 * 1024 * 1024
_READ_BUFFER = 256 * 1024
#: Looks, 2 ms apart, whether the transports have closed their sockets; no event tells.
_LAST_LOOKS = 500


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request; entries of `query` that are "" are left out."""

    method: str = "GET"
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    accept: str = JSON
    content_type: str = JSON


class Connection:
    """One API server; call `close` at the end."""

    def __init__(self, access: Access, *, rate: float, burst: int, at_once: int) -> None:
        self.access = access
        self._bucket = Bucket(rate, burst)
        self._turns = asyncio.Semaphore(at_once)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                # Watches hold a connection each: a limit here would stop the next call for ever.
                limit=0,
                keepalive_timeout=_IDLE,
                ssl=access.tls if access.tls is not None else False,
                socket_factory=self._make_socket,
            ),
            # Deadlines are ours: they cover the wait for a turn as well.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT),
            headers={
                "User-Agent": f"edgefast-controller/{__version__}",
                # Compression costs both sides more than the network between them.
                "Accept-Encoding": "identity",
            },
            auto_decompress=False,
            read_bufsize=_READ_BUFFER,
        )

    async def close(self) -> None:
        """Close all connections, those of cancelled calls as well: TLS says farewell on them for up to 30 s."""
        await self._session.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_LAST_LOOKS):
            if all(one.fileno() < 0 for one in self._sockets):
                return
            await asyncio.sleep(0.002)

    async def call(self, request: Request, deadline: float, *, urgent: bool = False) -> bytes:
        """Return the body of a success; `urgent` goes ahead of the bounds (the Lease, tokens)."""
        with _as_api_errors():
            async with asyncio.timeout(deadline):
                if urgent:
                    return await self._try(request)
                async with self._turns:
                    await self._bucket.take()
                    return await self._try(request)

    async def stream(self, request: Request, silence: float) -> AsyncGenerator[bytes, None]:
        """Yield an answer as it comes, b"" first, when it has begun; ApiError after `silence` seconds of nothing."""
        with _as_api_errors():
            with contextlib.ExitStack() as stack:
                async with asyncio.timeout(CALL_DEADLINE):
                    await self._bucket.take()
                    answer = await self._send(request)
                    stack.callback(_leave, answer)
                    if answer.status != 200:
                        raise await _error_of(answer)
                yield b""
                while True:
                    try:
                        async with asyncio.timeout(silence):
                            chunk = await answer.content.readany()
                    except TimeoutError:
                        said = f"nothing came for {silence:g} s"
                        raise ApiError(0, SILENT, said) from None
                    if not chunk:
                        return
                    yield chunk

    async def _try(self, request: Request) -> bytes:
        while True:
            answer = await self._send(request)
            try:
                if 200 <= answer.status < 300:
                    return await _read(answer)
                error = await _error_of(answer)
            finally:
                _leave(answer)
            if error.status != 429:
                raise error
            await asyncio.sleep(error.retry_after if error.retry_after is not None else 1.0)

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        """Send a request; a credential that is refused is read anew once."""
        query = urlencode({key: value for key, value in request.query.items() if value})
        mark = "?" if query else ""
        url = yarl.URL(f"{self.access.host}{request.path}{mark}{query}", encoded=True)
        fresh = False
        while True:
            headers = {"Accept": request.accept, **await self.access.headers(fresh=fresh)}
            if request.body is not None:
                headers["Content-Type"] = request.content_type
            answer = await self._session.request(
                request.method,
                url,
                data=request.body,
                headers=headers,
                proxy=self.access.proxy,
                server_hostname=self.access.server_name,
                allow_redirects=False,
            )
            if answer.status != 401 or fresh:
                return answer
            _leave(answer)
            fresh = True

    def _make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Make a socket that notices within about 30 s that the other machine is gone without a word."""
        family, kind, protocol, _, _ = info
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        # Bytes of ours that nobody acknowledges: the same time.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
        self._sockets.add(made)
        return made


@contextlib.contextmanager
def _as_api_errors() -> Iterator[None]:
    """Turn every way in which no answer comes into an ApiError."""
    try:
        yield
    except TimeoutError:
        raise ApiError(0, TIMEOUT, "no answer in time") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ApiError(0, UNREACHABLE, str(error) or type(error).__name__) from None


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await answer.content.readany():
        parts.append(chunk)
        size += len(chunk)
        if size > _MAX_ANSWER:
            raise ApiError(0, UNREACHABLE, f"an answer of more than {_MAX_ANSWER} bytes")
    return b"".join(parts)


async def _error_of(answer: aiohttp.ClientResponse) -> ApiError:
    return error_from(answer.status, await _read(answer), answer.headers.get("Retry-After", ""))


def _leave(answer: aiohttp.ClientResponse) -> None:
    """Let an answer go; a connection on which more of it may come is aborted.

    To close it in order, TLS would wait for a farewell from a machine that may be gone.
    """
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()
