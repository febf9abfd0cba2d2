"""Lease: elects the replica that writes, by the rules of client-go's leader election.

In: a Lease object that all replicas try to hold.
Out: `leading`, `holder` and `on_change`. A holder renews the Lease. Another replica takes over when
it has seen no renewal for the lease's duration, measured with its own monotonic clock since the
last renewal it saw. Clocks of machines are never compared.
Source: client-go tools/leaderelection.
Must never: report `leading` when another replica may have taken over, however long this process was
stopped.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import math
import random
import time
from collections.abc import Callable
from typing import Any

import msgspec

from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from edgefast.api.config.edgegateway import LeaderElection
from edgefast.api.model.units import parse_duration

__all__ = ["Lease", "LeaseTimes", "lease_name"]

log = logging.getLogger(__name__)

_API = APIS["coordination.k8s.io/v1", "Lease"]
#: Waiting for a turn varies by this factor, as in client-go, so that replicas do not ask in step.
_JITTER = 1.2


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; duration > deadline > retry. `disabled`: this replica is alone, and leads without a Lease."""

    duration: float = 15.0  # a silent holder is waited for
    deadline: float = 10.0  # a holder that cannot renew stops leading after this
    retry: float = 2.0  # between tries
    disabled: bool = False

    @staticmethod
    def of(config: LeaderElection) -> LeaseTimes:
        """Derive the times from the configuration."""
        return LeaseTimes(
            duration=parse_duration(config.lease_duration) / 1000,
            deadline=parse_duration(config.renew_deadline) / 1000,
            retry=parse_duration(config.retry_period) / 1000,
            disabled=config.disable,
        )


