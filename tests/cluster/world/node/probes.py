"""The probes of a running container.

In: a container's spec and its run. Out: `started`, `ready`, `healthy` as they change.
Source: Kubernetes API, Probe: defaults period 10 s, timeout 1 s, thresholds 1 and 3; the other probes begin when the
startup probe has succeeded. Until a container is ready for the first time it is asked every 0.1 s, so that tests need
not wait for a period.
Must never: run on after the container has ended: `watch` is cancelled with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from cluster.world.node.handlers import handle
from cluster.world.node.process import Run

_EAGER_SECONDS = 0.1


class Probes:
    """What probes have found out about one run of a container."""

    def __init__(self, container: Mapping[str, Any], on_change: Callable[[], None]) -> None:
        self._container, self._on_change = container, on_change
        self.started = "startupProbe" not in container
        self.ready = self.started and "readinessProbe" not in container
        self.healthy = True

    async def watch(self, session: aiohttp.ClientSession, run: Run) -> None:
        """Probe until cancelled, or until the container must be restarted (`healthy` is False then)."""
        if not self.started:
            if not await self._start(session, run):
                return
            self.started = True
            self.ready = "readinessProbe" not in self._container
            self._on_change()
        async with asyncio.TaskGroup() as tasks:
            following = None
            if "readinessProbe" in self._container:
                following = tasks.create_task(self._follow_readiness(session, run))
            if "livenessProbe" in self._container:
                await self._follow_liveness(session, run)
                if following is not None:
                    following.cancel()

    async def _start(self, session: aiohttp.ClientSession, run: Run) -> bool:
        probe = self._container["startupProbe"]
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        allowed = probe.get("failureThreshold", 3) * probe.get("periodSeconds", 10)
        tried = 0.0
        while not await self._once(session, probe, run):
            if tried >= allowed:
                self._fail()
                return False
            tried += _EAGER_SECONDS
            await asyncio.sleep(_EAGER_SECONDS)
        return True

    async def _follow_readiness(self, session: aiohttp.ClientSession, run: Run) -> None:
        probe = self._container["readinessProbe"]
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        period = float(probe.get("periodSeconds", 10))
        good = bad = 0
        seen_ready = False
        while True:
            well = await self._once(session, probe, run)
            good, bad = (good + 1, 0) if well else (0, bad + 1)
            ready = self.ready
            if good >= probe.get("successThreshold", 1):
                ready = seen_ready = True
            if bad >= probe.get("failureThreshold", 3):
                ready = False
            if ready != self.ready:
                self.ready = ready
                self._on_change()
            await asyncio.sleep(period if seen_ready else min(period, _EAGER_SECONDS))

    async def _follow_liveness(self, session: aiohttp.ClientSession, run: Run) -> None:
        probe = self._container["livenessProbe"]
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        bad = 0
        while True:
            bad = 0 if await self._once(session, probe, run) else bad + 1
            if bad >= probe.get("failureThreshold", 3):
                self._fail()
                return
            await asyncio.sleep(probe.get("periodSeconds", 10))

    def _fail(self) -> None:
        self.healthy = False
        self._on_change()

    async def _once(
        self, session: aiohttp.ClientSession, probe: Mapping[str, Any], run: Run
    ) -> bool:
        return await handle(session, probe, run, self._container, probe.get("timeoutSeconds", 1))
