"""The Secret of session tickets' keys: made, rotated and repaired by the leader, followed by the others, told of when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.certs.secrets import secret_manifest
from controller.certs.ticket_key_rotation import PERIOD
from controller.certs.ticket_secret import TicketSecret
from controller.kube.errors import ApiError
from tests.controller.certs.stores import Store

pytestmark = pytest.mark.pure

NS = "edge-gateway-system"
NAME = "edge-gateway-tickets"
PATH = f"/api/v1/namespaces/{NS}/secrets/{NAME}"
LABELS = {"app.kubernetes.io/managed-by": "edge-gateway"}


class Forbidding(Store):
    """A store that takes no write while `forbids`."""

    forbids = False

    async def create(self, manifest: Mapping[str, Any]) -> Any:
        self._check()
        return await super().create(manifest)

    async def replace(self, manifest: Mapping[str, Any]) -> Any:
        self._check()
        return await super().replace(manifest)

    def _check(self) -> None:
        if self.forbids:
            raise ApiError(403, "Forbidden", "secrets is forbidden")


class World:
    """A store, two clocks, and controllers that lead or not."""

    def __init__(self) -> None:
        self.store = Forbidding()
        self.now = datetime(2026, 11, 21, tzinfo=UTC)
        self.steady = 1000.0
        self.troubles: list[str] = []
        self.changes = 0

    def keeper(self, *, leading: bool = True) -> TicketSecret:
        keeper = TicketSecret(
            self.store,
            NS,
            name="edge-gateway",
            leading=lambda: leading,
            clock=lambda: self.now,
            monotonic=lambda: self.steady,
        )
        keeper.on_trouble = self.troubles.append
        keeper.on_change = self._changed
        return keeper

    def _changed(self) -> None:
        self.changes += 1

    def wait(self, time: timedelta) -> None:
        self.now += time
        self.steady += time.total_seconds()

    def data(self) -> dict[str, str]:
        return self.store.data(NS, NAME)


@pytest.fixture
def world() -> World:
    return World()


async def test_the_leader_makes_it_and_the_others_follow(world: World) -> None:
    leader, other = world.keeper(), world.keeper(leading=False)
    await other.step()
    assert other.given("ns/a") is None and world.store.writes == 0
    await leader.step()
    await other.step()
    assert leader.given("ns/a") == other.given("ns/a") is not None
    found = world.store.objects[PATH]
    assert found["type"] == "Opaque"
    assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "edge-gateway"
    again = world.keeper()
    await again.step()
    assert again.given("ns/a") == leader.given("ns/a")
    assert (world.store.writes, world.troubles) == (1, [])


async def test_it_is_rotated_once_a_period_and_the_next_one_was_known(world: World) -> None:
    leader, other = world.keeper(), world.keeper(leading=False)
    await leader.step()
    for _ in range(4):
        before = leader.given("ns/a")
        assert before is not None
        for _ in range(24):
            world.wait(PERIOD / 24)
            await leader.step()
            await other.step()
        after = leader.given("ns/a")
        assert after is not None and after == other.given("ns/a")
        assert (after.previous, after.current) == (before.current, before.next)
    assert world.store.writes == 5


async def test_a_wall_clock_that_is_set_does_not_rotate_again_and_again(world: World) -> None:
    leader = world.keeper()
    await leader.step()
    for _ in range(10):
        world.now += 3 * PERIOD
        world.steady += 60
        await leader.step()
    assert world.store.writes == 2


async def test_a_deleted_one_is_made_again_with_the_keys_in_use(world: World) -> None:
    leader = world.keeper()
    await leader.step()
    before = world.data()
    del world.store.objects[PATH]
    await leader.step()
    assert world.data() == before
    assert world.changes == 1


@pytest.mark.parametrize("known", [True, False])
async def test_one_that_cannot_be_read_is_repaired(
    world: World, known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    leader = world.keeper()
    if known:
        await leader.step()
    before = leader.given("ns/a")
    world.store.set(secret_manifest(NS, NAME, {"current": "AAAA"}, LABELS))
    await world.keeper(leading=False).step()
    assert world.data() == {"current": "AAAA"}
    await leader.step()
    after = leader.given("ns/a")
    assert after is not None and (after == before or not known)
    fresh = world.keeper()
    await fresh.step()
    assert fresh.given("ns/a") == after
    assert "it is replaced" in caplog.text and "AAAA" not in caplog.text


async def test_what_somebody_else_made_is_left_alone_and_told(world: World) -> None:
    world.store.set(secret_manifest(NS, NAME, {"password": "x"}))
    leader = world.keeper()
    await leader.step()
    assert leader.given("ns/a") is None
    assert world.data() == {"password": "x"}
    assert len(world.troubles) == 1 and "is not changed" in world.troubles[0]
    del world.store.objects[PATH]
    await leader.step()
    assert leader.given("ns/a") is not None and leader.trouble == ""


async def test_one_that_cannot_be_written_is_told_and_nothing_fails(world: World) -> None:
    world.store.forbids = True
    leader = world.keeper()
    await leader.step()
    assert leader.given("ns/a") is None
    assert len(world.troubles) == 1 and f"{NS}/{NAME}" in world.troubles[0]
    world.store.forbids = False
    await leader.step()
    given = leader.given("ns/a")
    assert given is not None and leader.trouble == ""
    world.store.forbids = True
    world.wait(PERIOD)
    await leader.step()
    assert leader.given("ns/a") == given and leader.trouble
    world.store.forbids = False
    await leader.step()
    after = leader.given("ns/a")
    assert after is not None and after.current == given.next


async def test_two_that_lead_make_one(world: World) -> None:
    one, two = world.keeper(), world.keeper()
    await asyncio.gather(one.step(), two.step())
    await asyncio.gather(one.step(), two.step())
    assert one.given("ns/a") == two.given("ns/a") is not None
    assert not world.troubles
