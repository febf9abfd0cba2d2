"""Batches without a stream: whole tables come out, or nothing."""

from __future__ import annotations

import random

import pytest

from edgefast import ir
from edgefast.collections.sorted_map import find_unlike
from edgefast.table import Shards, compile_fleet, diff
from edgefast.table.shards import Resource, make_resource
from edgefast.xds import batch as batches
from edgefast.xds.batch import Batch, DigestMismatch, Mirror, answer_commit
from edgefast.xds.messages import ProtocolError, Response
from edgefast.xds.rejections import COMMIT, Refused

pytestmark = pytest.mark.pure


def compiled(clusters: dict[str, int], previous: Shards | None = None) -> Shards:
    made = tuple(
        ir.Cluster(name=name, endpoints=(ir.Endpoint(address="127.0.0.1", port=port),))
        for name, port in clusters.items()
    )
    return compile_fleet(ir.Fleet(name="x", clusters=made), previous)


def step(mirror: Mirror, new: Shards) -> Mirror:
    """One batch from what is held to `new`."""
    delta = diff(mirror.shards, new)
    batch = Batch(mirror)
    for number, one in enumerate(delta.put):
        assert batch.version != new.version  # half of it is never taken for the whole
        batch.add(Response(type=one.type, puts=(one,), nonce=f"p{number}"))
    for number, (type_, name) in enumerate(delta.remove):
        batch.add(Response(type=type_, removed=(name,), nonce=f"r{number}"))
    assert batch.version == new.version
    return batch.close(new.version)


def test_a_mirror_that_holds_too_much_to_say_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = Mirror(compiled({"a": 1, "b": 2}))
    said = sum(len(name) + len(version) for (_, name), version in mirror.held(()).items())
    monkeypatch.setattr(batches, "HELD_LIMIT", said)
    assert len(mirror.held(())) == 2
    monkeypatch.setattr(batches, "HELD_LIMIT", said - 1)
    assert mirror.held(()) == {}


def test_any_walk_arrives_where_the_compiler_is() -> None:
    chance = random.Random(5)
    mirror = Mirror()
    shards = None
    for _ in range(50):
        names = {f"c{n}": chance.randrange(1, 4) for n in range(20) if chance.random() < 0.5}
        shards = compiled(names, shards)
        mirror = step(mirror, shards)
        assert mirror.shards.resources == shards.resources
        assert mirror.version == mirror.shards.version == shards.version
        assert mirror.size == sum(len(one.data) for one in shards.resources.values())
        assert Mirror(mirror.shards).digest == mirror.digest


def test_the_difference_is_known_without_comparing_all() -> None:
    old = step(Mirror(), compiled({"a": 1, "b": 2, "c": 3}))
    new = step(old, compiled({"a": 1, "b": 5}))
    gone, come = find_unlike(old.shards.resources, new.shards.resources)
    assert gone.keys() == {("cluster", "b"), ("cluster", "c")}
    assert come.keys() == {("cluster", "b")}
    assert old.shards.resources.keys() == {("cluster", name) for name in "abc"}


def test_another_digest_is_a_mismatch_and_half_a_batch_is_one_too() -> None:
    want = compiled({"a": 1, "b": 2})
    first, second = want.resources.values()
    batch = Batch(Mirror())
    batch.add(Response(type="cluster", puts=(first,), nonce="1"))
    with pytest.raises(DigestMismatch):
        batch.close(want.version)
    batch.add(Response(type="cluster", puts=(second,), nonce="2"))
    assert batch.close(want.version).version == want.version


def test_the_last_word_on_a_name_counts() -> None:
    one, two = (make_resource("cluster", "a", data) for data in (b"1", b"2"))
    batch = Batch(Mirror())
    batch.add(Response(type="cluster", puts=(one,), nonce="1"))
    batch.add(Response(type="cluster", removed=("a",), nonce="2"))
    assert batch.close(Mirror().version).shards.resources == {}
    batch.add(Response(type="cluster", puts=(two,), nonce="3"))
    only = Mirror(Shards({("cluster", "a"): two}, ""))
    assert batch.close(only.version).shards.resources == {("cluster", "a"): two}


def test_bytes_that_are_not_their_version_are_refused() -> None:
    forged = Resource("cluster", "a", make_resource("cluster", "a", b"1").version, b"2")
    with pytest.raises(ProtocolError, match="cluster a is not its digest"):
        Batch(Mirror()).add(Response(type="cluster", puts=(forged,), nonce="1"))


def test_a_response_brings_something() -> None:
    for type_ in ("cluster", COMMIT):
        with pytest.raises(ProtocolError):
            Batch(Mirror()).add(Response(type=type_, nonce="1"))


def test_batches_and_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "TABLE_BYTES", 100)
    monkeypatch.setattr(batches, "TABLE_RESOURCES", 3)
    large = make_resource("cluster", "a", bytes(60))
    batch = Batch(Mirror())
    batch.add(Response(type="cluster", puts=(large,), nonce="1"))
    with pytest.raises(ProtocolError, match="over its limit"):
        batch.add(Response(type="cluster", puts=(large,), nonce="2"))
    with pytest.raises(ProtocolError, match="over its limit"):
        Batch(Mirror()).add(Response(type="cluster", removed=tuple("abcd"), nonce="1"))
    # Two batches that are each within the limits, and together are not.
    held = Mirror(Shards({("cluster", "a"): large}, ""))
    batch = Batch(held)
    other = make_resource("cluster", "b", bytes(60))
    batch.add(Response(type="cluster", puts=(other,), nonce="1"))
    both = Mirror(Shards({("cluster", "a"): large, ("cluster", "b"): other}, ""))
    with pytest.raises(ProtocolError, match="over its limit"):
        batch.close(both.version)


def test_every_response_is_answered_and_only_the_guilty_are_refused() -> None:
    a, b, c = (make_resource("cluster", name, b"") for name in "abc")
    batch = Batch(Mirror())
    assert not batch
    batch.add(Response(type="cluster", puts=(a, b), nonce="1"))
    batch.add(Response(type="cluster", puts=(c,), nonce="2"))
    batch.add(Response(type="listener", removed=("a",), nonce="3"))
    assert batch
    bad = (Refused("cluster", "b", "no"), Refused("listener", "elsewhere", "old"))
    told = [(one.type, one.nonce, one.refused) for one in batch.answers(bad)]
    assert told == [("cluster", "1", (bad[0],)), ("cluster", "2", ()), ("listener", "3", ())]
    assert answer_commit("4", bad).refused == bad


def test_what_is_refused_is_not_held() -> None:
    mirror = step(Mirror(), compiled({"a": 1, "b": 2}))
    held = mirror.held([("cluster", "a"), ("secret", "other")])
    assert held == {("cluster", "b"): mirror.shards.resources["cluster", "b"].version}
