"""Simulated workers for the ledger: they remember the bytes that they saw at the moment of their swap.

In: a ledger. Out: what each holds; `check` compares it with what the arena has there now.
"""

from __future__ import annotations

from edgefast.proxy.tables.arena import Block
from edgefast.proxy.tables.worker_tables import Commit, WorkerTables
from edgefast.table.shards import Key

REFUSED = b"bad"


class Worker:
    """Applies commits as a real one does: refuses content that begins with `bad`."""

    def __init__(self, ledger: WorkerTables, number: int) -> None:
        self.ledger = ledger
        self.number = number
        self.table: dict[Key, tuple[Block, bytes]] = {}
        self.flight: Commit | None = None

    def fetch(self) -> None:
        commit = self.ledger.commit_for(self.number)
        if commit is not None:
            assert self.flight is None
            self.flight = commit

    def apply(self) -> list[tuple[str, str]]:
        """Swap and acknowledge; returns what the ledger reports as newly refused."""
        commit, self.flight = self.flight, None
        if commit is None:
            return []
        refused = []
        for change in commit.changes:
            key = (change.type, change.name)
            if change.op == "del":
                del self.table[key]
                continue
            block = Block(change.offset, change.length)
            data = self.ledger.arena.read(block)
            if data.startswith(REFUSED):
                refused.append((*key, "it is bad"))
            else:
                self.table[key] = (block, data)
        fresh = self.ledger.on_ack(self.number, commit.epoch, refused)
        return [(one.type, one.name) for one in fresh]

    def check(self) -> None:
        for block, data in self.table.values():
            assert self.ledger.arena.read(block) == data

    @property
    def contents(self) -> dict[Key, bytes]:
        return {key: data for key, (_, data) in self.table.items()}


def settle(workers: list[Worker]) -> None:
    """Let every worker catch up."""
    for _ in range(50):
        for worker in workers:
            worker.fetch()
            worker.apply()
