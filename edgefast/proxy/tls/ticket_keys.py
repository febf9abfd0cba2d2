"""TicketKeys: the secrets of session tickets: the agent's own, or those of a controller.

In: time, a source of randomness, a controller's secrets (`use`).
Out: the ring, written when a change is due. Workers select by time from its contents, so no step
needs exact timing. The agent creates its own secrets if the controller sent none, or if none of
them can encrypt any more.
Must never: leave the ring without a secret that encrypts while the agent runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable

from edgefast.proxy.tls.ticket_key_rotation import find_due, plan_given, plan_own
from edgefast.proxy.tls.ticket_memory import TicketMemory
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["TicketKeys"]

log = logging.getLogger(__name__)

#: Seconds between two looks at most: timers stand still while a machine sleeps, and the ring's clock does not.
_LOOK = 60.0
_SECRET = 32


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class TicketKeys:
    """Selects and rotates the secrets of TLS session tickets.

    `run` is a part of the agent's life.
    """

    def __init__(
        self,
        ring: TicketMemory,
        clock: Callable[[], int] = _boot_ms,
        make: Callable[[], bytes] = lambda: secrets.token_bytes(_SECRET),
    ) -> None:
        """`ring`: owned from here on, with the secrets of the process before, if any."""
        self.ring = ring
        self._clock = clock
        self._chance = make
        self._own: set[bytes] = set()  # what this process made and still has
        self._given: TicketSecrets | None = None
        self._moved = asyncio.Event()  # something else may be due first
        self.look()

    @property
    def fd(self) -> int:
        """The ring's descriptor, for workers and successors."""
        return self.ring.fd

    def use(self, given: TicketSecrets | None) -> None:
        """Use a controller's secrets from now on, None: one's own."""
        if given is None:
            if self._given is not None:
                self._given = None
                log.info(
                    "session tickets: using keys of this process, which other replicas do not have"
                )
                # Nobody renews the controller's: they end, and the own ones begin.
                now = self._clock()
                held = [one for one in self.ring.read() if one.begins <= now]
                self._moved.set()
                self.ring.write(plan_own(held, now, self._make))
            return
        if self._given is None:
            log.info("session tickets: using keys of the controller, which all replicas share")
        self._given = given
        self._moved.set()
        self.ring.write(plan_given(self.ring.read(), self._clock(), given, self._own))

    def look(self) -> float:
        """Do what is due; returns seconds until the next look."""
        now = self._clock()
        held = self.ring.read()
        if self._given is None or not any(one.begins <= now < one.ends for one in held):
            self._given = None
            planned = plan_own(held, now, self._make)
        else:
            planned = tuple(one for one in held if now < one.forgotten)
        if planned != held:
            self.ring.write(planned)
            self._own.intersection_update(one.secret for one in planned)
        return min(_LOOK, max(0.001, (find_due(planned, now) - now) / 1000))

    def _make(self) -> bytes:
        made = self._chance()
        self._own.add(made)
        return made

    async def run(self) -> None:
        """Look after the ring, until cancelled."""
        while True:
            self._moved.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.look()):
                    await self._moved.wait()

    def close(self) -> None:
        """Let go of the ring."""
        self.ring.close()
