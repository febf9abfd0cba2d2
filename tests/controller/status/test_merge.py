"""merge_status: own entries only, times kept, caps held, nothing when nothing changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controller.status.merge import merge_status
from controller.status.readiness import ReadinessGate, gate_status
from tests.controller.status.conditions import OURS, condition, entry

pytestmark = pytest.mark.pure

THEN, NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def dated(one: dict[str, Any], when: str = THEN) -> dict[str, Any]:
    return {**one, "conditions": [{**c, "lastTransitionTime": when} for c in one["conditions"]]}


def merge(kind: str, present: Any, wanted: Any) -> Any:
    before = copy.deepcopy((present, wanted))
    made = merge_status(kind, "default", present, wanted, controller=OURS, now=NOW)
    assert (present, wanted) == before
    return made


def test_entries_of_others_stay_in_their_places() -> None:
    foreign = [dated(entry(f"gw{i}", f"other/{i}")) for i in range(2)]
    present = {"parents": [foreign[0], dated(entry("gw")), foreign[1]]}
    made = merge(
        "HTTPRoute", present, {"parents": [entry("gw", OURS, condition("Accepted", "False"))]}
    )
    assert [made["parents"][0], made["parents"][2]] == foreign
    assert made["parents"][1]["conditions"] == [
        condition("Accepted", "False", lastTransitionTime=NOW)
    ]


def test_nothing_changed_is_nothing_written() -> None:
    present = {"parents": [dated(entry("gw", group="gateway.networking.k8s.io", kind="Gateway"))]}
    assert merge("HTTPRoute", present, {"parents": [entry("gw")]}) is None


def test_the_time_moves_only_with_the_status() -> None:
    present = {
        "parents": [dated(entry("gw", OURS, condition("Accepted"), condition("ResolvedRefs")))]
    }
    wanted = entry(
        "gw", OURS, condition("Accepted", message="new"), condition("ResolvedRefs", "False")
    )
    made = merge("HTTPRoute", present, {"parents": [wanted]})["parents"][0]["conditions"]
    assert [one["lastTransitionTime"] for one in made] == [THEN, NOW]
    assert made[0]["message"] == "new"


def test_bad_news_lead_to_the_pages_of_their_reasons() -> None:
    said = "HTTPRoute a/b spec.rules[0].backendRefs[0].name: BackendNotFound Service a/x not found"
    bad = condition("ResolvedRefs", "False", reason="BackendNotFound", message=said)
    odd = condition(
        "PartiallyInvalid", reason="UnsupportedValue", message=f"Dropped Rule 0: {said}"
    )
    own = condition("Accepted", "False", reason="NobodysWord", message="something")
    wanted = {"parents": [entry("gw", OURS, condition("Programmed"), bad, odd, own)]}
    made = merge("HTTPRoute", {}, wanted)
    good, *told = made["parents"][0]["conditions"]
    assert "edgefast problem" not in good["message"]
    assert [one["message"] for one in told] == [
        f"{said}; more about it: edgefast problem BackendNotFound",
        f"Dropped Rule 0: {said}; more about it: edgefast problem UnsupportedValue BackendNotFound",
        "something",
    ]
    assert merge("HTTPRoute", made, wanted) is None, "it is written once"


def test_a_gateway_that_is_accepted_in_part_leads_on_too() -> None:
    part = condition("Accepted", reason="ListenersNotValid", message="listeners not served: a")
    made = merge("Gateway", {}, {"conditions": [part]})
    (told,) = made["conditions"]
    assert told["message"].endswith("served: a; more about it: edgefast problem ListenersNotValid")


def test_a_long_message_keeps_its_end_and_the_limit() -> None:
    bad = condition("Accepted", "False", reason="NotAllowedByListeners", message="x" * 40_000)
    made = merge("HTTPRoute", {}, {"parents": [entry("gw", OURS, bad)]})
    (told,) = made["parents"][0]["conditions"]
    assert 32_768 - 256 <= len(told["message"]) <= 32_768
    assert told["message"].endswith("(cut); more about it: edgefast problem NotAllowedByListeners")


@pytest.mark.parametrize("length", [10, 32_600, 40_000])
def test_bad_news_that_hold_while_proxies_are_behind_do_not_grow(length: int) -> None:
    """What `gate_status` gives back of the present status was written by us, with its end."""
    said = "HTTPRoute default/a spec.rules[0]: BackendNotFound " + "x" * length
    bad = condition("ResolvedRefs", "False", reason="BackendNotFound", message=said)
    present = merge("HTTPRoute", {}, {"parents": [entry("gw", OURS, bad)]})
    good = {"parents": [entry("gw", OURS, condition("ResolvedRefs"))]}
    closed = ReadinessGate(open=False)
    held = gate_status("HTTPRoute", "default", "a", present, good, lambda *_: closed, OURS)
    assert held["parents"][0]["conditions"] == present["parents"][0]["conditions"]
    assert merge("HTTPRoute", present, held) is None


def test_a_parent_written_out_in_full_is_the_same_parent() -> None:
    """The namespace may be given or not; the reference follows the spec, the time stays."""
    present = {"parents": [dated(entry("gw"))]}
    made = merge("HTTPRoute", present, {"parents": [entry("gw", namespace="default")]})
    assert made["parents"][0]["parentRef"] == {"name": "gw", "namespace": "default"}
    assert made["parents"][0]["conditions"][0]["lastTransitionTime"] == THEN


def test_sections_and_ports_are_parents_of_their_own() -> None:
    wanted = [entry("gw"), entry("gw", sectionName="a"), entry("gw", port=80)]
    made = merge("HTTPRoute", {}, {"parents": wanted})
    assert [one["parentRef"] for one in made["parents"]] == [one["parentRef"] for one in wanted]


def test_what_is_no_longer_ours_is_taken_away_and_nothing_else() -> None:
    foreign = dated(entry("gw", "other/one"))
    assert merge("HTTPRoute", {"parents": [dated(entry("gw")), foreign]}, None) == {
        "parents": [foreign]
    }
    assert merge("HTTPRoute", {"parents": [dated(entry("gw"))]}, None) == {"parents": []}
    assert merge("HTTPRoute", {"parents": [foreign]}, None) is None
    assert merge("HTTPRoute", {}, None) is None
    assert merge("Gateway", {"conditions": [condition("Accepted")]}, None) is None


@pytest.mark.parametrize(("foreign", "room"), [(0, 32), (30, 2), (32, 0)])
def test_32_parents_are_all_there_is_room_for(foreign: int, room: int) -> None:
    theirs = [dated(entry(f"f{i}", "other/one")) for i in range(foreign)]
    wanted = {"parents": [entry(f"gw{i}") for i in range(40)]}
    made = merge("HTTPRoute", {"parents": theirs}, wanted)
    parents = made["parents"] if made else theirs
    assert parents[:foreign] == theirs
    assert len(parents) == foreign + room


def test_16_ancestors_are_all_there_is_room_for() -> None:
    one = {"ancestorRef": {"name": "gw"}, "controllerName": OURS, "conditions": [condition("A")]}
    many = [{**one, "ancestorRef": {"name": f"gw{i}"}} for i in range(20)]
    made = merge("BackendTLSPolicy", {}, {"ancestors": many})
    assert len(made["ancestors"]) == 16


def test_an_entry_without_conditions_is_none() -> None:
    empty = {**entry("gw"), "conditions": []}
    assert merge("HTTPRoute", {}, {"parents": [empty]}) is None


def test_conditions_of_others_on_a_gateway_stay() -> None:
    foreign = condition("example.com/Audited", lastTransitionTime=THEN)
    present = {"conditions": [foreign, condition("Accepted", "Unknown", lastTransitionTime=THEN)]}
    made = merge("Gateway", present, {"conditions": [condition("Accepted")]})
    assert made["conditions"] == [foreign, condition("Accepted", lastTransitionTime=NOW)]
    assert merge("Gateway", made, {"conditions": [condition("Accepted")]}) is None


def test_an_own_condition_that_is_over_goes() -> None:
    present = {
        "conditions": [
            condition("Accepted", lastTransitionTime=THEN),
            condition("ResolvedRefs", "False", lastTransitionTime=THEN),
        ]
    }
    made = merge("Gateway", present, {"conditions": [condition("Accepted")]})
    assert [one["type"] for one in made["conditions"]] == ["Accepted"]


def test_eight_conditions_are_all_there_is_room_for() -> None:
    theirs = [condition(f"example.com/C{i}", lastTransitionTime=THEN) for i in range(7)]
    wanted = {"conditions": [condition("Accepted"), condition("Programmed")]}
    made = merge("Gateway", {"conditions": theirs}, wanted)
    assert made["conditions"][:7] == theirs
    assert [one["type"] for one in made["conditions"][7:]] == ["Accepted"]


def test_listeners_are_merged_by_name() -> None:
    def listener(name: str, count: int, *conditions: Any) -> dict[str, Any]:
        return {
            "name": name,
            "attachedRoutes": count,
            "supportedKinds": [],
            "conditions": list(conditions),
        }

    foreign = condition("example.com/Seen", lastTransitionTime=THEN)
    old = condition("Programmed", lastTransitionTime=THEN)
    present = {"listeners": [listener("gone", 1, old), listener("a", 1, foreign, old)]}
    wanted = {
        "conditions": [],
        "listeners": [listener("a", 2, condition("Programmed")), listener("b", 0)],
    }
    made = merge("Gateway", present, wanted)
    assert made == {"listeners": [listener("a", 2, foreign, old), listener("b", 0)]}


def test_16_addresses_are_all_there_is_room_for() -> None:
    wanted = {
        "conditions": [],
        "addresses": [{"type": "IPAddress", "value": str(i)} for i in range(20)],
    }
    assert len(merge("Gateway", {}, wanted)["addresses"]) == 16
    assert merge("Gateway", {"addresses": [1]}, {"conditions": []}) == {"addresses": []}


def test_a_count_is_ours_and_none_is_zero() -> None:
    wanted = {"conditions": [], "attachedListenerSets": 2}
    assert merge("Gateway", {}, wanted) == {"attachedListenerSets": 2}
    assert merge("Gateway", wanted, wanted) is None
    assert merge("Gateway", wanted, {"conditions": []}) == {"attachedListenerSets": 0}
    assert merge("Gateway", {}, {"conditions": []}) is None
    assert merge("Gateway", {"attachedListenerSets": 0}, {"conditions": []}) is None


def test_what_the_server_fills_in_for_a_listener_set_is_ours() -> None:
    pending = [
        condition(type_, "Unknown", reason="Pending") for type_ in ("Accepted", "Programmed")
    ]
    wanted = {"conditions": [condition("Accepted"), condition("Programmed")]}
    made = merge("ListenerSet", {"conditions": pending}, wanted)
    assert [one["status"] for one in made["conditions"]] == ["True", "True"]


@pytest.mark.parametrize(
    ("entries", "ref"), [("ancestors", "ancestorRef"), ("parents", "parentRef")]
)
def test_an_xbackend_in_the_words_of_its_crds(entries: str, ref: str) -> None:
    """Of v1.7, and of v1.6; what others wrote stays, and ours goes again."""
    gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "m"}
    ours = {ref: {"name": "gw"}, "controllerName": "a/b", "conditions": [condition]}
    other = {ref: gateway, "controllerName": "c/d", "conditions": []}
    written = merge_status(
        "XBackend", "ns", {entries: [other]}, {entries: [ours]}, controller="a/b", now="t"
    )
    assert written is not None and written.keys() == {entries}
    assert [one["controllerName"] for one in written[entries]] == ["c/d", "a/b"]
    again = merge_status("XBackend", "ns", written, {entries: [ours]}, controller="a/b", now="u")
    assert again is None
    left = merge_status("XBackend", "ns", written, None, controller="a/b", now="u")
    assert left == {entries: [other]}


def test_addresses_of_an_ingress_are_replaced_as_a_whole() -> None:
    ours = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    theirs = {"loadBalancer": {"ingress": [{"hostname": "old.example"}]}}
    assert merge("Ingress", {}, ours) == ours
    assert merge("Ingress", theirs, ours) == ours
    assert merge("Ingress", ours, ours) is None
    assert merge("Ingress", {"loadBalancer": {}}, {}) is None
    # A Service without an address clears the list. An Ingress of another class keeps its list.
    assert merge("Ingress", ours, {}) == {"loadBalancer": {"ingress": []}}
    assert merge("Ingress", ours, None) is None


def test_an_ingress_has_addresses_when_proxies_have_it() -> None:
    ours = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    for is_open, shown in ((True, ours), (False, {})):
        gate = ReadinessGate(open=is_open)
        assert gate_status("Ingress", "a", "b", {}, ours, lambda *_, gate=gate: gate, OURS) == shown
