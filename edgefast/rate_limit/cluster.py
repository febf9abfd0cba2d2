"""Cluster: counters in a Redis Cluster: 64 tags, each at the primary that owns its slot.

In: checks, and the configured nodes.
Out: calls, one per tag and 512 checks, in one write per primary; tags are not counted together
atomically. The map is read from any node that answers: at first, when a slot has moved, and when a
primary is not reachable. A moved slot is followed at once; the map is read afterwards.
Source: Redis Cluster specification, "Redirection and resharding".
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from edgefast import ir
from edgefast.rate_limit.address_list import AddressList
from edgefast.rate_limit.call import Call, cut_calls
from edgefast.rate_limit.connector import Connector
from edgefast.rate_limit.error_reply import CODES, Refusal, Refused
from edgefast.rate_limit.link import Link
from edgefast.rate_limit.primary import CLOSED, Callbacks, Primary
from edgefast.rate_limit.retry import RetryLoop
from edgefast.rate_limit.script import Check
from edgefast.rate_limit.tags import COUNT, complete_address, read_slots, tag_of

__all__ = ["Cluster"]

_SHARE = 0.3  # of an attempt to read the map, for one node
_SILENT = Refusal("timeout", "no node of the cluster answers in time")


class Cluster:
    """All primaries of a cluster, and the map."""

    def __init__(
        self, config: ir.RateLimitStore, connector: Connector, callbacks: Callbacks, deadline: float
    ) -> None:
        self._seeds = config.addresses
        self._connector = connector
        self._callbacks = callbacks
        self._deadline = deadline
        self._timeout = config.timeout / 1000
        self._servers = AddressList(config.addresses)
        self._owners: tuple[str, ...] = ("",) * COUNT  # address by tag
        self._known = False  # a map has been read
        self._at: dict[str, Primary] = {}  # by address
        self._waiting: list[Check] = []  # for the first map
        self._map = RetryLoop(self._read_map, self._on_map, self._on_map_failed, deadline)

    @property
    def primaries(self) -> Sequence[Primary]:
        """All that hold counters, and some that lately did."""
        return tuple(self._at.values())

    @property
    def available(self) -> bool:
        """Some counters can be asked."""
        if not self._known:
            return not self._map.breaker.open
        return any(not primary.retry.breaker.open for primary in self._at.values())

    def start(self) -> None:
        """Begin to read the map."""
        self._map.start()

    def submit(self, checks: list[Check]) -> None:
        """Send each check to the owner of its tag."""
        if not self._known:
            if self._map.trying and not self._map.breaker.open:
                self._waiting += checks
            else:
                self._callbacks.refuse(checks, self._map.refusal)
            return
        groups: dict[int, list[Check]] = {}
        for check in checks:
            groups.setdefault(tag_of(check.key), []).append(check)
        batches: dict[str, list[Call]] = {}
        for tag, group in groups.items():
            batches.setdefault(self._owners[tag], []).extend(cut_calls(group))
        for address, calls in batches.items():
            self._send(address, calls)

    def expire(self, late: Set[int], now: float) -> None:
        """Give up checks, by their ids."""
        waiting = [check for check in self._waiting if id(check) not in late]
        if len(waiting) < len(self._waiting):
            self._waiting = waiting
            if self._map.breaker.on_late(now, self._timeout):
                self._callbacks.note(None, _SILENT)
        for primary in tuple(self._at.values()):
            primary.expire(late, now)

    def follow(self, call: Call, refusal: Refusal, requested: Primary) -> None:
        """Send a call where its slot is said to be."""
        address = complete_address(refusal.address, requested.name)
        call.asking = refusal.then == "ask"
        if not call.asking:
            owners = list(self._owners)
            owners[call.tag] = address
            self._owners = tuple(owners)
            self.look_again(address)
        self._send(address, [call])

    def look_again(self, address: str = "") -> None:
        """Read the map again, at `address` first, which knows better."""
        if address:
            self._servers.prefer(address)
        self._map.need()

    def close(self) -> None:
        """End."""
        self._map.close()
        if self._waiting:
            self._callbacks.refuse(self._waiting, CLOSED)
            self._waiting = []
        for primary in self._at.values():
            primary.close()

    def _send(self, address: str, calls: list[Call]) -> None:
        if not address:
            self.look_again()
            for call in calls:
                self._callbacks.refuse(call.checks, CODES["CLUSTERDOWN"])
            return
        self._place(address).submit(calls)

    def _place(self, address: str) -> Primary:
        primary = self._at.get(address)
        if primary is None:
            open_link = partial(self._open, address)
            primary = Primary(address, open_link, self._callbacks, self._deadline, self._timeout)
            self._at[address] = primary
            primary.start()
        return primary

    async def _open(self, address: str) -> Link:
        # One that owns nothing is importing a slot; it would refuse to count.
        tag = self._owners.index(address) if address in self._owners else None
        return await self._connector.open(address, tag)

    async def _read_map(self) -> None:
        owners = await self._servers.ask(self._ask, _SHARE * self._deadline)
        if not any(owners):
            raise Refused(CODES["CLUSTERDOWN"])
        self._owners = owners

    async def _ask(self, address: str) -> tuple[str, ...]:
        return read_slots(await self._connector.ask(address, "CLUSTER", "SLOTS"), address)

    def _on_map(self) -> None:
        self._map.breaker.on_success()
        self._known = True
        owning = {address for address in self._owners if address}
        for address in [one for one in self._at if one not in owning and self._at[one].idle]:
            primary = self._at.pop(address)
            primary.close()
            self._callbacks.forget(primary)
        for address in owning:
            self._place(address)
        self._servers.drop_all_but((*owning, *self._seeds))
        self._callbacks.note(None, None)
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.submit(waiting)

    def _on_map_failed(self, refusal: Refusal) -> None:
        # An old map is better than none: it stays, and with it what is available.
        self._map.breaker.on_failure()
        self._callbacks.note(None, refusal)
        if self._waiting:
            self._callbacks.refuse(self._waiting, refusal)
            self._waiting = []
