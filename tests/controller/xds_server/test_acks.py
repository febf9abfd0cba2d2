"""Acks: one of each node, the best one, and never more than there is room for."""

from __future__ import annotations

import asyncio

import pytest

from controller.xds_server.ack import Ack, Acks, merge
from controller.xds_server.fleets import Fleets
from controller.xds_server.limits import GONE_NODES, NODES
from controller.xds_server.refusal import Refused
from tests.controller.xds_server.loopback import FLEET, shards_of

pytestmark = pytest.mark.pure


def test_what_is_known_is_no_news() -> None:
    acks = Acks()
    assert acks.put("a", Ack("1"))
    assert not acks.put("a", Ack("1"))
    assert acks.put("a", Ack("2"))
    assert acks.get("a") == Ack("2") and acks.get("b") is None


def test_of_those_that_are_gone_the_oldest_are_forgotten() -> None:
    acks = Acks()
    acks.put("here", Ack("1"))
    for i in range(GONE_NODES + 10):
        acks.put(f"n{i}", Ack("1"))
        acks.put(f"n{i}", Ack("1", connected=False))
    nodes = dict(acks.items())
    assert len(nodes) == GONE_NODES + 1
    assert "here" in nodes and "n9" not in nodes and "n10" in nodes
    # Coming back makes room again.
    acks.put("n10", Ack("1"))
    acks.put("n-new", Ack("1", connected=False))
    assert "n11" in dict(acks.items())


def test_nodes_are_bounded() -> None:
    acks = Acks()
    for i in range(NODES + 5):
        acks.put(str(i), Ack("1"))
    assert len(dict(acks.items())) == NODES
    assert acks.put("0", Ack("2"))


def test_the_best_of_several_controllers() -> None:
    one, two = Acks(), Acks()
    one.put("moved", Ack("old", connected=False, via="one"))
    two.put("moved", Ack("", via="two"))
    one.put("both", Ack("old", via="one"))
    two.put("both", Ack("now", via="two"))
    one.put("same", Ack("now", via="one"))
    two.put("same", Ack("now", via="two"))
    one.put("mine", Ack("now", via="one"))
    merged = merge((one, two), "now")
    assert {node: ack.via for node, ack in merged.items()} == {
        "moved": "two",
        "both": "two",
        "same": "one",
        "mine": "one",
    }


class Stream:
    """A follower that remembers."""

    def __init__(self) -> None:
        self.woken = 0
        self.ended: list[Refused] = []

    def wake(self) -> None:
        self.woken += 1

    def end(self, refused: Refused) -> None:
        self.ended.append(refused)


def test_a_fleet_that_stays_without_its_table_is_told_so_and_may_ask_again() -> None:
    fleets = Fleets("me")
    fleets.kept = frozenset({FLEET})
    with pytest.raises(Refused, match="does not have its last table") as told:
        fleets.find(FLEET)
    assert (told.value.cause, told.value.status) == ("unknown_fleet", "UNAVAILABLE")
    with pytest.raises(Refused, match="no Gateway") as told:
        fleets.find(f"{FLEET}-other")
    assert told.value.status == "PERMISSION_DENIED"
    fleets.publish(FLEET, shards_of({"a": "1"}))
    fleets.find(FLEET)  # the controller had it before it was kept


async def test_a_published_table_is_sent_when_every_stream_rests() -> None:
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({"a": "1"}))
    await fleets.sent(60)  # nobody follows
    fleet, streams = fleets.find(FLEET), [Stream(), Stream(), Stream()]
    for number, stream in enumerate(streams):
        fleets.follow(fleet, f"n{number}", stream)
    waiting = asyncio.create_task(fleets.sent(60))
    fleets.rest(fleet, streams[0])
    fleets.leave(fleet, "n1", streams[1])
    await asyncio.sleep(0)
    assert not waiting.done()
    fleets.rest(fleet, streams[2])
    await waiting
    fleets.publish(FLEET, shards_of({"a": "2"}))
    waiting = asyncio.create_task(fleets.sent(60))
    await asyncio.sleep(0)
    assert not waiting.done()
    fleets.remove(FLEET)
    await waiting
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({"a": "1"}))
    fleets.follow(fleets.find(FLEET), "n", Stream())
    await fleets.sent(0.001)  # nobody is held up by a stream for longer


def test_wire_bytes_of_a_change_go_when_every_stream_has_sent_them() -> None:
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({"a": "1"}))
    fleet, streams = fleets.find(FLEET), [Stream(), Stream()]
    for number, stream in enumerate(streams):
        fleets.follow(fleet, f"n{number}", stream)
        fleet.history.item(fleet.history.resources["virtual_host", "a"])
    fleets.rest(fleet, streams[0])
    assert fleet.history.items == fleet.history.encoded == 1
    fleets.rest(fleet, streams[1])
    assert fleet.history.items == 0


