"""Relay: a leader knows the nodes of every replica, over real mutual TLS, for as long as the replica reports."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.xds_server.ack import Ack
from controller.xds_server.relay import Relay
from controller.xds_server.reports import Line, encode_reports
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import Refused
from tests.controller.waiting import running, until
from tests.controller.xds_server.loopback import FLEET, POD, Loopback, shards_of

pytestmark = pytest.mark.wire

TABLE = shards_of({"a": "1"})
LEADER, FOLLOWER = "leader_127.0.0.1", "follower_127.0.0.1"


class Pair:
    """A leader and a follower of one controller, and the Lease between them."""

    def __init__(self, folder: Path) -> None:
        self.holder = LEADER
        self.leader = Loopback(folder / "leader", identity=LEADER)
        self.follower = Loopback(folder / "follower", identity=FOLLOWER, ring=self.leader.ring)

    def relay(self, of: Loopback, to: Loopback) -> Relay:
        return Relay(
            of.fleets,
            of.server.keys,
            name="edge-gateway",
            holder=lambda: self.holder,
            leading=lambda: self.holder == of.fleets.identity,
            port=to.replicas.port,
        )


@pytest.fixture
@contextlib.asynccontextmanager
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    made = Pair(tmp_path)
    async with made.leader, made.follower:
        for one in (made.leader, made.follower):
            one.fleets.publish(FLEET, TABLE)
        yield made


async def test_the_leader_hears_what_a_followers_nodes_answer(pair: Pair) -> None:
    heard: list[str] = []
    leader, follower = pair.leader.fleets, pair.follower.fleets
    leader.on_ack = heard.append
    relay = pair.relay(pair.follower, pair.leader)
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(pair.follower.proxy())
        await proxy.take()
        await until(lambda: POD in follower.acks(FLEET))
        await stack.enter_async_context(running(relay.run()))
        await until(lambda: POD in leader.acks(FLEET))
        await until(lambda: leader.acks(FLEET)[POD].version == TABLE.version)
        assert leader.acks(FLEET)[POD].via == FOLLOWER
        assert relay.connected_to == LEADER and heard
        two = shards_of({"a": "2"})
        for one in (leader, follower):
            one.publish(FLEET, two)
        bad = Refused("virtual_host", "a", "no")
        await proxy.answer(await proxy.batch(), (bad,))
        await until(lambda: leader.acks(FLEET)[POD].version == two.version)
        assert leader.acks(FLEET)[POD].refused == (bad,)
        trouble = ProxyProblem("Service", "a", "b", "", "EndpointsNotFound", "no such name")
        fleet, version = follower.find(FLEET), two.version
        follower.tell(fleet, POD, version, (), (trouble,))
        await until(lambda: leader.acks(FLEET)[POD].troubles == (trouble,))
    # Who no longer reports is no longer believed.
    await until(lambda: leader.acks(FLEET) == {})


async def test_a_new_leader_is_told_everything_and_the_old_one_nothing_more(pair: Pair) -> None:
    relays = [pair.relay(pair.follower, pair.leader), pair.relay(pair.leader, pair.follower)]
    leader, follower = pair.leader.fleets, pair.follower.fleets
    async with (
        pair.follower.proxy(node=POD) as one,
        pair.leader.proxy(node=POD + "2") as two,
        running(*(relay.run() for relay in relays)),
    ):
        await one.take()
        await two.take()
        await until(lambda: {POD, POD + "2"} == set(leader.acks(FLEET)))
        assert set(follower.acks(FLEET)) == {POD}
        pair.holder = FOLLOWER
        for relay in relays:
            relay.look()
        await until(lambda: {POD, POD + "2"} == set(follower.acks(FLEET)))
        await until(lambda: set(leader.acks(FLEET)) == {POD + "2"})
        assert relays[0].connected_to == "" and relays[1].connected_to == FOLLOWER


async def test_a_leader_that_was_away_is_called_again(pair: Pair) -> None:
    relay = pair.relay(pair.follower, pair.leader)
    async with pair.follower.proxy() as proxy, running(relay.run()):
        await proxy.take()
        await until(lambda: POD in pair.leader.fleets.acks(FLEET))
        address = pair.leader.replicas
        await pair.leader.server.stop(0)
        await until(lambda: relay.connected_to == "")
        await pair.leader.server.serve_replicas(address)
        await until(lambda: POD in pair.leader.fleets.acks(FLEET))


async def test_who_tells_nobody_remembers_nothing(pair: Pair) -> None:
    """A leader, and a replica whose call has ended, see nodes come and go for months."""
    relays = [pair.relay(pair.leader, pair.follower), pair.relay(pair.follower, pair.leader)]
    async with running(*(relay.run() for relay in relays)):
        await until(lambda: relays[1].connected_to == LEADER)
        for whose, loopback in (("of-leader", pair.leader), ("of-follower", pair.follower)):
            fleet = loopback.fleets.find(FLEET)
            for number in range(100):
                loopback.fleets.tell(fleet, f"{POD}-{whose}-{number}", "", ())
        await until(lambda: len(pair.leader.fleets.acks(FLEET)) == 200)
        assert not relays[0]._changed and not relays[1]._changed
        await pair.leader.server.stop(0)
        await until(lambda: relays[1].connected_to == "")
        pair.holder = ""
        pair.follower.fleets.tell(pair.follower.fleets.find(FLEET), f"{POD}-x", "", ())
        await until(lambda: relays[1]._changed is None)


@pytest.mark.parametrize("holder", ["", "leader", "leader_", "leader_x", FOLLOWER])
async def test_nobody_is_called_without_an_address(pair: Pair, holder: str) -> None:
    pair.holder = holder
    assert pair.relay(pair.follower, pair.leader)._other() == ""
    pair.holder = "pod_fd00::1"
    relay = pair.relay(pair.follower, pair.leader)
    assert relay._target(relay._other()).startswith("[fd00::1]:")


def test_reports_of_thousands_are_several_messages() -> None:
    lines = [Line(FLEET, f"{POD}-{i}", Ack("v" * 32, via=FOLLOWER)) for i in range(5000)]
    messages = list(encode_reports(FOLLOWER, lines))
    assert len(messages) > 1
    assert max(map(len, messages)) < 300_000
    assert len(list(encode_reports(FOLLOWER, []))) == 1
