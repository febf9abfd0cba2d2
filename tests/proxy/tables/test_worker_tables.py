"""The ledger against simulated workers: what they hold is never overwritten, and they all arrive.

A simulated worker remembers the bytes it saw at the moment of its swap; the arena must still hold
them for as long as that worker reads them, whatever order of publications, acknowledgements,
refusals and deaths.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.proxy.tables.arena import Arena, ArenaFull
from edgefast.proxy.tables.worker_tables import WorkerTables
from edgefast.table.shards import Key
from proxy.shards import make_shards
from proxy.simulated import REFUSED, Worker, settle

SIZE = 1024 * 1024


@pytest.fixture
def ledger() -> Iterator[WorkerTables]:
    arena = Arena(SIZE)
    yield WorkerTables(arena)
    arena.close()


A, B, C = ("cluster", "a"), ("cluster", "b"), ("virtual_host", "l/c")


def test_everything_arrives_in_the_order_of_the_architecture(ledger: WorkerTables) -> None:
    keys = [
        ("listener", "l"), ("virtual_host", "l/h"), ("fragment", "l/h#0"), ("cluster", "c"), ("secret", "s"),
    ]  # fmt: skip
    ledger.advance(make_shards(dict.fromkeys(keys, b"1")))
    commit = ledger.commit_for(0)
    assert commit is not None
    assert [change.type for change in commit.changes] == [key[0] for key in reversed(keys)]
    ledger.on_ack(0, commit.epoch, [])
    ledger.advance(make_shards({}))
    commit = ledger.commit_for(0)
    assert commit is not None
    assert [(change.op, change.type) for change in commit.changes] == [("del", k[0]) for k in keys]


def test_an_equal_table_is_no_change(ledger: WorkerTables) -> None:
    assert ledger.advance(make_shards({A: b"1"}))
    assert not ledger.advance(make_shards({A: b"1"}))
    assert ledger.current.epoch == 1


def test_a_slow_worker_skips_tables(ledger: WorkerTables) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1", B: b"1"}))
    worker.fetch()
    for number in range(2, 9):
        ledger.advance(make_shards({A: b"%d" % number}))
        worker.fetch()  # nothing: one commit at a time
    worker.apply()
    worker.fetch()
    assert worker.flight is not None
    assert [(one.op, one.name) for one in worker.flight.changes] == [("put", "a"), ("del", "b")]
    worker.apply()
    assert worker.contents == {A: b"8"}
    assert ledger.arena.retired == 0


def test_space_waits_for_the_slowest_worker(ledger: WorkerTables) -> None:
    fast, slow = Worker(ledger, 0), Worker(ledger, 1)
    ledger.advance(make_shards({A: b"1"}))
    settle([fast, slow])
    ledger.advance(make_shards({A: b"2"}))
    settle([fast])
    assert ledger.arena.retired > 0
    slow.check()
    ledger.forget(1)
    assert ledger.arena.retired == 0


def test_a_refused_resource_keeps_its_old_version_everywhere(ledger: WorkerTables) -> None:
    workers = [Worker(ledger, number) for number in range(2)]
    ledger.advance(make_shards({A: b"1", B: b"1"}))
    settle(workers)
    ledger.advance(make_shards({A: b"bad", B: b"2"}))
    workers[0].fetch()
    assert workers[0].apply() == [A]
    workers[1].fetch()  # gets the reverted table: never sees the bad one
    settle(workers)
    for worker in (*workers, successor := Worker(ledger, 2)):
        settle([worker])
        assert worker.contents == {A: b"1", B: b"2"}
    assert list(ledger.current.refused) == [A]
    assert ledger.arena.retired == 0
    # The same version is not tried again; another one is.
    ledger.advance(make_shards({A: b"bad", B: b"3"}))
    settle([*workers, successor])
    assert workers[0].contents == {A: b"1", B: b"3"}
    ledger.advance(make_shards({A: b"4", B: b"3"}))
    settle([*workers, successor])
    assert workers[0].contents == {A: b"4", B: b"3"}
    assert not ledger.current.refused


def test_a_refused_resource_without_old_version_is_left_out(ledger: WorkerTables) -> None:
    workers = [Worker(ledger, number) for number in range(2)]
    ledger.advance(make_shards({A: b"bad", B: b"1"}))
    settle(workers)
    assert [worker.contents for worker in workers] == [{B: b"1"}] * 2
    assert list(ledger.current.refused) == [A]


def test_a_listener_that_was_refused_brings_its_hosts_again(ledger: WorkerTables) -> None:
    """The engine lets go of a listener's virtual hosts with the listener."""
    worker = Worker(ledger, 0)
    listener = ("listener", "l")
    ledger.advance(make_shards({listener: b"bad", C: b"1"}))
    settle([worker])
    assert worker.contents == {C: b"1"}
    ledger.advance(make_shards({listener: b"2", C: b"1"}))
    worker.fetch()
    assert worker.flight is not None
    assert [(one.op, one.name) for one in worker.flight.changes] == [("put", "l/c"), ("put", "l")]


