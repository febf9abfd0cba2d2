"""ConsoleSource: the data of a proxy's console: its agent, its workers, the applied table, the counters.

In: the agent, its list of limit counters.
Out: a `Source` (edgefast.console). All methods but `count` run in the loop.
Must never: return bytes of secrets; the console gets the table unchanged and reads no secret of it.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import edgefast
from edgefast.console import ChangeRecord, Counters, Member, Table, make_row
from edgefast.core.cells import BUCKET_BOUNDS_MS, LIMIT, ROW
from edgefast.diagnostics.problem import Problem
from edgefast.monitoring.proxy_metrics import HANDSHAKES_DONE
from edgefast.proxy.admin.active_config import read_now, read_resources
from edgefast.proxy.admin.limit_list import LimitList, Unread
from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.agent.worker_slot import WorkerSlot
from edgefast.proxy.metrics.stats import sum_globals, sum_limits, sum_policies, sum_rows
from edgefast.proxy.sockets.bind_address import show_bind_address
from edgefast.table import Resource, Shards
from edgefast.table.shards import Key

if TYPE_CHECKING:
    from edgefast.explain import Live

__all__ = ["ConsoleSource"]

_FLEET = "standalone"
_ABORTED = ROW.index("requests_aborted")
_TIME = ROW.index("duration_us")
_FIRST_BUCKET = ROW.index("duration_bucket_0")
#: The cells of gRPC statuses follow the last one.
_BUCKETS = slice(_FIRST_BUCKET, _FIRST_BUCKET + len(BUCKET_BOUNDS_MS) + 1)
_RESULTS = tuple(LIMIT.index(name) for name in ("ok", "over", "shadow_over", "error"))


class ConsoleSource:
    """Supplies the console of a proxy with the agent's state, table and counters."""

    kind: Literal["proxy", "controller"] = "proxy"
    bounds: tuple[float, ...] = BUCKET_BOUNDS_MS

    def __init__(self, agent: Agent, limits: LimitList) -> None:
        self._agent = agent
        self._limits = limits
        self._past = ChangeRecord()
        self._resources: tuple[object, Mapping[Key, Resource]] = (None, {})
        agent.on_table = self._on_table

    def _on_table(self, before: Shards | None, after: Shards) -> None:
        self._past.note(before, after, time.time())

    def fleets(self) -> Sequence[str]:
        """Return the one name there is."""
        return (_FLEET,)

    def past(self, _: str) -> ChangeRecord:
        """Return the last changes."""
        return self._past

    def problems(self) -> Sequence[Problem]:
        """Return those of the files, of ports and of workers."""
        agent = self._agent
        return tuple(dict.fromkeys((*agent.source_problems, *agent.problems)))

    def table(self, fleet: str) -> Table | None:
        """Return the applied table: where a worker refused a resource, with the one in its place."""
        agent, table = self._agent, self._agent.ledger.current
        if fleet != _FLEET:
            return None
        state = (table.epoch, len(table.refused))
        if self._resources[0] != state:
            self._resources = (state, read_resources(agent))
        return Table(
            state=state,
            version=table.version,
            accepted=agent.table_at,
            resources=self._resources[1],
        )

    # --- what operators see ---------------------------------------------------------------------

    def facts(self) -> Mapping[str, Any]:
        """Return the agent in words."""
        agent = self._agent
        phase = agent.drain.phase
        ready = agent.ready
        stream = agent.stream()
        last = agent.last_good
        shaken = _handshakes(sum_globals([slot.segment for slot in agent.slots]))
        return {
            "name": os.uname().nodename,
            "version": edgefast.__version__,
            "state": "good" if ready else "bad" if phase == "serving" else "late",
            "said": "ready" if ready else "not ready" if phase == "serving" else "draining",
            "started": agent.started_at,
            "rows": [
                ("python", platform.python_version()),
                ("TLS library", agent.tls or "no worker has reported yet"),
                *([("TLS handshakes", shaken)] if shaken else []),
                ("process", str(os.getpid())),
                *(
                    [("zone", _describe_zone(agent))]
                    if agent.own_zone.zone or agent.own_zone.asked
                    else []
                ),
                ("tables applied", str(agent.tables)),
                ("table memory", f"{agent.arena.used / 2**20:.1f} MiB"),
                ("listens on", ", ".join(map(show_bind_address, agent.bound())) or "nothing"),
                ("log level", agent.log_level),
                *([("tables come from", stream.server)] if stream is not None else []),
                *([("last good table", str(last.path))] if last is not None else []),
            ],
        }

    def members(self) -> Sequence[Member]:
        """Return the workers."""
        return [self._describe(slot) for slot in self._agent.slots]

    def _describe(self, slot: WorkerSlot) -> Member:
        ledger = self._agent.ledger
        held = ledger.held_by(slot.number)
        facts = (("process", str(slot.pid)), ("restarts", str(slot.restarts)))
        version = held.version if held else ""
        name = f"worker {slot.number}"
        if not slot.connected or held is None:
            message = "serves no table yet" if slot.connected else "does not run"
            return Member(name=name, version=version, state="bad", said=message, facts=facts)
        if held.epoch != ledger.current.epoch:
            return Member(
                name=name, version=version, state="late", said="serves an older table", facts=facts
            )
        return Member(name=name, version=version, said="serves", facts=facts)

    # --- numbers --------------------------------------------------------------------------------

    def count(self) -> Counters:
        """Read all counters; runs in a thread."""
        segments = [slot.segment for slot in self._agent.slots]
        rows = {
            label: make_row(cells[:5], cells[_ABORTED], cells[_TIME], cells[_BUCKETS])
            for label, cells in sum_rows(segments).items()
        }
        limits = {
            label: tuple(cells[at] for at in _RESULTS)
            for label, cells in sum_limits(segments).items()
        }
        return Counters(rows, limits, sum_globals(segments), sum_policies(segments))

    async def live(self) -> Live | None:
        """Ask the workers for their endpoints, and the store for its counters."""
        return await read_now(self._agent, self._limits)

    async def counters(self) -> Sequence[Mapping[str, Any]] | str | None:
        """Return what GET /limits lists."""
        if ("limit_store", "store") not in self._agent.ledger.current.placed:
            return []
        try:
            return await self._limits.list_rows()
        except Unread as error:
            return str(error)


def _handshakes(totals: Mapping[str, int]) -> str:
    """Tell how many clients made, and of what kind; "" before the first."""
    done = {name: count for name, count in totals.items() if name.startswith(HANDSHAKES_DONE)}
    total = sum(done.values())
    if not total:
        return ""
    resumed = sum(count for name, count in done.items() if name.endswith("_true"))
    newest = sum(count for name, count in done.items() if name.startswith(f"{HANDSHAKES_DONE}1.3"))
    return f"{total}: {resumed / total:.0%} resumed, {newest / total:.0%} TLS 1.3"


def _describe_zone(agent: Agent) -> str:
    """Return where the proxy is, and where the ready ones of its fleet are."""
    own = agent.own_zone
    shares = ", ".join(f"{count} in {zone}" for zone, count in sorted(own.shares.items()))
    return (own.zone or "not known") + (f" (ready proxies: {shares})" if shares else "")
