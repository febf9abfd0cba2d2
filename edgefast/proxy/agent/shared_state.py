"""SharedState: the data that all worker slots share, and the phase that they follow.

In: created once by the agent.
Out: every slot (worker_slot.py) and the drain read it.
Must never: decide anything; it only holds references to the shared parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from edgefast.proxy.agent.zone import ProxyZone
from edgefast.proxy.control import messages
from edgefast.proxy.health.memory import HealthMemory
from edgefast.proxy.jwks.key_delivery import PublishedKeys
from edgefast.proxy.limits.memory import LimitMemory
from edgefast.proxy.sockets.bind_address import Place
from edgefast.proxy.sockets.listeners import Listeners
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import Key, Refusal, WorkerTables
from edgefast.proxy.tls.ticket_keys import TicketKeys

__all__ = ["Phase", "SharedState"]

#: serving -> draining (accept, but close connections) -> stopping (accept no more).
Phase = Literal["serving", "draining", "stopping"]


class SharedState:
    """What all slots share."""

    def __init__(
        self,
        command: Sequence[str],
        arena: Arena,
        limits: LimitMemory,
        health: HealthMemory,
        tickets: TicketKeys,
        ledger: WorkerTables,
        listeners: Listeners,
        log_level: str,
        access_log: str,
        on_refused: Callable[[list[Refusal]], None],
        on_short: Callable[[set[Key]], None],
        on_poison: Callable[[], None],
        on_progress: Callable[[], None],
    ) -> None:
        self.command = command
        self.arena = arena
        self.limits = limits
        self.health = health
        self.tickets = tickets
        self.ledger = ledger
        self.listeners = listeners
        self.log_level = log_level
        self.access_log = access_log
        self.own_zone = ProxyZone(arena, "", "")
        self.phase: Phase = "serving"
        #: Places whose queues live on elsewhere when this process stops; None: all are emptied and closed.
        self.left: frozenset[Place] | None = None
        self.patient = True  # connections from before the drain are waited for
        self.outlive: tuple[int, messages.Outlive] | None = (
            None  # with a descriptor: for workers without agent
        )
        self.on_refused = on_refused
        self.on_short = on_short
        self.on_poison = on_poison
        self.on_progress = on_progress
        self.on_spans: Callable[[bytes], None] = lambda _: None  # what traced requests tell
        self.keys: Mapping[tuple[str, str, str], PublishedKeys] = {}  # of issuers, that are fetched
        self.on_keys_wanted: Callable[[tuple[str, str, str]], None] = lambda _: None
        #: With the life of a worker that asks.
        self.on_tokens_wanted: Callable[
            [object, messages.TokensWanted, Callable[[messages.Tokens], None]], None
        ] = lambda _, wanted, answer: answer(messages.Tokens(wanted.number, "provider"))
        self.on_cancel_tokens: Callable[[object, int], None] = lambda *_: None
        self.on_connections_wanted: Callable[[int, str], None] = lambda *_: None  # by whom, of what
        self.on_uncounted: Callable[[messages.Uncounted], None] = lambda _: None

    @property
    def stopping(self) -> bool:
        """Whether no worker may accept or be replaced any more."""
        return self.phase == "stopping"
