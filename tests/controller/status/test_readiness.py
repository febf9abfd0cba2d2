"""gate_status: good news waits for the data plane, bad news does not."""

from __future__ import annotations

from typing import Any

import pytest

from controller.status.progress import Reach
from controller.status.readiness import OPEN, ReadinessGate, gate_conditions, gate_status
from edgefast.translate.conditions.condition import MESSAGE_LIMIT
from tests.controller.status.conditions import OURS, condition, entry

pytestmark = pytest.mark.pure

SHUT = ReadinessGate(open=False, reach=Reach(2))


def good(type_: str = "Accepted", generation: int = 2) -> dict[str, Any]:
    return condition(type_, "True", observedGeneration=generation)


def bad(type_: str = "ResolvedRefs", generation: int = 2) -> dict[str, Any]:
    return condition(type_, "False", observedGeneration=generation)


@pytest.mark.parametrize(
    ("present", "wanted", "said"),
    [
        ([], [good()], []),
        ([good(generation=1)], [good()], [good(generation=1)]),
        ([good(generation=1)], [bad("Accepted")], [bad("Accepted")]),
        ([bad("Accepted", 1)], [good()], [bad("Accepted", 1)]),
        ([], [good(), bad()], [bad()]),
        ([good(generation=1)], [good(), bad()], [good(generation=1), bad()]),
        # A bad condition that is over goes when the tables that end it are there.
        ([bad("BackendsAvailable", 1)], [good()], [bad("BackendsAvailable", 1)]),
        # Types of which True is bad.
        ([], [condition("PartiallyInvalid")], [condition("PartiallyInvalid")]),
        # A good condition that is no longer said goes at once.
        ([good("Other", 1)], [bad("Accepted")], [bad("Accepted")]),
    ],
)
def test_while_the_tables_are_on_their_way(present: Any, wanted: Any, said: Any) -> None:
    assert gate_conditions(present, wanted, open_=False) == said
    assert gate_conditions(present, wanted, open_=True) == wanted


def hold_route(gates: Any, present: Any, *parents: Any) -> Any:
    return gate_status(
        "HTTPRoute", "default", "r", {"parents": present}, {"parents": list(parents)}, gates, OURS
    )["parents"]


def test_each_parent_waits_for_its_own_fleet() -> None:
    def gates(kind: str, namespace: str, name: str) -> ReadinessGate:
        return SHUT if name == "slow" else OPEN

    slow, fast = hold_route(gates, [], entry("slow"), entry("fast"))
    assert (slow["conditions"], fast["conditions"]) == ([], [condition("Accepted")])


def test_a_listener_set_is_a_parent_of_its_own() -> None:
    def gates(kind: str, namespace: str, name: str) -> ReadinessGate:
        return SHUT if kind == "ListenerSet" else OPEN

    held = hold_route(gates, [], entry("one", kind="ListenerSet"), entry("one"))
    assert [one["conditions"] for one in held] == [[], [condition("Accepted")]]


def test_what_another_controller_said_of_a_parent_is_not_taken_for_ours() -> None:
    present = [entry("gw", "other/one")]
    (held,) = hold_route(lambda *_: SHUT, present, entry("gw", OURS, good()))
    assert held["conditions"] == []


def test_what_proxies_refuse_is_told_on_the_route() -> None:
    gate = ReadinessGate(refused=("pod-a: virtual_host x: bad regex",))
    (held,) = hold_route(lambda *_: gate, [], entry("gw", OURS, good()))
    assert held["conditions"][0] == good()
    told = held["conditions"][1]
    assert (told["type"], told["status"], told["reason"]) == (
        "Programmed",
        "False",
        "RefusedByProxies",
    )
    assert "pod-a" in told["message"] and told["observedGeneration"] == 2


def hold_gateway(
    gate: ReadinessGate, present: Any = (), wanted: Any = None, listener: Any = ()
) -> Any:
    wanted = wanted or good("Programmed")
    return gate_status(
        "Gateway",
        "default",
        "gw",
        {"conditions": list(present), "listeners": list(listener)},
        {
            "conditions": [good(), wanted],
            "listeners": [
                {"name": "http", "attachedRoutes": 0, "conditions": [good("Programmed")]}
            ],
        },
        lambda *_: gate,
        OURS,
    )


