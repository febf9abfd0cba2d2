"""The node object and its heartbeat.

In: the agent's client. Out: a Ready node, its Lease renewed.
Must never: let the controller manager believe the node is gone: it would evict the pods.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
from typing import Any

from cluster.tools.versions import KUBERNETES
from cluster.world import addresses as at
from cluster.world.node.client import ApiError, Client
from cluster.world.node.container import now

log = logging.getLogger("node.registration")

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_BEAT_SECONDS = 10
_STATUS_BEATS = 6


async def keep_registered(client: Client) -> None:
    """Register the node and renew its lease until cancelled."""
    since, beat = now(), 0
    while True:
        try:
            if beat % _STATUS_BEATS == 0:
                await _register(client, since)
            await _renew(client)
            beat += 1
            await asyncio.sleep(_BEAT_SECONDS)
        except (ApiError, OSError, TimeoutError, client.Unreachable) as error:
            log.info("not registered: %r", error)
            await asyncio.sleep(0.1)


async def _register(client: Client, since: str) -> None:
    labels = {
        "kubernetes.io/hostname": at.NODE,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    ranges = {"podCIDR": at.POD_RANGE, "podCIDRs": [at.POD_RANGE]}
    node = {"metadata": {"name": at.NODE, "labels": labels}, "spec": ranges}
    try:
        await client.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
    except ApiError as error:
        if error.status != 409:
            raise
    await client.merge(f"/api/v1/nodes/{at.NODE}/status", {"status": _status(since)})


def _status(since: str) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "100Gi"}
    states = {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
    }
    times = {"lastHeartbeatTime": now(), "lastTransitionTime": since}
    return {
        "capacity": room,
        "allocatable": room,
        "addresses": [
            {"type": "InternalIP", "address": at.NODE_ADDRESS},
            {"type": "Hostname", "address": at.NODE},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": at.KUBELET_PORT}},
        "nodeInfo": {
            "kubeletVersion": KUBERNETES,
            "osImage": "world",
            "kernelVersion": os.uname().release,
            "containerRuntimeVersion": "local://1",
            "architecture": "amd64",
            "operatingSystem": "linux",
            "bootID": "world",
            "machineID": "world",
            "systemUUID": "world",
            "kubeProxyVersion": "",
        },
        "conditions": [
            {"type": kind, "status": value, "reason": "World", "message": "", **times}
            for kind, value in states.items()
        ],
    }


async def _renew(client: Client) -> None:
    time = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": at.NODE, "leaseDurationSeconds": 40, "renewTime": time}
    try:
        await client.merge(f"{_LEASES}/{at.NODE}", {"spec": spec})
    except ApiError as error:
        if error.status != 404:
            raise
        meta = {"name": at.NODE, "namespace": "kube-node-lease"}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
        await client.post(_LEASES, {**body, "spec": spec})
