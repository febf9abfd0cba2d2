"""What the ledger does about refused resources: which version comes back, with what, and until when."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from edgefast import ir
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import WorkerTables
from proxy.shards import make_shards
from proxy.simulated import Worker, settle

A, B = ("cluster", "a"), ("cluster", "b")


@pytest.fixture
def ledger() -> Iterator[WorkerTables]:
    arena = Arena(1024 * 1024)
    yield WorkerTables(arena)
    arena.close()


def test_a_successor_that_refuses_first_takes_nothing_from_the_others(ledger: WorkerTables) -> None:
    """It has no version before: the one that the others serve is the one to come back."""
    other, dying = Worker(ledger, 0), Worker(ledger, 1)
    ledger.advance(make_shards({A: b"1", B: b"1"}))
    settle([other, dying])
    ledger.advance(make_shards({A: b"bad", B: b"2"}))
    ledger.forget(1)
    successor = Worker(ledger, 1)
    successor.fetch()
    assert successor.apply() == [A]
    settle([other, successor])
    assert other.contents == successor.contents == {A: b"1", B: b"2"}
    assert ledger.arena.retired == 0


def test_what_others_take_is_not_taken_from_them(ledger: WorkerTables) -> None:
    """A worker may be short of something: the others keep what it could not take."""
    other = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1", B: b"1"}))
    settle([other])
    commit = ledger.commit_for(1)
    assert commit is not None
    assert [one.name for one in ledger.on_ack(1, commit.epoch, [(*A, "short")])] == ["a"]
    settle([other])
    assert other.contents == {A: b"1", B: b"1"}
    assert list(ledger.current.refused) == [A]
    # Tried again with the next table; refused once more it is no news.
    commit = ledger.commit_for(1)
    assert commit is not None
    assert [change.name for change in commit.changes] == ["a"]
    assert ledger.on_ack(1, commit.epoch, [(*A, "short")]) == []
    assert ledger.commit_for(1) is None
    # And taken at last: nothing is refused any more.
    assert ledger.retry([A])
    commit = ledger.commit_for(1)
    assert commit is not None
    assert [change.name for change in commit.changes] == ["a"]
    ledger.on_ack(1, commit.epoch, [])
    settle([other])
    assert not ledger.current.refused


def test_a_refused_version_is_tried_again_on_order(ledger: WorkerTables) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1"}))
    settle([worker])
    ledger.advance(make_shards({A: b"2"}))
    commit = ledger.commit_for(0)
    assert commit is not None
    ledger.on_ack(0, commit.epoch, [(*A, "short")])
    settle([worker])
    assert worker.contents == {A: b"1"}
    assert not ledger.retry([B])
    assert ledger.retry([A])
    settle([worker])
    assert worker.contents == {A: b"2"}
    assert not ledger.retry([A])
    assert ledger.arena.retired == 0


def encoded(value: ir.Cluster | ir.Listener) -> bytes:
    return msgspec.msgpack.encode(value)


def speaking(ca: str) -> bytes:
    return encoded(ir.Cluster(name="a", tls=ir.UpstreamTls(sni="a.test", ca=ca)))


CA_OLD, CA_NEW = ("secret", "old"), ("secret", "new")


def test_what_comes_back_has_what_it_names(ledger: WorkerTables) -> None:
    """A successor must be able to take the version before: its CA bundle stays in the table."""
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: speaking("old"), CA_OLD: b"ca"}))
    settle([worker])
    ledger.advance(make_shards({A: speaking("new"), CA_NEW: b"bad"}))
    commit = ledger.commit_for(0)
    assert commit is not None
    worker.flight = None
    ledger.on_ack(0, commit.epoch, [(*CA_NEW, "bad"), (*A, "new is not there")])
    successor = Worker(ledger, 1)
    settle([successor])
    assert successor.contents == {A: speaking("old"), CA_OLD: b"ca"}
    # Other changes change nothing about that ...
    ledger.advance(make_shards({A: speaking("new"), CA_NEW: b"bad", B: b"1"}))
    settle([successor])
    assert successor.contents == {A: speaking("old"), CA_OLD: b"ca", B: b"1"}
    # ... until what the new version names can be had: it is taken, and the old bundle goes.
    ledger.advance(make_shards({A: speaking("new"), CA_NEW: b"better", B: b"1"}))
    ledger.forget(0)
    settle([successor])
    assert successor.contents == {A: speaking("new"), CA_NEW: b"better", B: b"1"}
    assert not ledger.current.refused
    assert not ledger.current.kept
    assert ledger.arena.retired == 0


def test_what_a_held_back_version_names_cannot_be_removed(ledger: WorkerTables) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: speaking("old"), CA_OLD: b"ca"}))
    settle([worker])
    ledger.advance(make_shards({A: b"bad", CA_OLD: b"ca"}))
    settle([worker])
    ledger.advance(make_shards({A: b"bad"}))
    settle([worker])
    assert worker.contents == {A: speaking("old"), CA_OLD: b"ca"}
    ledger.advance(make_shards({A: b"plain"}))
    settle([worker])
    assert worker.contents == {A: b"plain"}


def test_a_host_goes_back_with_all_its_fragments(ledger: WorkerTables) -> None:
    """Two cuts of one host are never mixed: what goes with the refused cut goes, what went comes back."""
    root = ("virtual_host", "l/h")
    pieces = [("fragment", f"l/h#{number}") for number in range(4)]
    other = ("fragment", "l/other#0")
    before = {root: b"4", other: b"1", **dict.fromkeys(pieces, b"of 4")}
    worker = Worker(ledger, 0)
    ledger.advance(make_shards(before))
    settle([worker])
    ledger.advance(make_shards({root: b"bad", other: b"2", pieces[0]: b"bad", pieces[1]: b"bad"}))
    commit = ledger.commit_for(0)
    assert commit is not None
    ledger.on_ack(0, commit.epoch, [(*key, "bad") for key in (root, pieces[0], pieces[1])])
    wanted = {**before, other: b"2"}
    read = ledger.arena.read
    assert {key: read(one.block) for key, one in ledger.current.placed.items()} == wanted
    successor = Worker(ledger, 1)
    settle([successor])
    assert successor.contents == wanted
    # The next cut comes whole, also those pieces of it that were refused before.
    commit = ledger.commit_for(0)
    assert commit is not None
    assert commit.changes == []  # it never let go of the old cut
    ledger.on_ack(0, commit.epoch, [])
    ledger.advance(make_shards({root: b"2", other: b"2", pieces[0]: b"of 2", pieces[1]: b"of 2"}))
    settle([successor])
    ledger.forget(0)
    assert successor.contents[root] == b"2"
    assert set(successor.contents) == {root, other, pieces[0], pieces[1]}
    assert ledger.arena.retired == 0
