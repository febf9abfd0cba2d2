"""One container of a pod over all its runs: start, probes, restarts with backoff, the way it ends.

In: its spec and its pod. Out: `status()` as in the pod's status; `keep()` runs until it will not run again.
Source: Kubernetes, "Pod Lifecycle": restartPolicy, container states, backoff; here 1 s doubling to 60 s (as with the
feature ReduceDefaultCrashLoopBackOffDecay), so that tests need not wait for minutes.
Must never: start anything once its pod is ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import signal
import time
from typing import TYPE_CHECKING, Any

from cluster.world.node.client import ApiError, Client
from cluster.world.node.handlers import handle
from cluster.world.node.launch import BadConfig, plan_launch
from cluster.world.node.objects import MissingObject
from cluster.world.node.probes import Probes
from cluster.world.node.process import Run

if TYPE_CHECKING:
    from cluster.world.node.pod import Pod

log = logging.getLogger("node.container")

_BACKOFF_FIRST = 1.0
_BACKOFF_MAX = 60.0
_GOOD_SECONDS = 600.0  # a run of this length ends the backoff
_RETRY_SECONDS = 0.3  # while an object it needs is missing

#: What a container waits for to pass.
WAITING = (MissingObject, BadConfig, ApiError, Client.Unreachable, TimeoutError)


class Container:
    """A container; `run` is what runs now."""

    def __init__(self, pod: Pod, spec: dict[str, Any], *, init: bool = False) -> None:
        self.pod, self.spec, self.name = pod, spec, str(spec["name"])
        policy = str(pod.spec.get("restartPolicy", "Always"))
        own = spec.get("restartPolicy")
        #: An init container that runs beside the others.
        self.sidecar = init and own == "Always"
        self.policy = (
            "Always" if self.sidecar else ("OnFailure" if policy != "Never" and init else policy)
        )
        self.init = init
        self.restarts = 0
        self.run: Run | None = None
        self.probes: Probes | None = None
        self.done = False
        self.exit: int | None = None
        self._started = ""
        self._waiting = ("PodInitializing" if not init else "ContainerCreating", "")
        self._last: dict[str, Any] | None = None
        self._backoff = 0.0

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return self.run is not None

    @property
    def ready(self) -> bool:
        """Whether it runs and its probes say it is ready."""
        return self.running and self.probes is not None and self.probes.ready

    @property
    def started(self) -> bool:
        """Whether it runs and has passed its startup probe."""
        return self.running and self.probes is not None and self.probes.started

    async def keep(self) -> None:
        """Run, and restart as the policy says, until it will not run again."""
        while not self.pod.ending:
            run = await self._start()
            if run is None:
                return
            began = time.monotonic()
            code = await self._attend(run)
            self._note_exit(code)
            if (
                self.pod.ending
                or self.policy == "Never"
                or (self.policy == "OnFailure" and not code)
            ):
                self.done = True
                self.pod.changed()
                return
            if time.monotonic() - began > _GOOD_SECONDS:
                self._backoff = 0.0
            self._waiting = (
                "CrashLoopBackOff",
                f"back-off {self._backoff} s restarting failed container",
            )
            self.pod.changed()
            await self.pod.sleep(self._backoff)
            self._backoff = min(max(self._backoff * 2, _BACKOFF_FIRST), _BACKOFF_MAX)
            self.restarts += 1

    async def stop(self, grace: float) -> None:
        """preStop hook, SIGTERM, and SIGKILL when `grace` seconds are over."""
        run = self.run
        if run is None:
            return
        until = time.monotonic() + grace
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook and grace > 0:
            await self._before_stop(run, hook, grace)
        # As the kubelet does: two seconds more when the hook took all the time there was.
        until = max(until, time.monotonic() + (2 if grace > 0 else 0))
        run.send(signal.SIGTERM)
        while self.run is run and time.monotonic() < until and not self.pod.gone:
            await self.pod.tick(until - time.monotonic())
        run.kill()
        while self.run is run:
            await self.pod.tick(1.0)

    def kill(self) -> None:
        """End it now."""
        if self.run is not None:
            self.run.kill()

    def status(self) -> dict[str, Any]:
        """Return its ContainerStatus."""
        image = self.spec["image"]
        status: dict[str, Any] = {
            "name": self.name,
            "image": image,
            "imageID": f"local/{image}",
            "restartCount": self.restarts,
            "ready": self.ready
            or (self.init and not self.sidecar and self.done and self.exit == 0),
            "started": self.started,
            "state": self._state(),
        }
        if self.restarts and self._last is not None:
            status["lastState"] = {"terminated": self._last}
        if self._started:
            status["containerID"] = f"local://{self.pod.uid}-{self.name}-{self.restarts}"
        return status

    def _state(self) -> dict[str, Any]:
        if self.running:
            return {"running": {"startedAt": self._started}}
        if self._last is not None and (self.done or self.pod.ending):
            return {"terminated": self._last}
        reason, message = self._waiting
        return {"waiting": {"reason": reason} | ({"message": message} if message else {})}

    async def _start(self) -> Run | None:
        said = ""
        while not self.pod.ending:
            try:
                run = await self._launch()
            except WAITING as error:
                if said != str(error):
                    said = str(error)
                    log.info("%s %s: %s", self.pod.key, self.name, error)
                    self._waiting = (_reason(error), said)
                    self.pod.changed()
                await self.pod.sleep(_RETRY_SECONDS)
                continue
            self._started = now()
            self.exit = None
            self.pod.changed()
            return run
        return None

    async def _launch(self) -> Run:
        launch = await plan_launch(self.pod, self.spec, self.restarts)
        self.probes = Probes(self.spec, self.pod.changed)
        self.run = run = await Run.start(launch, self.pod.agent.settings)
        if self.pod.deleting:  # since when nobody would end it
            run.kill()
        return run

    async def _attend(self, run: Run) -> int:
        """Probe a run until it ends."""
        assert self.probes is not None
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._probe(run))
            hook = (self.spec.get("lifecycle") or {}).get("postStart")
            if hook:
                tasks.create_task(self._after_start(run, hook))
            code = await run.wait()
            self.run = None
            probing.cancel()
        return code

    async def _probe(self, run: Run) -> None:
        assert self.probes is not None
        with contextlib.suppress(asyncio.CancelledError):
            await self.probes.watch(self.pod.agent.probing, run)
            if not self.probes.healthy and not self.pod.ending:
                log.info("%s %s: liveness or startup probe failed", self.pod.key, self.name)
                await self._restart(run)

    async def _restart(self, run: Run) -> None:
        grace = float(self.pod.spec.get("terminationGracePeriodSeconds", 30))
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook:
            await self._before_stop(run, hook, grace)
        run.send(signal.SIGTERM)
        await asyncio.sleep(grace)
        run.kill()

    async def _before_stop(self, run: Run, hook: dict[str, Any], grace: float) -> None:
        """The hook ends with its container: a container that has gone needs no more time."""
        doing = asyncio.ensure_future(handle(self.pod.agent.hooking, hook, run, self.spec, grace))
        while not doing.done() and self.run is run and not self.pod.gone:
            await asyncio.wait([doing], timeout=0.1)
        if not doing.done():
            doing.cancel()
        elif not doing.result():
            log.info("%s %s: preStop hook failed", self.pod.key, self.name)

    async def _after_start(self, run: Run, hook: dict[str, Any]) -> None:
        if not await handle(self.pod.agent.hooking, hook, run, self.spec, 30):
            run.kill()

    def _note_exit(self, code: int) -> None:
        self.exit = code
        self._last = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": self._started,
            "finishedAt": now(),
            "containerID": f"local://{self.pod.uid}-{self.name}-{self.restarts}",
        }


def now() -> str:
    """Return the time as the API has it: UTC, seconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reason(error: BaseException) -> str:
    return "ErrImagePull" if isinstance(error, BadConfig) else "CreateContainerConfigError"