class Lease:
    """Leader election between replicas with a Lease.

    `run` it as a task. `identity` is unique per process: "<pod>_<ip>".
    """

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self.holder = ""  # as last seen; "" when nobody holds it
        self.transitions = 0  # of the Lease, as last seen
        self.on_change = on_change
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._times = times or LeaseTimes()
        self._path = _API.path(namespace, name)
        self._seen: dict[str, Any] | None = None  # the Lease as last seen
        self._seen_at = 0.0  # monotonic, when it was first seen like that
        self._leads_until = 0.0  # monotonic
        self._alone = False  # leading without a Lease
        self._reported = False  # what on_change was last called for

    @property
    def leading(self) -> bool:
        """Whether this replica may write now."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Seconds for which this replica leads even if nothing more is heard; 0 when it does not lead.

        A write begun while leading ends before anybody else can lead when its own deadline is at most
        `remaining` plus the difference of duration and deadline (5 s).
        """
        if self._alone:
            return self._times.deadline
        return max(0.0, self._leads_until - time.monotonic())

    async def run(self) -> None:
        """Try to lead, for ever; when cancelled, give the Lease back so that the next one need not wait."""
        try:
            if self._times.disabled:
                self._alone, self.holder = True, self.identity
                self._notify()
                await asyncio.Event().wait()
            while True:
                await self._step()
                await self._wait()
        finally:
            await self._release()

    async def _step(self) -> None:
        """Try once to take or to renew."""
        try:
            # Less than the time between two tries of others after the deadline, and never beyond it.
            deadline = self._times.deadline / 2
            if self.leading:
                deadline = max(0.1, min(deadline, self.remaining))
            await self._try(deadline)
        except ApiError as error:
            # A conflict is the other replica's success; all else is worth a line.
            if not error.conflict and not error.exists:
                log.warning("Lease %s/%s: %s; retrying", self._namespace, self._name, error)
        self._notify()

    async def _wait(self) -> None:
        """Wait for the next try; notice meanwhile that leading has ended."""
        retry = self._times.retry
        seconds = retry if self.leading else random.uniform(retry, retry * (1 + _JITTER))
        end = time.monotonic() + seconds
        if self.leading and self._leads_until < end:
            await asyncio.sleep(self.remaining)
            self._notify()
        await asyncio.sleep(max(0.0, end - time.monotonic()))

    async def _try(self, deadline: float) -> None:
        began = time.monotonic()
        if self.leading and self._seen is not None:
            # The holder needs no look: its version says whether somebody wrote in between.
            try:
                await self._put(self._seen, began, deadline)
                return
            except ApiError as error:
                if error.passing:
                    raise
        try:
            found = await self._kube.get(self._path, deadline=deadline, urgent=True)
        except ApiError as error:
            if not error.not_found:
                raise
            await self._create(began, deadline)
            return
        self._observe(found)
        if not self._may_take():
            self._leads_until = 0.0  # somebody else holds it, whatever we believed
            return
        await self._put(found, time.monotonic(), deadline)

    def _observe(self, found: dict[str, Any]) -> None:
        """Note what the Lease says; its time begins when something in it is new."""
        spec = found.get("spec") or {}
        if self._seen is None or spec != self._seen.get("spec"):
            self._seen_at = time.monotonic()
        self._seen = found
        self.transitions = spec.get("leaseTransitions") or 0
        holder = spec.get("holderIdentity") or ""
        if holder != self.holder:
            self.holder = holder
            log.info("Lease %s/%s: held by %s", self._namespace, self._name, holder or "nobody")

    def _may_take(self) -> bool:
        if self.holder in ("", self.identity):
            return True
        spec = (self._seen or {}).get("spec") or {}
        duration = spec.get("leaseDurationSeconds") or self._times.duration
        return time.monotonic() - self._seen_at >= duration

    async def _create(self, began: float, deadline: float) -> None:
        manifest = {
            "apiVersion": _API.api_version,
            "kind": _API.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec({}, began_leading=True, transitions=0),
        }
        self._taken(await self._kube.create(manifest, deadline=deadline, urgent=True), began)

    async def _put(self, lease: dict[str, Any], began: float, deadline: float) -> None:
        spec = lease.get("spec") or {}
        ours = spec.get("holderIdentity") == self.identity
        transitions = (spec.get("leaseTransitions") or 0) + (0 if ours else 1)
        changed = {
            **lease,
            "spec": self._spec(spec, began_leading=not ours, transitions=transitions),
        }
        self._taken(await self._kube.replace(changed, deadline=deadline, urgent=True), began)

    def _taken(self, lease: dict[str, Any], began: float) -> None:
        """The Lease is ours; its time runs from before it was asked for."""
        self._observe(lease)
        self._leads_until = began + self._times.deadline

    def _spec(
        self, before: dict[str, Any], *, began_leading: bool, transitions: int
    ) -> dict[str, Any]:
        now = _micro_time()
        return {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._times.duration),
            "acquireTime": now if began_leading else before.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Stop leading; then say so, if it can be said."""
        led, seen = self.leading and not self._alone, self._seen
        self._leads_until, self._alone = 0.0, False
        self._notify()
        if not led or seen is None:
            return
        deadline = self._times.retry
        try:
            try:
                await self._put_back(seen, deadline)
            except ApiError as error:
                if not error.conflict:
                    raise
                # Cancelled in the middle of a renewal, which has been made nevertheless.
                found = await self._kube.get(self._path, deadline=deadline, urgent=True)
                if (found.get("spec") or {}).get("holderIdentity") == self.identity:
                    await self._put_back(found, deadline)
        except ApiError as error:
            # With an installation go its Roles, its Lease and its pods, in any order: nobody waits for the Lease then.
            level = logging.INFO if error.forbidden or error.not_found else logging.WARNING
            log.log(level, "Lease %s/%s: not released: %s", self._namespace, self._name, error)

    async def _put_back(self, lease: dict[str, Any], deadline: float) -> None:
        now = _micro_time()
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
        }
        await self._kube.replace({**lease, "spec": spec}, deadline=deadline, urgent=True)
        self.holder = ""

    def _notify(self) -> None:
        leading = self.leading
        if leading != self._reported:
            self._reported = leading
            log.info(
                "Lease %s/%s: %s",
                self._namespace,
                self._name,
                "leading" if leading else "not leading",
            )
            self.on_change()


def lease_name(name: str) -> str:
    """Return the Lease of a release by the name of its Service: replicas of one release elect one leader."""
    return f"{name}-leader"


def _micro_time() -> str:
    """Return now as a MicroTime of the API; for people only, nobody compares it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