def test_a_gateway_is_accepted_at_once_and_programmed_when_its_proxies_have_it() -> None:
    held = hold_gateway(SHUT)
    assert held["conditions"][0] == good()
    for one in (held["conditions"][1], held["listeners"][0]["conditions"][0]):
        assert (one["status"], one["reason"]) == ("False", "Pending")
    held = hold_gateway(ReadinessGate(reach=Reach(3)))
    assert held["conditions"][1]["status"] == "True"
    assert held["conditions"][1]["message"].endswith("3/3 proxies at version 2")
    assert held["listeners"][0]["conditions"] == [good("Programmed")]


def test_programmed_does_not_flip_back_for_a_new_generation() -> None:
    before = good("Programmed", 1)
    held = hold_gateway(SHUT, [before], listener=[{"name": "http", "conditions": [before]}])
    assert held["conditions"][1] == before
    assert held["listeners"][0]["conditions"] == [before]


def test_a_straggler_is_named() -> None:
    held = hold_gateway(ReadinessGate(reach=Reach(3, ("pod-x",))))
    assert held["conditions"][1]["status"] == "True"
    assert held["conditions"][1]["message"].endswith("2/3 proxies at version 2, behind: pod-x")


def test_a_straggler_is_named_with_its_reason() -> None:
    reach = Reach(3, ("pod-x", "pod-y"), {"pod-y": "another format"})
    said = hold_gateway(ReadinessGate(reach=reach))["conditions"][1]["message"]
    assert said.endswith("1/3 proxies at version 2, behind: pod-x, pod-y (another format)")
    said = hold_gateway(ReadinessGate(open=False, reach=reach))["conditions"][1]["message"]
    assert said.endswith("behind: pod-x, pod-y (another format)")


def test_of_what_is_programmed_it_is_told_that_all_are_behind() -> None:
    before = good("Programmed", 1)
    reach = Reach(1, ("pod-x",), {"pod-x": "another format"})
    said = hold_gateway(ReadinessGate(open=False, reach=reach), [before])["conditions"][1]
    assert said == {**before, "message": said["message"]}
    assert said["message"].endswith("0/1 proxies at version 2, behind: pod-x (another format)")


def test_a_refusal_does_not_make_good_news_early() -> None:
    refused = ("pod-a: virtual_host x: no",)
    held = hold_gateway(ReadinessGate(open=False, refused=refused))["conditions"][1]
    assert (held["status"], held["reason"]) == ("False", "Pending")
    assert held["message"].endswith("refused by proxies, which keep what they had: " + refused[0])
    before = good("Programmed", 1)
    assert (
        hold_gateway(ReadinessGate(open=False, refused=refused), [before])["conditions"][1]
        == before
    )


def test_many_stragglers_are_counted() -> None:
    names = tuple(f"p{i}" for i in range(9))
    said = hold_gateway(ReadinessGate(reach=Reach(10, names)))["conditions"][1]["message"]
    assert said.endswith("1/10 proxies at version 2, behind: p0, p1, p2, p3, p4 and 4 more")


def test_what_translate_calls_false_stays_false() -> None:
    wanted = bad("Programmed")
    assert hold_gateway(OPEN, wanted=wanted)["conditions"][1] == wanted
    assert hold_gateway(SHUT, wanted=wanted)["conditions"][1] == wanted


def test_a_refused_listener_is_not_programmed() -> None:
    held = hold_gateway(ReadinessGate(refused=("listener http: pod-a: listener d/gw/http: no",)))
    assert "refused by proxies" in held["conditions"][1]["message"]
    assert held["listeners"][0]["conditions"][0]["reason"] == "Invalid"
    held = hold_gateway(ReadinessGate(refused=("listener other: pod-a: no",)))
    assert held["listeners"][0]["conditions"][0]["status"] == "True"


