"""The node agent: watches pods, Services, Secrets and ConfigMaps, and makes them real on this machine.

In: the path of a settings file. Out: runs until SIGTERM; then every container is ended, while the pods stay in the API, so
that an agent started again runs them again at their old addresses.
Must never: fall because of one pod or because the API server is away.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp

from cluster.world import addresses as at
from cluster.world.node import kubelet, names
from cluster.world.node.balancer import Balancer
from cluster.world.node.client import ApiError, Client
from cluster.world.node.network import PodNetwork
from cluster.world.node.objects import Objects
from cluster.world.node.pod import Pod
from cluster.world.node.registration import keep_registered
from cluster.world.node.settings import Settings
from cluster.world.node.volumes import uses

log = logging.getLogger("node.agent")

_ENDED = ("Succeeded", "Failed")


class Agent:
    """One node."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        probing: aiohttp.ClientSession,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self.settings, self.client, self.probing = settings, client, probing
        self.hooking = probing
        self.objects = Objects(client)
        self.network = PodNetwork(settings.netns)
        self.pods: dict[str, Pod] = {}
        self._tasks = tasks
        self._names = names.Names()
        self._balancer = Balancer(client)

    def start(self) -> None:
        """Start everything an agent does."""
        for work in (
            keep_registered(self.client),
            names.serve(self._names.lookup),
            self._watch_pods(),
            self._watch_services(),
            self._watch_slices(),
            self._watch_shown("secrets"),
            self._watch_shown("configmaps"),
        ):
            self._tasks.create_task(work)

    async def network_release(self, pod: Pod) -> None:
        """Give a pod's address and namespace back, once."""
        if pod.address and not pod.spec.get("hostNetwork"):
            address, pod.address = pod.address, ""
            await self.network.give_back(pod.id, address)

    def end(self) -> None:
        """End every container at once."""
        for pod in self.pods.values():
            pod.ending = pod.gone = True
            for container in [*pod.containers, *pod.inits]:
                container.kill()

    async def _watch_pods(self) -> None:
        async for kind, obj in self.client.watch("/api/v1/pods"):
            if kind == "SYNC":
                present = {one["metadata"]["uid"] for one in obj}
                for pod in list(self.pods.values()):
                    if pod.uid not in present:
                        self._on_pod("DELETED", pod.obj)
                for one in obj:
                    self._on_pod("ADDED", one)
            else:
                self._on_pod(kind, obj)

    def _on_pod(self, kind: str, obj: dict[str, Any]) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        known = self.pods.get(meta["uid"])
        if known is not None:
            labels = known.obj["metadata"].get("labels"), known.obj["metadata"].get("annotations")
            known.update(obj, gone=kind == "DELETED")
            if kind == "DELETED":
                # Not before: an event that was on its way would make it a new pod.
                del self.pods[meta["uid"]]
            elif labels != (meta.get("labels"), meta.get("annotations")):
                self._tasks.create_task(known.refresh())
        elif kind == "DELETED":
            return
        elif not spec.get("nodeName"):
            if not meta.get("deletionTimestamp") and _may_run(spec):
                self._tasks.create_task(self._bind(meta))
        elif spec["nodeName"] == at.NODE:
            ended = (obj.get("status") or {}).get("phase") in _ENDED
            if not ended or meta.get("deletionTimestamp"):
                pod = self.pods[meta["uid"]] = Pod(self, obj)
                pod.ending = pod.deleting
                self._tasks.create_task(pod.live())

    async def _bind(self, meta: dict[str, Any]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": at.NODE},
        }
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
        while True:
            try:
                await self.client.post(path, body)
                return
            except ApiError as error:
                if error.status not in (404, 409):
                    log.warning("binding %s/%s: %s", meta["namespace"], meta["name"], error)
                if not error.passing:
                    return
            except (OSError, TimeoutError, self.client.Unreachable):
                pass
            await asyncio.sleep(0.2)

    async def _watch_services(self) -> None:
        async for kind, obj in self.client.watch("/api/v1/services"):
            self._names.on_service(kind, obj)
            await self._balancer.on_service(kind, obj)

    async def _watch_slices(self) -> None:
        async for kind, obj in self.client.watch("/apis/discovery.k8s.io/v1/endpointslices"):
            self._names.on_slice(kind, obj)

    async def _watch_shown(self, plural: str) -> None:
        async for kind, obj in self.client.watch(f"/api/v1/{plural}"):
            # After a list nobody knows what changed meanwhile; writing what is unchanged costs a look.
            changed = None if kind == "SYNC" else obj["metadata"]
            for pod in list(self.pods.values()):
                if changed is None or (
                    pod.namespace == changed["namespace"] and uses(pod.obj, plural, changed["name"])
                ):
                    self._tasks.create_task(pod.refresh())


def _may_run(spec: dict[str, Any]) -> bool:
    wanted = spec.get("nodeSelector") or {}
    fits = wanted.get("kubernetes.io/hostname", at.NODE) == at.NODE
    return fits and not spec.get("schedulingGates")


async def run(settings: Settings) -> None:
    """Run an agent until SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with (
        Client(settings.server, Path(settings.pki)) as client,
        aiohttp.ClientSession(connector=connector, auto_decompress=False) as probing,
    ):
        async with asyncio.TaskGroup() as tasks:
            agent = Agent(settings, client, probing, tasks)
            await kubelet.serve(agent)
            agent.start()
            log.info("up")
            await stopped.wait()
            agent.end()
            # The last lines of the logs; containers that are not gone by then go with this process.
            await asyncio.sleep(0.1)
            os._exit(0)


def main() -> None:
    """Entry point of `python -m cluster.world.node.agent SETTINGS`."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if sys.version_info < (3, 12):
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    asyncio.run(run(Settings.read(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
