"""Source: the interface between the console and its process.

In: nothing.
Out: the protocol that proxies and controllers implement, and its plain values. The event loop calls
the methods, except `count`, which runs in a thread; none may take long.
Must never: return key material.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from edgefast import ir
from edgefast.console.change_history import ChangeRecord
from edgefast.console.live_metrics import Counters
from edgefast.diagnostics.problem import Problem
from edgefast.table import Resource
from edgefast.table.shards import Key

if TYPE_CHECKING:  # a proxy with a controller does not translate objects
    from edgefast.explain import Live
    from edgefast.translate.translation import Translation


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What is served of one fleet. Two tables of one `state` are the same."""

    state: tuple[object, ...]
    version: str
    accepted: float  # Unix seconds; 0: never
    resources: Mapping[Key, Resource]
    fleet: ir.Fleet | None = None  # None: it is read from the resources
    translation: Translation | None = None  # where its objects were written, if that is known


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker of a proxy, or a proxy of a fleet."""

    name: str
    group: str = ""  # the fleet
    version: str = ""  # of the table that it holds
    state: Literal["good", "late", "bad"] = "good"
    said: str = ""  # the state in words
    facts: tuple[tuple[str, str], ...] = ()


class Source(Protocol):
    """A process that has a console."""

    kind: Literal["proxy", "controller"]
    bounds: tuple[float, ...]  # of the latency buckets in milliseconds; (): there are no numbers

    def fleets(self) -> Sequence[str]:
        """Return the names of fleets; a proxy has one."""

    def table(self, fleet: str) -> Table | None:
        """Return the table of a fleet, None when there is no such fleet."""

    def past(self, fleet: str) -> ChangeRecord:
        """Return the last changes of its table."""

    def problems(self) -> Sequence[Problem]:
        """Return all that is wrong now."""

    def facts(self) -> Mapping[str, Any]:
        """Return the process in words: name, product version, `state` (good, late, bad), `said`, and more."""

    def members(self) -> Sequence[Member]:
        """Return workers, or proxies."""

    def count(self) -> Counters:
        """Read the counters."""

    async def live(self) -> Live | None:
        """Return what is known of endpoints and of counters of limits now; None: nothing."""

    async def counters(self) -> Sequence[Mapping[str, Any]] | str | None:
        """Return live counters as GET /limits has them, those at their end first; text: why not; None: nobody knows."""