def hold_set(gate: ReadinessGate, present: Any = None) -> Any:
    return gate_status(
        "ListenerSet",
        "team",
        "more",
        present or {},
        {
            "conditions": [good(), good("Programmed")],
            "listeners": [
                {"name": "http", "attachedRoutes": 0, "conditions": [good("Programmed")]}
            ],
        },
        lambda *_: gate,
        OURS,
    )


def test_a_listener_set_waits_as_its_gateway_does() -> None:
    held = hold_set(SHUT)
    assert held["conditions"][0] == good()
    for one in (held["conditions"][1], held["listeners"][0]["conditions"][0]):
        assert (one["status"], one["reason"]) == ("False", "Pending")
    held = hold_set(OPEN)
    assert held["conditions"] == [good(), good("Programmed")]
    assert held["listeners"][0]["conditions"] == [good("Programmed")]
    before = good("Programmed", 1)
    listener = {"name": "http", "conditions": [before]}
    held = hold_set(SHUT, {"conditions": [before], "listeners": [listener]})
    assert held["conditions"][1] == before
    assert held["listeners"][0]["conditions"] == [before]


def test_a_refused_listener_of_a_set_is_told_from_others_of_its_name() -> None:
    refused = hold_set(ReadinessGate(refused=("listener team/more/http: pod-a: no",)))
    assert refused["listeners"][0]["conditions"][0]["reason"] == "Invalid"
    for other in ("http", "team/else/http"):
        held = hold_set(ReadinessGate(refused=(f"listener {other}: pod-a: no",)))
        assert held["listeners"][0]["conditions"] == [good("Programmed")]
    held = hold_gateway(ReadinessGate(refused=("listener team/more/http: pod-a: no",)))
    assert held["listeners"][0]["conditions"][0]["status"] == "True"


def test_addresses_are_those_where_requests_are_answered() -> None:
    """While the fleet before serves, names that follow the status must not leave it."""

    def addresses(present: dict[str, Any], *, awaited: bool) -> Any:
        new = {"conditions": [], "listeners": [], "addresses": [{"value": "192.0.2.2"}]}
        gate = ReadinessGate(awaited=awaited)
        return gate_status("Gateway", "ns", "gw", present, new, lambda *_: gate, OURS)["addresses"]

    old = {"addresses": [{"value": "192.0.2.1"}]}
    assert addresses(old, awaited=True) == old["addresses"]
    assert addresses(old, awaited=False) == [{"value": "192.0.2.2"}]
    assert addresses({}, awaited=True) == [{"value": "192.0.2.2"}]


def test_what_there_is_to_say_of_a_fleet_is_said_once() -> None:
    """Beside good news and bad, within the API's limit, and not again where the condition stays as it was."""

    def programmed(present: dict[str, Any], wanted: dict[str, Any], gate: ReadinessGate) -> str:
        before, after = ({"conditions": [one], "listeners": []} for one in (present, wanted))
        held = gate_status("Gateway", "ns", "gw", before, after, lambda *_: gate, OURS)
        return str(held["conditions"][0]["message"])

    ok, no = (condition("Programmed", status, message="said") for status in ("True", "False"))
    notes = ("quota", "fleet x goes on")
    for wanted in (ok, no):
        assert "said" in (told := programmed({}, wanted, ReadinessGate(notes=notes)))
        assert told.endswith("; quota; fleet x goes on") and told.count("quota") == 1
    kept = condition("Programmed", "True", message="as it was; quota")
    closed = ReadinessGate(open=False, reach=Reach(2), notes=notes)
    assert programmed(kept, ok, closed) == "as it was; quota"
    assert len(programmed({}, no, ReadinessGate(notes=("x" * MESSAGE_LIMIT,)))) == MESSAGE_LIMIT


DESERTED = ReadinessGate(reach=Reach(deserted=True))


def listener_said(held: dict[str, Any]) -> tuple[str, str]:
    (listener,) = held["listeners"]
    (one,) = (it for it in listener["conditions"] if it["type"] == "Programmed")
    return one["status"], one["reason"]


