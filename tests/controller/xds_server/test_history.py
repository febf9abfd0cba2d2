"""History: differences are right from wherever one begins, and cost what has changed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from controller.xds_server.history import NOTHING, Held, History
from edgefast.table.shards import TYPES, Delta, Key, Resource, Shards, make_resource
from edgefast.xds.messages import encode_item
from tests.controller.xds_server.loopback import shards, shards_of

pytestmark = pytest.mark.pure


def apply(held: Mapping[Key, str], delta: Delta) -> dict[Key, str]:
    """Return the versions that are held after a delta; it may not name anything twice, or in vain."""
    after = dict(held)
    for one in delta.put:
        assert after.get((one.type, one.name)) != one.version
        after[one.type, one.name] = one.version
    for key in delta.remove:
        del after[key]
    return after


def versions(table: Shards) -> dict[Key, str]:
    return {key: one.version for key, one in table.resources.items()}


def random_table(chance: random.Random, before: Mapping[Key, Resource]) -> Shards:
    resources = dict(before)
    for _ in range(chance.randint(0, 4)):
        type_, name = chance.choice(TYPES), f"n{chance.randint(0, 12)}"
        if chance.random() < 0.3:
            resources.pop((type_, name), None)
        else:
            resources[type_, name] = make_resource(type_, name, bytes([chance.randint(0, 2)]))
    return shards(resources.values())


@pytest.mark.parametrize("seed", range(20))
def test_differences_from_anywhere(seed: int) -> None:
    chance = random.Random(seed)
    history = History()
    tables = [shards(())]
    history.publish(tables[0])
    numbers = {1: tables[0]}
    for _ in range(30):
        tables.append(random_table(chance, tables[-1].resources))
        history.publish(tables[-1])
        numbers[history.number] = tables[-1]
        for number, table in numbers.items():
            delta = history.difference(Held(number))
            assert delta is not None
            assert apply(versions(table), delta) == versions(tables[-1])
        # Somebody who says what is held, whatever it is.
        foreign = versions(random_table(chance, random_table(chance, {}).resources))
        for held in (foreign, versions(chance.choice(tables)), {}):
            if chance.random() < 0.3:
                held = {**held, ("cluster", "unknown"): ""}
            delta = history.difference(history.compare(held))
            assert delta is not None
            assert apply(held, delta) == versions(tables[-1])


def test_order_is_that_of_effect() -> None:
    history = History()
    history.publish(shards(make_resource(type_, "b", b"1") for type_ in reversed(TYPES)))
    history.publish(shards(make_resource(type_, "a", b"1") for type_ in reversed(TYPES)))
    delta = history.difference(Held(1))
    assert delta is not None
    assert [one.type for one in delta.put] == list(TYPES)
    assert [key[0] for key in delta.remove] == list(reversed(TYPES))


def test_what_is_held_is_said_in_few_words() -> None:
    names = {f"h{i}": "x" for i in range(1000)}
    history = History()
    history.publish(shards_of(names))
    assert history.compare(versions(shards_of(names))) == Held(1)
    assert history.compare({}) == NOTHING
    few = history.compare(versions(shards_of({**names, "h1": "y"})))
    assert few.number == 1 and list(few.other) == [("virtual_host", "h1")]
    one = history.compare(versions(shards_of({"h1": "x"})))
    assert one.number == 0 and len(one.other) == 1


def test_a_version_is_known_by_its_newest_number() -> None:
    history = History()
    a, b = shards_of({"a": "1"}), shards_of({"a": "2"})
    assert history.publish(a) and history.publish(b) and history.publish(a)
    assert not history.publish(shards_of({"a": "1"}))
    assert history.number == 3
    assert history.number_of(a.version) == 3
    assert history.number_of(b.version) == 2
    assert history.number_of("") == history.number_of("unknown") == 0
    assert history.difference(Held(1)) == Delta()


def test_what_is_too_far_back_is_not_guessed() -> None:
    history = History(limit=10)
    for i in range(30):
        history.publish(shards_of({"a": str(i)}))
    assert history.difference(Held(20)) is not None
    assert history.difference(Held(19)) is None
    # Versions are forgotten with what was remembered of them.
    assert history.number_of(shards_of({"a": "19"}).version) == 20
    assert history.number_of(shards_of({"a": "18"}).version) == 0
    assert len(history._numbers) == 11


def test_one_change_among_many_is_one_step() -> None:
    """Assert on what is looked at, not on time."""
    names = {f"h{i}": "x" for i in range(10_000)}
    history = History()
    history.publish(shards_of(names))
    history.publish(shards_of({**names, "h5": "y"}))
    assert [len(undo) for undo in history._undo] == [1]
    delta = history.difference(Held(1))
    assert delta is not None and [one.name for one in delta.put] == ["h5"]


def test_wire_bytes_are_made_once_and_forgotten_with_their_resource() -> None:
    history = History()
    table = shards_of({"a": "1", "b": "1"})
    history.publish(table)
    a = table.resources["virtual_host", "a"]
    assert history.item(a) is history.item(a)
    assert history.item(a) == encode_item(a)
    history.publish(shards_of({"a": "2", "b": "1"}))
    assert history.item(a) == encode_item(a)  # a batch that is still under way
    assert history._items == {}
    assert history.encoded == 2
