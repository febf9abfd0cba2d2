"""Proxies: the pods of fleets and their metrics pages, through the API server or, if it refuses, at their addresses.

In: an API server, a label selector.
Out: pods, and for each a `Page` or the reason for its absence. A few requests run at once, each
with a timeout of some seconds, all together ten seconds. A missing pod therefore does not block a
screen.
Source: Kubernetes API concepts, "Proxy subresource of pods".
Must never: request anything but `GET /metrics`.
"""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from controller.fleets.placement import MANAGED_LABEL, MANAGER, METRICS_PORT
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from edgefast.api.kinds import EDGE_GROUP
from edgefast.cli.counters import Page, read_page

__all__ = ["PROXIES", "Pod", "list_pods", "read_pages"]

PROXIES = f"{MANAGED_LABEL}={MANAGER},app.kubernetes.io/component=proxy"
_POD = APIS["v1", "Pod"]
_AT_ONCE = 8
_EACH = 4.0  # seconds
_ALL = 10.0
_DIRECT = 1.5  # to an address that perhaps leads nowhere
_MAX_PAGE = 64 * 1024 * 1024


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod of a fleet."""

    namespace: str
    name: str
    fleet: str  # "namespace/name" of its workload
    address: str
    phase: str
    gateway: str = ""  # "namespace/name" of the Gateway it is for
    gateway_class: str = ""  # of merged Gateways

    @property
    def key(self) -> str:
        """Name it in the cluster."""
        return f"{self.namespace}/{self.name}"


async def list_pods(kube: Kube, namespace: str | None = None, more: str = "") -> tuple[Pod, ...]:
    """Return the pods of fleets by name; `more` narrows the selector. ApiError when they may not be listed."""
    selector = f"{PROXIES},{more}" if more else PROXIES
    found = await kube.list_all(_POD, namespace, label_selector=selector)
    pods = [_pod(one) for one in found if "deletionTimestamp" not in one["metadata"]]
    return tuple(sorted(pods, key=lambda one: one.key))


def _pod(one: Mapping[str, Any]) -> Pod:
    meta, status = one["metadata"], one.get("status") or {}
    labels = meta.get("labels") or {}
    owners: list[dict[str, str]] = meta.get("ownerReferences") or []
    owner = owners[0]["name"] if owners else ""
    fleet = owner.removesuffix(f"-{labels.get('pod-template-hash', '')}")
    gateway = labels.get(f"{EDGE_GROUP}/owning-gateway-name", "")
    where = labels.get(f"{EDGE_GROUP}/owning-gateway-namespace", "")
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        fleet=f"{meta['namespace']}/{fleet}",
        address=status.get("podIP", ""),
        phase=status.get("phase", "Unknown"),
        gateway=f"{where}/{gateway}" if gateway else "",
        gateway_class=labels.get(f"{EDGE_GROUP}/owning-gatewayclass", ""),
    )


async def read_pages(kube: Kube, pods: Sequence[Pod]) -> dict[str, Page | str]:
    """Return the page of each pod, or why there is none, by `Pod.key`."""
    turns = asyncio.Semaphore(_AT_ONCE)
    found: dict[str, Page | str] = {
        one.key: f"not asked within {_ALL:g} s, there are too many" for one in pods
    }

    async def ask(pod: Pod) -> None:
        async with turns:
            found[pod.key] = await _read_page(kube, pod)

    tasks = [asyncio.create_task(ask(one)) for one in pods]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=_ALL)
        for one in late:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def _read_page(kube: Kube, pod: Pod) -> Page | str:
    if pod.phase != "Running":
        return f"its pod is {pod.phase}"
    path = f"{_POD.path(pod.namespace, pod.name)}:{METRICS_PORT}/proxy/metrics"
    try:
        text = await kube.read(path, deadline=_EACH)
        at = time.monotonic()
    except ApiError as error:
        if not error.forbidden or not pod.address:
            return f"no metrics through the API server: {error}"
        # The credential may not use pods/proxy; from inside the cluster's network there is another way.
        try:
            text = await asyncio.to_thread(_read_direct, pod.address)
            at = time.monotonic()
        except (OSError, http.client.HTTPException) as other:
            return f"pods/proxy: {error.reason}; at {pod.address}: {str(other) or type(other).__name__}"
    try:
        return await asyncio.to_thread(read_page, text.decode("utf-8", "replace"), at)
    except ValueError as error:
        return str(error)


def _read_direct(address: str) -> bytes:
    connection = http.client.HTTPConnection(address, METRICS_PORT, timeout=_DIRECT)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        return answer.read(_MAX_PAGE)
    finally:
        connection.close()