@pytest.mark.parametrize("before", [[], ["True"]], ids=["new", "programmed before"])
def test_a_listener_that_no_proxy_serves_is_pending(before: list[str]) -> None:
    """Its Gateway says NoResources then; the listener may not say that it is served."""
    programmed = condition("Programmed", "True", observedGeneration=1)
    wanted = {"conditions": [], "listeners": [{"name": "http", "conditions": [programmed]}]}
    present = dict(wanted) if before else {}

    def said(gate: ReadinessGate) -> tuple[str, str]:
        return listener_said(
            gate_status("Gateway", "d", "gw", present, wanted, lambda *_: gate, OURS)
        )

    assert said(DESERTED) == ("False", "Pending")
    # Nobody has looked yet, or the fleet before serves: what was said stays.
    assert said(ReadinessGate()) == ("True", "Programmed")
    assert said(ReadinessGate(reach=Reach(deserted=True), awaited=True)) == ("True", "Programmed")
    assert said(ReadinessGate(reach=Reach(1))) == ("True", "Programmed")


def test_a_listener_set_that_no_proxy_serves_is_pending() -> None:
    programmed = condition("Programmed", "True", observedGeneration=1)
    wanted = {
        "conditions": [programmed],
        "listeners": [{"name": "http", "conditions": [programmed]}],
    }
    held = gate_status("ListenerSet", "d", "s", wanted, wanted, lambda *_: DESERTED, OURS)
    assert listener_said(held) == ("False", "Pending")
    assert held["conditions"][0]["reason"] == "Pending"


def hold_policy(gate: ReadinessGate, present: list[Any], *conditions: dict[str, Any]) -> Any:
    ours = {"ancestorRef": {"name": "gw"}, "controllerName": OURS}
    before = {"ancestors": [{**ours, "conditions": present}]} if present else {}
    wanted = {"ancestors": [{**ours, "conditions": list(conditions)}]}
    held = gate_status("SecurityPolicy", "d", "p", before, wanted, lambda *_: gate, OURS)
    return [
        (one["type"], one["status"], one["reason"]) for one in held["ancestors"][0]["conditions"]
    ]


def test_a_policy_is_programmed_when_the_ready_proxies_have_it() -> None:
    accepted, programmed = good(), good("Programmed")
    pending = ("Programmed", "False", "Pending")
    holding = ("Programmed", "True", "Programmed")
    assert hold_policy(SHUT, [], accepted, programmed) == [pending]
    assert hold_policy(ReadinessGate(reach=Reach(1)), [], accepted, programmed)[-1] == holding
    # What holds of before stays while the next is on its way.
    before = [good(generation=1), good("Programmed", generation=1)]
    assert hold_policy(SHUT, before, accepted, programmed)[-1] == holding
    # Where there is no proxy nobody does what it says, whatever was said.
    assert hold_policy(DESERTED, before, accepted, programmed)[-1] == pending
    awaited = ReadinessGate(reach=Reach(deserted=True), awaited=True)
    assert hold_policy(awaited, before, accepted, programmed)[-1] == holding
    # That it is overridden is told at once.
    beaten = condition("Programmed", "False", reason="Overridden")
    assert hold_policy(SHUT, before, accepted, beaten)[-1] == ("Programmed", "False", "Overridden")


def test_that_policies_hold_is_said_when_proxies_have_them() -> None:
    affected = condition("gateway.edge.io/SecurityPolicyAffected", "True")
    accepted, programmed = condition("Accepted"), condition("Programmed")
    listener = {"name": "http", "conditions": [programmed, affected]}
    wanted = {"conditions": [accepted, programmed, affected], "listeners": [listener]}

    def types(present: dict[str, Any], gate: ReadinessGate) -> list[list[str]]:
        held = gate_status("Gateway", "ns", "gw", present, wanted, lambda *_: gate, OURS)
        return [[one["type"] for one in at["conditions"]] for at in (held, *held["listeners"])]

    assert types({}, SHUT) == [["Accepted", "Programmed"], ["Programmed"]]
    assert types(wanted, SHUT) == types({}, OPEN) == [
        ["Accepted", "Programmed", affected["type"]],
        ["Programmed", affected["type"]],
    ]  # fmt: skip
