"""Probes and lifecycle hooks: what the kubelet does to a container by HTTP, TCP or a command.

In: a handler as in the pod spec (httpGet, tcpSocket, exec, sleep). Out: whether it went well.
Source: Kubernetes API, Probe and LifecycleHandler: a status from 200 to 399 is success.
Must never: take longer than it is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from cluster.world.node.process import Run


async def handle(
    session: aiohttp.ClientSession,
    handler: Mapping[str, Any],
    run: Run,
    container: Mapping[str, Any],
    seconds: float,
) -> bool:
    """Do what a handler says within `seconds`."""
    address = run.launch.address
    try:
        async with asyncio.timeout(seconds):
            if "httpGet" in handler:
                return await _get(session, handler["httpGet"], address, container)
            if "tcpSocket" in handler:
                wanted = handler["tcpSocket"]
                host = wanted.get("host") or address
                _, writer = await asyncio.open_connection(host, port_of(container, wanted["port"]))
                writer.close()
                return True
            if "sleep" in handler:
                await asyncio.sleep(float(handler["sleep"]["seconds"]))
                return True
            if "exec" in handler:
                return await run.execute(handler["exec"]["command"], seconds)
            return False  # gRPC probes: nothing here uses them
    except (OSError, TimeoutError, aiohttp.ClientError):
        return False


async def _get(
    session: aiohttp.ClientSession,
    wanted: Mapping[str, Any],
    address: str,
    container: Mapping[str, Any],
) -> bool:
    scheme = str(wanted.get("scheme", "HTTP")).lower()
    host, port = wanted.get("host") or address, port_of(container, wanted["port"])
    url = f"{scheme}://{host}:{port}{wanted.get('path') or '/'}"
    headers = {one["name"]: one["value"] for one in wanted.get("httpHeaders") or []}
    async with session.get(
        url, headers=headers | {"User-Agent": "kube-probe/1.36"}, ssl=False, allow_redirects=False
    ) as answer:
        return 200 <= answer.status < 400


def port_of(container: Mapping[str, Any], port: int | str) -> int:
    """Return the number of a port given by number or name."""
    for one in container.get("ports") or []:
        if one.get("name") == port:
            return int(one["containerPort"])
    return int(port)