async def test_wire_bytes_of_a_whole_table_wait_for_the_next_proxies() -> None:
    """Proxies that come one after the other, as after a restart of the controller, share them."""
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({f"n{i}": "1" for i in range(100)}))
    fleet = fleets.find(FLEET)
    for number in range(5):
        fleets.follow(fleet, f"n{number}", stream := Stream())
        for one in fleet.history.resources.values():
            fleet.history.item(one)
        fleets.rest(fleet, stream)
    assert fleet.history.encoded == 100
    assert fleet.forgetting is not None
    due = fleet.forgetting.when()
    fleets.follow(fleet, "last", last := Stream())
    fleets._forget(fleet)  # not yet: somebody has just come
    assert fleet.history.items == 100 and fleet.forgetting.when() >= due
    fleets.rest(fleet, last)
    fleet.came -= 3600
    fleets._forget(fleet)
    assert fleet.history.items == 0 and fleet.forgetting is None


@pytest.mark.parametrize("changed", [1, 100])
async def test_wire_bytes_that_a_late_stream_has_made_go_too(changed: int) -> None:
    """One that waited for an answer when the table changed: it had nothing to send, and sends when the answer has come."""
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({f"n{i}": "1" for i in range(changed)}))
    fleet, late = fleets.find(FLEET), [Stream(), Stream()]
    for number, stream in enumerate(late):
        fleets.follow(fleet, f"n{number}", stream)
        fleets.rest(fleet, stream)
    await fleets.sent(60)
    for stream in late:
        for one in fleet.history.resources.values():
            fleet.history.item(one)
        fleets.rest(fleet, stream)
    assert fleet.history.items == fleet.history.encoded == changed, "they share them"
    assert fleet.forgetting is not None
    fleet.came -= 3600
    fleets._forget(fleet)
    assert fleet.history.items == 0 and fleet.forgetting is None
    fleets.rest(fleet, late[0])
    assert fleet.forgetting is None, "nothing is kept"


def test_streams_are_woken_when_the_table_is_another_one() -> None:
    fleets = Fleets("me")
    assert fleets.publish(FLEET, shards_of({"a": "1"}))
    fleet, stream = fleets.find(FLEET), Stream()
    fleets.follow(fleet, "n", stream)
    assert not fleets.publish(FLEET, shards_of({"a": "1"}))
    assert stream.woken == 0
    fleets.publish(FLEET, shards_of({"a": "2"}))
    assert stream.woken == 1
    assert fleets.version(FLEET) == shards_of({"a": "2"}).version
    assert fleets.names() == (FLEET,)


def test_a_fleet_of_the_same_name_is_another_fleet() -> None:
    fleets = Fleets("me")
    fleets.publish(FLEET, shards_of({"a": "1"}))
    fleet, stream = fleets.find(FLEET), Stream()
    fleets.follow(fleet, "n", stream)
    fleets.tell(fleet, "n", "v", ())
    fleets.remove(FLEET)
    assert [one.cause for one in stream.ended] == ["removed"]
    fleets.publish(FLEET, shards_of({"a": "1"}))
    heard: list[str] = []
    fleets.on_ack = heard.append
    fleets.tell(fleet, "n", "w", ())
    fleets.leave(fleet, "n", stream)
    assert fleets.acks(FLEET) == {} and heard == []
    with pytest.raises(Refused, match="removed"):
        fleets.follow(fleet, "n", stream)


def test_a_fleet_is_known_by_namespace_and_name() -> None:
    with pytest.raises(ValueError, match="NAMESPACE/NAME"):
        Fleets().publish("edge-a", shards_of({}))
    with pytest.raises(Refused) as error:
        Fleets().find(FLEET)
    assert error.value.status == "PERMISSION_DENIED"
    Fleets().remove(FLEET)


def test_reports_of_other_controllers() -> None:
    fleets = Fleets("me")
    heard: list[str] = []
    fleets.on_ack = heard.append
    first = fleets.open_report("other")
    fleets.hear(first, FLEET, "n", Ack("1", via="other"))
    assert fleets.acks(FLEET) == {}  # the table is not here yet
    fleets.publish(FLEET, shards_of({"a": "1"}))
    assert fleets.acks(FLEET)["n"].via == "other"
    again = fleets.open_report("other")
    assert fleets.acks(FLEET) == {}
    fleets.hear(again, FLEET, "n", Ack("2", via="other"))
    fleets.close_report("other", first)  # the older call ends late
    assert fleets.acks(FLEET)["n"].version == "2"
    fleets.close_report("other", again)
    assert fleets.acks(FLEET) == {}
    assert heard == [FLEET] * 4
