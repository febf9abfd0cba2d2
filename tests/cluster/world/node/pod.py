"""One pod from binding to removal: network, volumes, containers, status, graceful end.

In: the pod object, updated by the agent through `update`. Out: processes, and the pod's status at the API server.
Source: Kubernetes, "Pod Lifecycle" and "Termination of Pods".
Must never: take the agent down with it; what goes wrong is logged and the pod removed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.world import addresses as at
from cluster.world.node.client import ApiError
from cluster.world.node.container import WAITING, Container, now
from cluster.world.node.status import ready_of, status_of
from cluster.world.node.volumes import Volumes, token_seconds

if TYPE_CHECKING:
    from cluster.world.node.agent import Agent

log = logging.getLogger("node.pod")

_RETRY_SECONDS = 0.3
_TOKEN_PERIOD = "world.edgefast.test/token-period"  # annotation: seconds between two tokens


class Pod:
    """A pod of this node."""

    def __init__(self, agent: Agent, obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        self.agent, self.obj = agent, obj
        self.uid, self.name, self.namespace = meta["uid"], meta["name"], meta["namespace"]
        self.key = f"{self.namespace}/{self.name}"
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.id = self.uid.replace("-", "")[:8]
        self.folder = (
            Path(agent.settings.folder) / "pods" / f"{self.namespace}_{self.name}_{self.id}"
        )
        self.volumes = Volumes(self.folder / "volumes", agent.objects)
        self.started_at = now()
        self.address = ""
        self.containers: list[Container] = []
        self.inits: list[Container] = []
        #: Containers are being ended, or have all ended for good.
        self.ending = False
        #: The pod is no longer in the API.
        self.gone = False
        self.finished = False
        self._changed = asyncio.Event()
        self._ticked = asyncio.Event()
        self._posting = asyncio.Lock()  # of two posts under way, the older one could arrive last
        self._posted: dict[str, Any] = {}
        self._awaited = ""  # resourceVersion of our last post, until the watch has brought it

    @property
    def spec(self) -> dict[str, Any]:
        """The pod's spec."""
        spec: dict[str, Any] = self.obj["spec"]
        return spec

    @property
    def netns(self) -> str:
        """The network namespace its containers are in."""
        network = self.agent.network
        return network.node_netns if self.spec.get("hostNetwork") else network.netns_of(self.id)

    @property
    def deleting(self) -> bool:
        """Whether somebody asked for its deletion."""
        return self.gone or bool(self.obj["metadata"].get("deletionTimestamp"))

    def update(self, obj: dict[str, Any], *, gone: bool = False) -> None:
        """Take in a newer version of the object."""
        self.obj, self.gone = obj, self.gone or gone
        self._compare(obj)
        self.ending = self.ending or self.deleting
        if self.gone:
            for container in [*self.containers, *self.inits]:
                container.kill()
        self.changed()

    def changed(self) -> None:
        """Something that the status tells has changed."""
        self._changed.set()
        self._ticked.set()
        self._ticked = asyncio.Event()

    async def tick(self, seconds: float) -> None:
        """Wait until something changes, at most so long."""
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._ticked.wait()
        except TimeoutError:
            return

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until the pod is ending."""
        until = time.monotonic() + seconds
        while not self.ending and time.monotonic() < until:
            await self.tick(until - time.monotonic())

    async def live(self) -> None:
        """Run the pod until nothing is left of it."""
        try:
            async with asyncio.TaskGroup() as tasks:
                posting = tasks.create_task(self._post_for_ever())
                refreshing = tasks.create_task(self._refresh_tokens())
                await self._run()
                refreshing.cancel()
                posting.cancel()
            await self._post()
        except* Exception:
            log.exception("%s failed", self.key)
        finally:
            await asyncio.shield(self._remove())

    async def _run(self) -> None:
        await self._connect()
        self.inits = [Container(self, c, init=True) for c in self.spec.get("initContainers") or []]
        self.containers = [Container(self, c) for c in self.spec["containers"]]
        restarted = {
            c["name"]: c.get("restartCount", 0) + 1
            for c in (self.obj.get("status") or {}).get("containerStatuses") or []
        }
        for container in self.containers:
            container.restarts = restarted.get(container.name, 0)
        await self._make_volumes()
        async with asyncio.TaskGroup() as tasks:
            for init in self.inits:
                if init.sidecar:
                    tasks.create_task(init.keep())
                    while not init.started and not self.ending:
                        await self.tick(1.0)
                else:
                    await init.keep()
                    if init.exit != 0:
                        break
            else:
                for one in self.containers:
                    tasks.create_task(one.keep())
                while not self.deleting and not all(one.done for one in self.containers):
                    await self.tick(3600.0)
            self.finished = not self.deleting
            self.ending = True
            await self._stop()
        if self.finished:
            if not await self._post():
                self._changed.set()
            await self.agent.network_release(self)
            while not self.deleting:
                await self.tick(3600.0)

    async def _stop(self) -> None:
        """End what runs: the containers together, sidecars after them in reverse order."""
        meta = self.obj["metadata"]
        grace = float(meta.get("deletionGracePeriodSeconds", 30)) if not self.gone else 0.0
        until = time.monotonic() + grace
        self.changed()
        await asyncio.gather(*(one.stop(grace) for one in self.containers))
        for sidecar in reversed(self.inits):
            await sidecar.stop(max(until - time.monotonic(), 0.0) if not self.gone else 0.0)

    async def _connect(self) -> None:
        if self.spec.get("hostNetwork"):
            self.address = at.NODE_ADDRESS
            return
        wanted = (self.obj.get("status") or {}).get("podIP")
        self.address = self.agent.network.take(wanted)
        await self.agent.network.connect(self.id, self.address)

    async def _make_volumes(self) -> None:
        said = ""
        while not self.ending:
            try:
                await self.volumes.prepare(self.obj, self.address)
                return
            except WAITING as error:
                if said != str(error):
                    said = str(error)
                    log.info("%s: volumes: %s", self.key, said)
                    self.changed()
                await self.sleep(_RETRY_SECONDS)

    async def refresh(self) -> None:
        """Bring volumes up to date with the objects they show."""
        try:
            await self.volumes.refresh(self.obj, self.address)
        except (*WAITING, OSError) as error:
            log.info("%s: refresh: %s", self.key, error)

    async def _refresh_tokens(self) -> None:
        lifetime = token_seconds(self.obj)
        annotations = self.obj["metadata"].get("annotations") or {}
        period = annotations.get(_TOKEN_PERIOD)
        if lifetime is None:
            return
        while True:
            await asyncio.sleep(float(period) if period else lifetime * 0.8)
            try:
                await self.volumes.refresh_tokens(self.obj, self.address)
            except (*WAITING, OSError) as error:
                log.info("%s: tokens: %s", self.key, error)

    async def _post_for_ever(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not await self._post():
                await asyncio.sleep(_RETRY_SECONDS)
                self._changed.set()

    async def _post(self) -> bool:
        """Tell the API server the status, if it has changed; False when it did not listen."""
        async with self._posting:
            return await self._post_now()

    async def _post_now(self) -> bool:
        status = status_of(self)
        if self.gone or status == self._posted:
            return True
        try:
            answer = await self.agent.client.merge(
                f"{self.path}/status", {"metadata": {"uid": self.uid}, "status": status}
            )
        except ApiError as error:
            if error.status not in (404, 409):
                log.warning("%s: status: %s", self.key, error)
            return not error.passing
        except (OSError, TimeoutError, self.agent.client.Unreachable):
            return False
        self._posted = status
        self._awaited = answer["metadata"]["resourceVersion"]
        # Its event may have come before the answer, and others after it.
        self._compare(self.obj)
        if not self._posted:
            self._changed.set()
        return True

    def _compare(self, obj: dict[str, Any]) -> None:
        """Post again what somebody else has written over, as the controller manager does for a node it cannot hear."""
        if self._awaited:
            # Not that very version alone: after a list the watch goes on with a later one.
            if int(obj["metadata"]["resourceVersion"]) < int(self._awaited):
                return
            self._awaited = ""
        if self._posted and ready_of(obj.get("status")) != ready_of(self._posted):
            self._posted = {}

    async def _remove(self) -> None:
        for container in [*self.containers, *self.inits]:
            container.kill()
        await self.agent.network_release(self)
        for part in [self.folder / "volumes", *self.folder.glob("*/box")]:
            shutil.rmtree(part, ignore_errors=True)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        while not self.gone:
            try:
                await self.agent.client.delete(self.path, options)
                return
            except ApiError as error:
                if error.status not in (404, 409):
                    log.warning("%s: delete: %s", self.key, error)
                if not error.passing:
                    return
                await asyncio.sleep(_RETRY_SECONDS)
            except (OSError, TimeoutError, self.agent.client.Unreachable):
                await asyncio.sleep(0.2)
