"""The front of all fleets: kept by changes that it does not depend on, made anew by all others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, translate
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.deps.referencegrant import index_grants
from edgefast.translate.fleet.frontend import ASIDE, translate_frontend
from edgefast.translate.tls.keyring import Keyring
from tests.translate import world
from tests.translate.golden import HERE, read_input

pytestmark = pytest.mark.pure

PLAIN = Settings()


class _Shut:
    """A table that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of a table that is none of the front's business")

    def __iter__(self) -> Any:
        raise AssertionError("a table that is none of the front's business")

    __len__ = __contains__ = __getitem__ = __bool__ = __iter__


@pytest.mark.parametrize("case", sorted(HERE.glob("cases/*.in.yaml")), ids=lambda path: path.name)
def test_it_looks_at_no_table_that_it_is_not_made_anew_for(case: Path) -> None:
    found = read_input(case)
    shut = msgspec.structs.replace(found.snapshot, **dict.fromkeys(ASIDE, _Shut()))
    settings = found.case.settings
    seen = World(snapshot=shut, settings=settings, grants=index_grants(found.snapshot))
    translate_frontend(seen, Keyring(shut, None))


def _objects() -> Snapshot:
    return world.many(3)


def test_routes_and_backends_leave_it_as_it_is() -> None:
    snapshot = _objects()
    before = translate(snapshot, PLAIN)
    for one in (
        world.route(1, path="/new"),
        world.service("new"),
        world.endpoints("new", "1.2.3.4"),
    ):
        snapshot = snapshot.replace([one])
        after = translate(snapshot, PLAIN, before)
        assert after.memo.front is before.memo.front
        assert after.infra == translate(snapshot, PLAIN).infra


@pytest.mark.parametrize(
    "one",
    [
        world.gateway("other", port=81),
        world.gateway_class("somebody.else/x"),
        world.listener_set("more"),
        world.namespace("fresh", team="red"),
        world.secret("fresh", key="value"),
        world.grant("fresh"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_all_else_makes_it_anew(one: Any) -> None:
    snapshot = _objects()
    before = translate(snapshot, PLAIN)
    changed = snapshot.replace([one])
    after, fresh = translate(changed, PLAIN, before), translate(changed, PLAIN)
    assert after.memo.front is not before.memo.front
    assert (after.ir, after.infra, after.problems) == (fresh.ir, fresh.infra, fresh.problems)
    assert list(after.statuses.items()) == list(fresh.statuses.items())


def test_addresses_of_the_machine_make_it_anew() -> None:
    snapshot = _objects()
    before = translate(snapshot, PLAIN)
    moved = msgspec.structs.replace(PLAIN, addresses=("192.0.2.1",))
    assert translate(snapshot, moved, before).memo.front is not before.memo.front


def test_a_certificate_that_expires_is_told_with_no_other_change() -> None:
    found = read_input(HERE / "cases" / "tls-certificate-expired.in.yaml")
    late = found.case.settings
    early = msgspec.structs.replace(late, now=late.now - 400 * 86_400)
    sound = translate(found.snapshot, early)
    later = msgspec.structs.replace(early, now=early.now + 1)
    same = translate(found.snapshot, later, sound)
    assert same.memo.front is sound.memo.front
    assert not any("expired" in one.message for one in same.problems)
    told = translate(found.snapshot, late, same)
    assert any("expired" in one.message for one in told.problems)
    assert told.problems == translate(found.snapshot, late).problems


def test_kinds_that_were_removed_change_the_class_alone() -> None:
    """The CRD goes while all its objects are deleted: no route is translated again for it."""
    snapshot, plain = _objects(), Settings(standalone=False)
    before = translate(snapshot, plain)
    removed = msgspec.structs.replace(plain, retained=("SecurityPolicy",))
    after, fresh = translate(snapshot, removed, before), translate(snapshot, removed)
    assert after.statuses == fresh.statuses and after.ir == fresh.ir
    assert "KindRemoved" in str(after.statuses.gateway_classes)
    assert not (after.work.routes or after.work.clusters or after.work.virtual_hosts)
    assert translate(snapshot, plain, after).statuses == before.statuses