def test_two_deaths_on_one_table_bring_the_last_good_one_back(ledger: WorkerTables) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1", B: b"1"}))
    settle([worker])
    good = ledger.current.version
    ledger.advance(make_shards({A: b"2", C: b"1"}))
    worker.fetch()
    assert not ledger.forget(0)
    worker = Worker(ledger, 0)
    worker.fetch()
    assert ledger.forget(0)
    assert ledger.current.version == good
    worker = Worker(ledger, 0)
    settle([worker])
    assert worker.contents == {A: b"1", B: b"1"}
    ledger.advance(make_shards({A: b"3"}))
    settle([worker])
    assert worker.contents == {A: b"3"}


def test_deaths_for_another_reason_are_no_verdict_unless_there_is_no_end_of_them(
    ledger: WorkerTables,
) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1"}))
    settle([worker])
    good = ledger.current.version
    ledger.advance(make_shards({A: b"2"}))
    for _ in range(5):
        assert ledger.commit_for(0) is not None
        assert not ledger.forget(0, excused=True)
    assert ledger.commit_for(0) is not None
    assert ledger.forget(0, excused=True)
    assert ledger.current.version == good


def test_deaths_without_a_commit_under_way_are_no_verdict(ledger: WorkerTables) -> None:
    ledger.advance(make_shards({A: b"1"}))
    settle([Worker(ledger, 0)])
    version = ledger.current.version
    for _ in range(5):
        assert not ledger.forget(0)
        settle([Worker(ledger, 0)])
    assert ledger.current.version == version


def test_a_table_that_does_not_fit_changes_nothing(ledger: WorkerTables) -> None:
    worker = Worker(ledger, 0)
    ledger.advance(make_shards({A: b"1"}))
    settle([worker])
    used = ledger.arena.used
    with pytest.raises(ArenaFull):
        ledger.advance(make_shards({A: bytes(SIZE // 2), B: bytes(SIZE)}))
    assert ledger.arena.used == used
    settle([worker])
    assert worker.contents == {A: b"1"}
    ledger.advance(make_shards({A: b"2"}))
    settle([worker])
    assert worker.contents == {A: b"2"}


def test_an_acknowledgement_out_of_turn_is_an_error(ledger: WorkerTables) -> None:
    ledger.advance(make_shards({A: b"1"}))
    commit = ledger.commit_for(0)
    assert commit is not None
    with pytest.raises(ValueError, match="not sent"):
        ledger.on_ack(0, commit.epoch + 1, [])


CONTENT = st.sampled_from([b"1" * 10, b"2" * 200, b"3" * 5000, REFUSED])
KEYS = st.sampled_from([A, B, C, ("listener", "l"), ("secret", "s")])
STEP = st.one_of(
    st.tuples(st.just("publish"), st.dictionaries(KEYS, CONTENT)),
    st.tuples(st.sampled_from(["fetch", "apply", "die"]), st.integers(0, 2)),
)


@given(st.lists(STEP, max_size=60))
def test_no_order_of_events_takes_a_block_from_its_reader(steps: list[tuple[str, object]]) -> None:
    arena = Arena(SIZE)
    try:
        ledger = WorkerTables(arena)
        workers = [Worker(ledger, number) for number in range(3)]
        wanted: dict[Key, bytes] = {}
        poisoned = False
        for what, value in steps:
            if what == "publish":
                assert isinstance(value, dict)
                wanted = value
                ledger.advance(make_shards(wanted))
                poisoned = False
            else:
                assert isinstance(value, int)
                worker = workers[value]
                if what == "fetch":
                    worker.fetch()
                elif what == "apply":
                    worker.apply()
                else:
                    poisoned |= ledger.forget(value)
                    workers[value] = Worker(ledger, value)
            for worker in workers:
                worker.check()
        settle(workers)
        assert workers[0].contents == workers[1].contents == workers[2].contents
        for key, data in wanted.items():
            if data != REFUSED and not poisoned:
                assert workers[0].contents[key] == data
        assert not any(data == REFUSED for data in workers[0].contents.values())
        assert arena.retired == 0
        named = {placed.block for placed in ledger.current.placed.values()}
        assert {block for block, _ in workers[0].table.values()} == named
    finally:
        arena.close()
