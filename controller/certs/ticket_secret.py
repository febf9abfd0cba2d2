"""TicketSecret: the Secret `<name>-tickets`, from which the session ticket keys of all fleets are derived.

In: the Secret, time, a source of randomness.
Out: the secrets of each fleet, and `on_change`; the Secret, which only the leader creates, rotates
and repairs. An error that prevents its use is reported (`on_trouble`) and has one effect: proxies
use their own keys, and clients resume at one replica only.
Must never: write a Secret of another owner, or put a key into a log or an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from controller.certs.secrets import MANAGED_BY, SecretApi, Secrets, Stored
from controller.certs.ticket_key_rotation import (
    PERIOD,
    Tickets,
    decode_tickets,
    derive_for_fleet,
    encode_tickets,
    is_due,
    make_tickets,
    rotate_tickets,
)
from controller.kube.errors import ApiError
from edgefast.xds.ticket_messages import SECRET
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["TicketSecret", "tickets_name"]

log = logging.getLogger("edgefast.controller.certs")

#: Seconds between two looks at the Secret, and while there are no keys.
_EVERY = 20.0
_EVERY_WITHOUT = 5.0


def tickets_name(name: str) -> str:
    """Return the name of the Secret, by the controller's."""
    return f"{name}-tickets"


class TicketSecret:
    """Creates and rotates the Secret from which fleets derive their session ticket keys.

    `run` is a task of the process.
    """

    def __init__(
        self,
        kube: SecretApi,
        namespace: str,
        *,
        name: str,
        leading: Callable[[], bool],
        period: timedelta = PERIOD,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        make: Callable[[], bytes] = lambda: secrets.token_bytes(SECRET),
    ) -> None:
        """`name`: the controller's; `leading`: whether we may write."""
        self.on_change: Callable[[], None] = _nobody
        self.on_trouble: Callable[[str], None] = _nobody_hears
        self.trouble = ""  # what keeps the Secret from being had, or from being right
        self._secrets = Secrets(kube, namespace)
        self._name = tickets_name(name)
        self._message = f"Secret {namespace}/{self._name}"
        self._leading = leading
        self._period = period
        self._clock = clock
        self._monotonic = monotonic
        self._make = make
        self._held: Tickets | None = None
        self._seen_at = 0.0  # monotonic: when `_held` became what it is, to us
        self._moved_at: float | None = None  # the same, when it was another one before
        self._wake = asyncio.Event()

    def given(self, fleet: str) -> TicketSecrets | None:
        """Return what proxies of a fleet ("namespace/name") are given; None while there is nothing."""
        return derive_for_fleet(self._held, fleet) if self._held is not None else None

    def look(self) -> None:
        """Have `run` look at once: this process leads from now on."""
        self._wake.set()

    async def run(self) -> None:
        """Look after the Secret, until cancelled."""
        while True:
            await self.step()
            every = _EVERY if self._held is not None and not self.trouble else _EVERY_WITHOUT
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every * random.uniform(0.8, 1.2)):
                    await self._wake.wait()
            self._wake.clear()

    async def step(self) -> None:
        """One look: read; the leader makes, repairs, rotates. Tells what went wrong."""
        try:
            problem = await self._step()
        except ApiError as error:
            # Another replica was faster: the next look sees what it wrote.
            problem = (
                self.trouble if error.conflict or error.exists else f"{self._message}: {error}"
            )
        if problem and problem != self.trouble:
            log.warning("keys of session tickets: %s", problem)
        if problem:
            self.on_trouble(problem)
        elif self.trouble:
            log.info("keys of session tickets: %s is valid again", self._message)
        self.trouble = problem

    async def _step(self) -> str:
        stored = await self._secrets.read(self._name)
        if stored is None:
            return await self._make_secret()
        if not _is_ours(stored):
            return f"{self._message} was not created by this controller and is not changed; delete it, or label it app.kubernetes.io/managed-by={MANAGED_BY}"
        try:
            found = decode_tickets(stored.data)
        except ValueError as error:
            return await self._repair(stored, str(error))
        self._take(found)
        if self._leading() and self._is_due(found):
            fresh = rotate_tickets(found, self._make, self._clock())
            await self._secrets.replace(stored, encode_tickets(fresh))
            self._take(fresh)
            log.info("keys of session tickets were rotated")
        return ""

    async def _make_secret(self) -> str:
        """Make it, with the keys that are in use, if there are any: somebody has deleted it."""
        if not self._leading():
            return ""
        made = self._held or make_tickets(self._make, self._clock())
        await self._secrets.create(self._name, encode_tickets(made), opaque=True)
        self._take(made)
        log.info("%s was made", self._message)
        return ""

    async def _repair(self, stored: Stored, why: str) -> str:
        """Put the keys that are in use, or new ones, in the place of what cannot be read."""
        if not self._leading():
            return ""
        log.warning("%s: %s; it is replaced", self._message, why)
        made = self._held or make_tickets(self._make, self._clock())
        await self._secrets.replace(stored, encode_tickets(made))
        self._take(made)
        return ""

    def _take(self, found: Tickets) -> None:
        if found == self._held:
            return
        self._seen_at = self._monotonic()
        if self._held is not None:
            self._moved_at = self._seen_at
        self._held = found
        self.on_change()

    def _is_due(self, held: Tickets) -> bool:
        now = self._monotonic()
        moved = None if self._moved_at is None else timedelta(seconds=now - self._moved_at)
        seen = timedelta(seconds=now - self._seen_at)
        return is_due(held, self._clock(), seen, moved, self._period)


def _is_ours(stored: Stored) -> bool:
    labels = stored.manifest["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/managed-by") == MANAGED_BY


def _nobody() -> None:
    """Nobody listens yet."""


def _nobody_hears(text: str) -> None:
    """Nobody listens yet."""
