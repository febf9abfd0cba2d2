"""What a table replaced is kept, within bounds, and nothing of secrets."""

from __future__ import annotations

import random

import msgspec
import pytest

from console.fleets import make_fleet, make_host, make_rule
from edgefast import ir
from edgefast.console.change_history import BYTES, STEPS, ChangeRecord, HistoryBudget
from edgefast.table import compile_fleet
from edgefast.table.shards import Shards, make_resource

pytestmark = pytest.mark.pure


def test_every_step_can_be_gone_back_to() -> None:
    chance = random.Random(3)
    past, made, before = ChangeRecord(), [], None
    for number in range(6):
        hosts = [
            make_host(f"h{one}.test", [make_rule(chance.randrange(20))])
            for one in chance.sample(range(12), chance.randint(1, 9))
        ]
        shards = compile_fleet(make_fleet(hosts), before)
        past.note(before, shards, float(number))
        made.append(shards)
        before = shards
    history = past.look()
    assert [one.number for one in history.steps] == [5, 4, 3, 2, 1]
    for one in history.steps:
        found = history.rewind(one.number)
        assert found is not None
        step, old, new = found
        assert (step.before, step.after) == (made[one.number - 1].version, made[one.number].version)
        assert dict(old) == made[one.number - 1].resources
        assert dict(new) == made[one.number].resources
    assert history.rewind(77) is None


def test_only_so_many_steps_and_bytes() -> None:
    past, before = ChangeRecord(), None
    for number in range(STEPS + 4):
        data = bytes([number]) * (1000 if number < STEPS else 9 * 2**20)
        one = make_resource("cluster", "c", data)
        shards = Shards({("cluster", "c"): one}, f"{number}")
        past.note(before, shards, 0.0)
        before = shards
        kept = past.look().steps
        assert len(kept) <= STEPS
        assert sum(step.size for step in kept) <= 16 * 2**20
    assert [step.number for step in kept] == [STEPS + 3]


def change(past: ChangeRecord, *sizes: int) -> None:
    """Note a change of a table for each but the first: what replaces a resource of so many bytes."""
    before = None
    for number, size in enumerate(sizes):
        one = make_resource("cluster", "c", bytes([number]) * size)
        shards = Shards({("cluster", "c"): one}, f"{number}")
        past.note(before, shards, 0.0)
        before = shards


def test_several_tables_share_the_bytes() -> None:
    room = HistoryBudget()
    first, second, third = ChangeRecord(room), ChangeRecord(room), ChangeRecord(room)
    change(first, 5 * 2**20, 5 * 2**20, 1)
    change(second, 5 * 2**20, 1)
    assert [len(one.look().steps) for one in (first, second)] == [2, 1]
    change(third, 5 * 2**20, 1)
    assert [len(one.look().steps) for one in (first, second, third)] == [1, 1, 1]
    numbers = [one.number for past in (first, second, third) for one in past.look().steps]
    assert len(set(numbers)) == 3
    assert room.taken == sum(one.look().steps[0].size for one in (first, second, third))
    change(second, BYTES + 1, 1)  # none of its own, and those of others stay
    assert [len(one.look().steps) for one in (first, second, third)] == [1, 0, 1]
    for one in (first, third):
        one.clear()
    assert room.taken == 0


def test_a_table_that_comes_back_has_no_past() -> None:
    past = ChangeRecord()
    change(past, 10, 10, 10)
    old = past.look().steps[0].number
    change(past, 20, 20)
    (step,) = past.look().steps
    assert step.number > old, "what was told of another table is not taken for it"
    found = past.look().rewind(step.number)
    assert found is not None
    assert [len(one.data) for one in found[1].values()] == [20]


def test_secrets_are_named_and_not_kept() -> None:
    fleet = make_fleet([make_host("a.test", [make_rule(1)])])
    store = ir.RateLimitStore(kind="redis", addresses=("r:1",), password="PASSWORD-1")
    first = msgspec.structs.replace(
        fleet, secrets=(ir.Secret("secret/a/b", b"CHAIN-1", b"KEY-1"),), limit_store=store
    )
    second = msgspec.structs.replace(
        fleet, secrets=(ir.Secret("secret/a/b", b"CHAIN-2", b"KEY-2"),)
    )
    one = compile_fleet(first)
    two = compile_fleet(second, one)
    past = ChangeRecord()
    past.note(None, one, 0.0)
    past.note(one, two, 1.0)
    (step,) = past.look().steps
    assert step.hidden == (("limit_store", "store"), ("secret", "secret/a/b"))
    assert not step.undo
    assert "KEY-1" not in repr(step) and "PASSWORD" not in repr(step)
