"""Events: Kubernetes Events about objects that need a user's action.

In: an object, a reason, a text.
Out: Events of type Warning, each text about an object at most once an hour, and never more than a
burst at a time: a thousand invalid routes have a thousand statuses, but not a thousand Events at
once. Only the leader writes them.
Source: events.k8s.io/v1.
Must never: make the caller wait for the API server, or fail for any reason but cancellation.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from edgefast.diagnostics.reasons.mentions import MORE, lead_on

__all__ = ["About", "Events"]

log = logging.getLogger(__name__)

AGAIN = 3600.0  # seconds before the same is told again
_BURST = 25
_RATE = 1 / 2.0  # Events a second, after the burst
_QUEUE = 256
_KEPT = 4096  # texts remembered
_NOTE_LIMIT = 1024  # bytes; the API's limit


class About(msgspec.Struct, frozen=True):
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class Events:
    """Writes Kubernetes Events at a limited rate; `run` is a task of the process."""

    def __init__(
        self,
        create: Callable[[dict[str, Any]], Awaitable[Any]],
        leading: Callable[[], bool],
        instance: str,
        count: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        """`create` is awaited with a manifest; `count` gets "written", "repeated", "dropped" or "failed"."""
        self._create = create
        self._leading = leading
        self._instance = instance
        self._count = count
        self._queue: asyncio.Queue[tuple[About, str, str]] = asyncio.Queue(_QUEUE)
        self._reported: OrderedDict[tuple[About, str, bytes], float] = OrderedDict()
        self._tokens, self._filled = float(_BURST), time.monotonic()

    @property
    def written(self) -> bool:
        """Whether what is told now is written: this replica leads."""
        return self._leading()

    def is_reported(self, about: About, reason: str, text: str) -> bool:
        """Return whether the last hour had the same Event, so that `warn` does not write it."""
        last = self._reported.get(_key(about, reason, text), -AGAIN)
        return time.monotonic() - last < AGAIN

    def warn(self, about: About, reason: str, text: str) -> None:
        """Tell something, if it has not been told of late; returns at once."""
        if not self._leading():
            return
        now = time.monotonic()
        key = _key(about, reason, text)
        if now - self._reported.get(key, -AGAIN) < AGAIN:
            self._count("repeated")
            return
        self._tokens = min(_BURST, self._tokens + (now - self._filled) * _RATE)
        self._filled = now
        if self._tokens < 1 or self._queue.full():
            self._count("dropped")
            return
        self._tokens -= 1
        self._reported[key] = now
        self._reported.move_to_end(key)
        while len(self._reported) > _KEPT:
            self._reported.popitem(last=False)
        self._queue.put_nowait((about, reason, text))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            about, reason, text = await self._queue.get()
            if not self._leading():
                continue
            try:
                await self._create(self._manifest(about, reason, text))
                self._count("written")
            except Exception as error:
                # An Event that is lost is no loss of function: the status says the same.
                self._count("failed")
                log.debug(
                    "Event about %s %s/%s: %s", about.kind, about.namespace, about.name, error
                )

    def _manifest(self, about: About, reason: str, text: str) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.UTC)
        namespace = about.namespace or "default"  # where Events about cluster-scoped objects go
        regarding = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            **({"namespace": about.namespace} if about.namespace else {}),
            **({"uid": about.uid} if about.uid else {}),
        }
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            # As client-go names them: the object and the time.
            "metadata": {
                "name": f"{about.name[:200]}.{time.time_ns():x}",
                "namespace": namespace,
            },
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": "gateway.edge.io/edge-gateway",
            "reportingInstance": self._instance[:128],
            "action": "Translate",
            "type": "Warning",
            "reason": reason,
            "note": _cut(text, reason),
            "regarding": regarding,
        }


def _key(about: About, reason: str, text: str) -> tuple[About, str, bytes]:
    return (about, reason, hashlib.blake2b(text.encode(), digest_size=8).digest())


def _cut(text: str, reason: str) -> str:
    """Return a text and the command that says more about it within the API's limit."""
    text = text.partition(MORE)[0]  # that of a condition has it already, and may be too long
    end = lead_on(reason, text)
    data, room = text.encode(), _NOTE_LIMIT - len(end)
    if len(data) > room:
        text = data[: room - 4].decode(errors="ignore") + " ..."
    return text + end
