"""Troubles of proxies as problems: who is spoken for, and how much is told."""

from __future__ import annotations

import msgspec
import pytest

from controller.proxy_problems import (
    FLEET_LIMIT,
    KEYS_NAMED,
    describe_troubles,
    find_key_troubles,
    list_troubles,
)
from controller.xds_server.ack import Ack
from edgefast import ir
from edgefast.xds.proxy_problems import ProxyProblem

pytestmark = pytest.mark.pure

DOWN = ProxyProblem("EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "R is down")


def told(*acks: Ack) -> list[str]:
    return [one.text() for one in describe_troubles("e/f", acks)]


def test_each_is_told_once_with_how_many_say_so() -> None:
    said = "EdgeGateway rateLimit.backend: NotCounted R is down (reported by 2 of 3 proxies of e/f)"
    has, has_not = Ack("v", troubles=(DOWN,)), Ack("v")
    assert told(has, has_not, has) == [said]
    assert not told(has_not)


def test_who_is_gone_says_nothing() -> None:
    gone = Ack("v", connected=False, troubles=(DOWN,))
    assert not told(gone)
    (said,) = told(gone, Ack("v", troubles=(DOWN,)))
    assert said.endswith("(reported by 1 of 1 proxies of e/f)")


def test_what_a_replica_of_another_release_relays_is_left_out() -> None:
    later = msgspec.structs.replace(DOWN, reason="AWordOfLater")
    assert list_troubles(Ack("v", troubles=(later, DOWN))) == (DOWN,)
    assert len(told(Ack("v", troubles=(later, DOWN)))) == 1


def test_proxies_that_each_say_something_else_fill_no_page() -> None:
    """What most of them say is told first, and so much of the rest as anybody reads."""
    alone = (
        Ack("v", troubles=(DOWN, msgspec.structs.replace(DOWN, message=f"{n}")))
        for n in range(FLEET_LIMIT * 2)
    )
    said = told(*alone)
    assert len(said) == FLEET_LIMIT
    assert f"reported by {FLEET_LIMIT * 2} of {FLEET_LIMIT * 2} proxies" in said[0]


def test_keys_that_cannot_be_fetched_are_told_of_policies_of_the_own_fleet_alone() -> None:
    keys = ProxyProblem("SecurityPolicy", "a", "b", "spec.jwt", "KeysNotFetched", "404", "warning")
    other = msgspec.structs.replace(keys, name="of-another-fleet")
    gone = msgspec.structs.replace(keys, message="of a proxy that is gone")
    acks = {
        "p": Ack("v", troubles=(DOWN, keys, other)),
        "q": Ack("v", troubles=(keys,)),
        "r": Ack("v", connected=False, troubles=(gone,)),
    }
    table = ir.Fleet(name="f", policies=(ir.PolicyUnit(name="security/a/b#jwt"),))
    said = "SecurityPolicy a/b spec.jwt: KeysNotFetched 404"
    assert find_key_troubles(table, acks.values()) == {("a", "b"): said}
    many = [
        Ack("v", troubles=(msgspec.structs.replace(keys, message=f"{n}"),))
        for n in range(KEYS_NAMED + 2)
    ]
    (text,) = find_key_troubles(table, many).values()
    assert text.count("KeysNotFetched") == KEYS_NAMED and text.endswith("; and 2 more")
    assert find_key_troubles(ir.Fleet(name="f"), acks.values()) == {}


def test_texts_of_a_pod_break_no_line() -> None:
    odd = msgspec.structs.replace(DOWN, message="a\nb\x1b[2J")
    (said,) = told(Ack("v", troubles=(odd,)))
    assert said.isprintable()
