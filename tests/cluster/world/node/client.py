"""The agent's client of the API server: requests, and watches that never end.

In: the server's URL and the agent's certificate. Out: decoded objects; `ApiError` for answers of 400 and more; `watch`
yields ("SYNC", [objects]) after every list and (type, object) for every event.
Must never: give up: the API server may be away for a minute, and pods go on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

log = logging.getLogger("node.client")

_DEADLINE = aiohttp.ClientTimeout(total=10)
_WATCH_SECONDS = 240


class ApiError(Exception):
    """An answer of 400 or more."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether the same request may go well later: the server has too much to do, or no etcd."""
        return self.status >= 500 or self.status == 429


class Client:
    """One session with the API server; use as an async context manager."""

    #: What requests raise while there is no API server.
    Unreachable = aiohttp.ClientError

    def __init__(self, server: str, pki: Path) -> None:
        self._server = server
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "agent.crt", pki / "agent.key")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=300, limit_per_host=300)
        self._session = aiohttp.ClientSession(connector=connector, timeout=_DEADLINE)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """Send one request and return the decoded answer."""
        assert self._session is not None
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        async with self._session.request(
            method, self._server + path, data=data, headers=headers
        ) as answer:
            text = await answer.text()
            if answer.status >= 400:
                raise ApiError(answer.status, text)
            return json.loads(text)

    async def get(self, path: str) -> Any:
        """Return one object or list."""
        return await self.request("GET", path)

    async def post(self, path: str, body: Any) -> Any:
        """POST a body."""
        return await self.request("POST", path, body)

    async def merge(self, path: str, body: Any) -> Any:
        """PATCH an object with a JSON merge patch (RFC 7386)."""
        return await self.request("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, options: Any) -> None:
        """Delete an object."""
        await self.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    async def watch(self, path: str) -> AsyncIterator[tuple[str, Any]]:
        """Yield what happens to the objects of a list, for ever."""
        while True:
            try:
                listed = await self.get(path)
                yield "SYNC", listed.get("items") or []
                version = listed["metadata"]["resourceVersion"]
                while True:
                    async for kind, obj in self._events(path, version):
                        version = obj["metadata"]["resourceVersion"]
                        if kind != "BOOKMARK":
                            yield kind, obj
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                log.info("watch %s starts again: %r", path, error)
                await asyncio.sleep(0.2)

    async def _events(self, path: str, version: str) -> AsyncIterator[tuple[str, Any]]:
        assert self._session is not None
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        deadline = aiohttp.ClientTimeout(total=_WATCH_SECONDS + 30, sock_connect=5)
        async with self._session.get(
            self._server + path, params=query, timeout=deadline, read_bufsize=1 << 22
        ) as answer:
            if answer.status >= 400:
                raise ApiError(answer.status, await answer.text())
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(410, line.decode())
                yield event["type"], event["object"]
