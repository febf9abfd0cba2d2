"""What the last table changed: in the table, and for requests."""

from __future__ import annotations

import msgspec
import pytest

from console.fleets import make_fleet, make_host, make_rule, spread
from edgefast import ir
from edgefast.console import changes
from edgefast.console.change_history import ChangeRecord
from edgefast.table import compile_fleet

pytestmark = pytest.mark.pure


def between(*fleets: ir.Fleet) -> ChangeRecord:
    """The past of some tables, one after the other."""
    past, before = ChangeRecord(), None
    for number, fleet in enumerate(fleets):
        shards = compile_fleet(fleet, before)
        past.note(before, shards, float(number))
        before = shards
    return past


def test_none_yet() -> None:
    assert changes.list_changes(ChangeRecord().look(), None) == changes.Changes(())
    assert changes.list_changes(between(spread(3)).look(), None) == changes.Changes(())


def test_rules_and_requests() -> None:
    first = make_fleet([make_host("a.test", [make_rule(1), make_rule(2)])])
    second = make_fleet(
        [
            make_host("a.test", [make_rule(1, timeouts=ir.Timeouts(request=5)), make_rule(3)]),
            make_host("b.test", [make_rule(4)]),
        ]
    )
    found = changes.list_changes(between(first, second).look(), None)
    assert [(one.what, one.kind, one.name) for one in found.moved] == [
        ("changed", "rule", "default/r1 rule 0"),
        ("removed", "rule", "default/r2 rule 0"),
        ("added", "rule", "default/r3 rule 0"),
        ("added", "host", "b.test"),
        ("added", "rule", "default/r4 rule 0"),
        ("removed", "backend", "service/default/s2/80"),
        ("added", "backend", "service/default/s3/80"),
        ("added", "backend", "service/default/s4/80"),
    ]
    assert found.moved[0].said == "timeouts"
    assert found.requests[0].kind == "lost" and found.requests[0].breaks
    assert {one.kind for one in found.requests} >= {"lost", "gained", "rule", "host_added"}
    assert found.tried > 0 and not found.why_not


def test_lines_that_moved_in_a_file_are_no_change() -> None:
    first = make_fleet([make_host("a.test", [make_rule(1), make_rule(2)])])
    second = make_fleet(
        [make_host("a.test", [make_rule(1, source="a.yaml:7"), make_rule(2, source="a.yaml:8")])]
    )
    found = changes.list_changes(between(first, second).look(), None)
    assert found.step is not None and found.step.resources == 1
    assert (found.moved, found.requests) == ((), ())


def test_an_older_step() -> None:
    steps = [make_fleet([make_host("a.test", [make_rule(n)])]) for n in (1, 2, 3)]
    past = between(*steps)
    found = changes.list_changes(past.look(), 1)
    assert found.step is not None and found.step.number == 1
    assert [one.name for one in found.moved if one.kind == "rule"] == [
        "default/r1 rule 0",
        "default/r2 rule 0",
    ]
    assert changes.list_changes(past.look(), 9).step is None


def test_large_hosts_are_compared_without_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ENTRIES", 10)
    first = spread(300)
    host = first.virtual_hosts[0]
    rules = tuple(msgspec.structs.replace(one, status=500) for one in host.rules)
    second = msgspec.structs.replace(
        first, virtual_hosts=(msgspec.structs.replace(host, rules=rules),)
    )
    found = changes.list_changes(between(first, second).look(), None)
    assert "300 matches" in found.why_not and not found.requests
    assert (len(found.moved), found.more_moved) == (changes.MOST, 100)
