"""Connection: requests to one API server, as bytes, under one set of limits.

In: an Access.
Out: the bodies of successes, and streams; ApiError for every other answer. Calls share connections,
a limit of calls per second and one of concurrent calls; a stream has its own connection. TCP
detects a machine that disappeared within about 30 s.
Source: Kubernetes API concepts.
Must never: retry a call that may have had an effect; only 429 and 401, which mean "not done", are
retried.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from urllib.parse import urlencode

import msgspec

from controller.kube.access import Access
from controller.kube.denials import Denials
from controller.kube.errors import SILENT, TIMEOUT, UNREACHABLE, ApiError, error_from
from controller.kube.http import Http
from controller.kube.throttle import Bucket
from controller.kube.wire import Answer, Broken
from edgefast import __version__

__all__ = ["CALL_DEADLINE", "JSON", "Connection", "Request"]

#: Seconds for one call, waiting for its turn included.
CALL_DEADLINE = 10.0
JSON = "application/json"
#: Largest answer taken: a page of 500 objects of 1 MiB (the limit of etcd) would not be larger.
_MAX_ANSWER = 512 * 1024 * 1024


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
        self.denials = Denials()
        self._bucket = Bucket(rate, burst)
        self._turns = asyncio.Semaphore(at_once)
        self._http = Http(
            access,
            {
                "User-Agent": f"edgefast-controller/{__version__}",
                # Compression costs both sides more than the network between them.
                "Accept-Encoding": "identity",
            },
        )

    async def close(self) -> None:
        """Close all connections, those of cancelled calls as well."""
        await self._http.close()

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
                    stack.callback(answer.leave)
                    if answer.status != 200:
                        error = await _error_of(answer)
                        self.denials.fail(request.method, request.path, True, error)
                        raise error
                    self.denials.succeed(request.method, request.path, True)
                yield b""
                while True:
                    try:
                        async with asyncio.timeout(silence):
                            chunk = await answer.read()
                    except TimeoutError:
                        message = f"no data for {silence:g} s"
                        raise ApiError(0, SILENT, message) from None
                    if not chunk:
                        return
                    yield chunk

    async def _try(self, request: Request) -> bytes:
        while True:
            answer = await self._send(request)
            try:
                if 200 <= answer.status < 300:
                    self.denials.succeed(request.method, request.path, False)
                    return await _read(answer)
                error = await _error_of(answer)
            finally:
                answer.leave()
            if error.status != 429:
                self.denials.fail(request.method, request.path, False, error)
                raise error
            await asyncio.sleep(error.retry_after if error.retry_after is not None else 1.0)

    async def _send(self, request: Request) -> Answer:
        """Send a request; a credential that is refused is read anew once."""
        query = urlencode({key: value for key, value in request.query.items() if value})
        mark = "?" if query else ""
        fresh = False
        while True:
            headers = {"Accept": request.accept, **await self.access.headers(fresh=fresh)}
            if request.body is not None:
                headers["Content-Type"] = request.content_type
            path = f"{request.path}{mark}{query}"
            answer = await self._http.send(request.method, path, headers, request.body)
            if answer.status != 401 or fresh:
                return answer
            answer.leave()
            fresh = True


@contextlib.contextmanager
def _as_api_errors() -> Iterator[None]:
    """Turn every way in which no answer comes into an ApiError."""
    try:
        yield
    except TimeoutError:
        raise ApiError(0, TIMEOUT, "no answer in time") from None
    except (Broken, OSError) as error:
        raise ApiError(0, UNREACHABLE, str(error) or type(error).__name__) from None


async def _read(answer: Answer) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await answer.read():
        parts.append(chunk)
        size += len(chunk)
        if size > _MAX_ANSWER:
            raise ApiError(0, UNREACHABLE, f"an answer of more than {_MAX_ANSWER} bytes")
    return b"".join(parts)


async def _error_of(answer: Answer) -> ApiError:
    return error_from(answer.status, await _read(answer), answer.retry_after)
