"""The load balancer: gives Services of type LoadBalancer an address and writes it to their status.

In: the events of the Services. Out: `status.loadBalancer.ingress` with one address of the pool; the proxy on the node
serves it like a cluster IP (ipMode VIP). `spec.loadBalancerIP` is honoured when it is of the pool and free; otherwise the
Service waits. A Service with a loadBalancerClass, or annotated `world.edgefast.test/balancer: "none"`, gets nothing.
Must never: give an address to two, or a freed one again at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from cluster.world import addresses as at
from cluster.world.node.client import ApiError, Client

log = logging.getLogger("node.balancer")

ANNOTATION = "world.edgefast.test/balancer"

_RETRY_SECONDS = 0.2  # while the API server is away


class Balancer:
    """All addresses given."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._free = deque(at.LB_POOL)
        self._given: dict[tuple[str, str], str] = {}
        self._services: dict[tuple[str, str], dict[str, Any]] = {}

    async def on_service(self, kind: str, obj: Any) -> None:
        """Take in an event of the Services."""
        if kind == "SYNC":
            self._services = {_key(one): one for one in obj}
            for key in [key for key in self._given if key not in self._services]:
                self._release(key)
            for one in sorted(obj, key=lambda one: not _addresses(one)):
                await self._serve(one)
            return
        key = _key(obj)
        if kind == "DELETED":
            self._services.pop(key, None)
            self._release(key)
            for waiting in [one for one in self._services.values() if not _addresses(one)]:
                await self._serve(waiting)
            return
        self._services[key] = obj
        await self._serve(obj)

    async def _serve(self, obj: dict[str, Any]) -> None:
        key, spec = _key(obj), obj["spec"]
        annotations = obj["metadata"].get("annotations") or {}
        wanted = spec.get("loadBalancerIP")
        if (
            spec.get("type") != "LoadBalancer"
            or spec.get("loadBalancerClass")
            or annotations.get(ANNOTATION) == "none"
        ):
            self._release(key)
            return
        have = _addresses(obj)
        address = self._given.get(key)
        if address is None or (wanted and wanted != address):
            self._release(key)
            address = self._take(wanted or (have[0] if have else None), must=bool(wanted))
            if address is not None:
                self._given[key] = address
        ingress = [{"ip": address, "ipMode": "VIP"}] if address is not None else []
        if have != [one["ip"] for one in ingress]:
            await self._write(key, {"status": {"loadBalancer": {"ingress": ingress}}})

    async def _write(self, key: tuple[str, str], status: dict[str, Any]) -> None:
        path = f"/api/v1/namespaces/{key[0]}/services/{key[1]}/status"
        while True:
            try:
                await self._client.merge(path, status)
                log.info("%s/%s: %s", *key, status)
                return
            except ApiError as error:
                log.info("%s/%s: %s", *key, error)
                if not error.passing:
                    return
            except (OSError, TimeoutError, self._client.Unreachable) as error:
                log.info("%s/%s: %r", *key, error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _take(self, wanted: str | None, *, must: bool) -> str | None:
        if wanted is not None and wanted in self._free:
            self._free.remove(wanted)
            return wanted
        return None if must or not self._free else self._free.popleft()

    def _release(self, key: tuple[str, str]) -> None:
        address = self._given.pop(key, None)
        if address is not None:
            self._free.append(address)


def _key(obj: Any) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _addresses(obj: Any) -> list[str]:
    ingress = (obj.get("status") or {}).get("loadBalancer", {}).get("ingress") or []
    return [one.get("ip", "") for one in ingress]
