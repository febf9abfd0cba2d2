"""Script: an HTTP server on loopback that answers as a test says, for what a real API server will not do on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

from controller.kube.access import Plain
from controller.kube.client import Kube

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[Kube]:
    """Serve with a handler; give a client of it."""
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        async with Kube(Plain(f"http://127.0.0.1:{port}")) as kube:
            yield kube
    finally:
        await runner.cleanup()


def obj(name: str, version: int, namespace: str = "ns", **more: Any) -> dict[str, Any]:
    """Return an object."""
    meta = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": meta, **more}


def page(version: int, *objects: dict[str, Any], cursor: str = "") -> web.Response:
    """Answer with a page of a list."""
    meta = {"resourceVersion": str(version), "continue": cursor}
    return web.json_response({"metadata": meta, "items": list(objects)})


def failure(status: int, reason: str, **headers: str) -> web.Response:
    """Answer with a Status."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"said {reason}"}
    return web.json_response(body, status=status, headers=headers)


def event(type: str, object: dict[str, Any]) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": type, "object": object}).encode() + b"\n"


async def stream(request: web.Request, *chunks: bytes, hold: bool = True) -> web.StreamResponse:
    """Answer with the chunks of a watch; then keep it open, or end it."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    for chunk in chunks:
        await answer.write(chunk)
    if hold:
        await asyncio.Event().wait()
    return answer
