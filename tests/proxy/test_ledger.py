"""The ledger against simulated workers: what they hold is never overwritten, and they all arrive.

A simulated worker remembers the bytes it saw at the moment of its swap; the arena must still hold
them for as long as that worker reads them, whatever order of publications, acknowledgements,
refusals and deaths.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast import ir
from edgefast.proxy.arena import Arena, ArenaFull, Block
from edgefast.proxy.ledger import Commit, Ledger
from edgefast.table.shards import Key
from proxy.tables import make_shards

SIZE = 1024 * 1024
REFUSED = b"bad"


class Worker:
    """Applies commits as a real one does: refuses content that begins with `bad`."""

    def __init__(self, ledger: Ledger, number: int) -> None:
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


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    arena = Arena(SIZE)
    yield Ledger(arena)
    arena.close()


def settle(workers: list[Worker]) -> None:
    """Let every worker catch up."""
    for _ in range(50):
        for worker in workers:
            worker.fetch()
            worker.apply()


A, B, C = ("cluster", "a"), ("cluster", "b"), ("virtual_host", "l/c")


def test_everything_arrives_in_the_order_of_the_architecture(ledger: Ledger) -> None:
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


def test_an_equal_table_is_no_change(ledger: Ledger) -> None:
    assert ledger.advance(make_shards({A: b"1"}))
    assert not ledger.advance(make_shards({A: b"1"}))
    assert ledger.current.epoch == 1


def test_a_slow_worker_skips_tables(ledger: Ledger) -> None:
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


def test_space_waits_for_the_slowest_worker(ledger: Ledger) -> None:
    fast, slow = Worker(ledger, 0), Worker(ledger, 1)
    ledger.advance(make_shards({A: b"1"}))
    settle([fast, slow])
    ledger.advance(make_shards({A: b"2"}))
    settle([fast])
    assert ledger.arena.retired > 0
    slow.check()
    ledger.forget(1)
    assert ledger.arena.retired == 0


def test_a_refused_resource_keeps_its_old_version_everywhere(ledger: Ledger) -> None:
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


def test_a_refused_resource_without_old_version_is_left_out(ledger: Ledger) -> None:
    workers = [Worker(ledger, number) for number in range(2)]
    ledger.advance(make_shards({A: b"bad", B: b"1"}))
    settle(workers)
    assert [worker.contents for worker in workers] == [{B: b"1"}] * 2
    assert list(ledger.current.refused) == [A]


def test_a_successor_that_refuses_first_takes_nothing_from_the_others(ledger: Ledger) -> None:
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


def test_what_others_take_is_not_taken_from_them(ledger: Ledger) -> None:
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


def test_a_refused_version_is_tried_again_on_order(ledger: Ledger) -> None:
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


def test_what_comes_back_has_what_it_names(ledger: Ledger) -> None:
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


def test_what_a_held_back_version_names_cannot_be_removed(ledger: Ledger) -> None:
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


def test_a_host_goes_back_with_all_its_fragments(ledger: Ledger) -> None:
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


def test_a_listener_that_was_refused_brings_its_hosts_again(ledger: Ledger) -> None:
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


def test_two_deaths_on_one_table_bring_the_last_good_one_back(ledger: Ledger) -> None:
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
    ledger: Ledger,
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


def test_deaths_without_a_commit_under_way_are_no_verdict(ledger: Ledger) -> None:
    ledger.advance(make_shards({A: b"1"}))
    settle([Worker(ledger, 0)])
    version = ledger.current.version
    for _ in range(5):
        assert not ledger.forget(0)
        settle([Worker(ledger, 0)])
    assert ledger.current.version == version


def test_a_table_that_does_not_fit_changes_nothing(ledger: Ledger) -> None:
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


def test_an_acknowledgement_out_of_turn_is_an_error(ledger: Ledger) -> None:
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
        ledger = Ledger(arena)
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
