"""Board: what may be written when, over the life of revisions, fleets and proxies."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from controller.status.progress import PATIENCE
from controller.status.rejections import NO_REJECTIONS, Refusal, Rejections, attribute_rejections
from controller.status.tracker import GRACE, StatusTracker
from edgefast import ir
from edgefast.api.model.reference import ParentReference
from edgefast.translate.conditions.condition import Condition, fails, holds
from edgefast.translate.conditions.status import (
    GatewayStatus,
    GatewayStatusAddress,
    IngressAddress,
    IngressLoadBalancerStatus,
    IngressStatus,
    ListenerSetStatus,
    ListenerStatus,
    PolicyAncestorStatus,
    PolicyStatus,
    RouteKind,
    RouteParentStatus,
    RouteStatus,
    Statuses,
)
from tests.controller.status.conditions import OURS

pytestmark = pytest.mark.pure

STAMP = "2026-02-02T00:00:00Z"
FLEET_OF = {("default", "gw"): "fleet"}
ROUTE, GATEWAY = ("HTTPRoute", "default", "r"), ("Gateway", "default", "gw")


def route(*conditions: Condition, gateway: str = "gw") -> RouteStatus:
    parent = RouteParentStatus(
        parent_ref=ParentReference(name=gateway), controller_name=OURS, conditions=conditions
    )
    return RouteStatus(parents=(parent,))


def good(generation: int = 1) -> Condition:
    return holds("Accepted", "Accepted", "ok", generation)


def bad(generation: int = 1) -> Condition:
    return fails("ResolvedRefs", "BackendNotFound", "no", generation)


class World:
    """A board with one fleet, and the API server's side of it."""

    def __init__(self) -> None:
        self.board = StatusTracker(OURS)
        self.revision = 0
        self.server: dict[Any, Any] = {}
        self.gateway = GatewayStatus(conditions=(holds("Programmed", "Programmed", "up", 1),))

    def want(self, version: str, now: float = 0.0, **routes: RouteStatus) -> set[Any]:
        self.revision += 1
        statuses = Statuses(
            gateways={("default", "gw"): self.gateway},
            http_routes={("default", name): one for name, one in routes.items()},
        )
        return self.board.want(statuses, self.revision, {"fleet": version}, FLEET_OF, now)

    def proxies(
        self, now: float = 0.0, attribute_rejections: Rejections = NO_REJECTIONS, **served: str
    ) -> set[Any]:
        return self.board.see_proxies(
            "fleet", served.keys(), dict(served), attribute_rejections, now
        )

    def write(self, ref: Any, now: float = 0.0) -> Any:
        fields = self.board.judge(ref, self.server.get(ref, {}), now, STAMP).fields
        if fields:
            self.server[ref] = {**self.server.get(ref, {}), **fields}
        return fields


def test_a_route_is_written_when_the_proxies_have_it_and_only_then() -> None:
    world = World()
    world.proxies(x="", y="")
    assert ROUTE in world.want("a", r=route(good()))
    assert world.write(ROUTE) is None
    assert ROUTE not in world.proxies(x="a", y="")
    assert world.write(ROUTE) is None
    assert ROUTE in world.proxies(x="a", y="a")
    assert world.write(ROUTE)["parents"][0]["conditions"][0]["status"] == "True"
    assert world.write(ROUTE) is None


def test_what_was_written_is_not_written_again() -> None:
    """Through JSON and back, with every kind of list that a Gateway's status has."""
    kind = RouteKind(group="g", kind="HTTPRoute")
    listener = ListenerStatus(
        name="http", supported_kinds=(kind,), attached_routes=0, conditions=(good(),)
    )
    world = World()
    world.proxies()
    world.gateway = GatewayStatus(
        addresses=(GatewayStatusAddress(type="IPAddress", value="192.0.2.1"),),
        conditions=(good(),),
        listeners=(listener,),
    )
    world.want("a")
    assert world.write(GATEWAY)
    world.server[GATEWAY] = json.loads(json.dumps(world.server[GATEWAY]))
    assert world.write(GATEWAY) is None


def test_an_unchanged_status_is_not_looked_at_again() -> None:
    world = World()
    world.proxies()
    world.want("a", r=route(good()))
    assert world.want("b", r=route(good())) == set()
    assert world.want("c", r=route(good(2))) == {ROUTE}


def test_bad_news_is_written_at_once_and_good_news_with_it_when_it_comes_soon() -> None:
    world = World()
    world.proxies(x="")
    world.want("a", r=route(fails("Accepted", "NoMatchingParent", "no", 1)))
    assert world.write(ROUTE)
    # Of both kinds: a moment is left for the tables, so that one write does for both.
    world.want("b", r=route(good(2), bad(2)))
    verdict = world.board.judge(ROUTE, world.server[ROUTE], 0.0, STAMP)
    assert (verdict.fields, verdict.again) == (None, GRACE)
    written = world.write(ROUTE, now=GRACE)["parents"][0]["conditions"]
    # Accepted=False of before is kept, because nothing serves the new one yet.
    assert {one["type"]: one["status"] for one in written} == {
        "Accepted": "False",
        "ResolvedRefs": "False",
    }


def test_a_route_that_is_no_longer_wanted_loses_its_entry() -> None:
    world = World()
    world.proxies()
    world.want("a", r=route(good()))
    world.write(ROUTE)
    assert world.want("b") == {ROUTE}
    assert world.write(ROUTE) == {"parents": []}
    assert world.board.is_ours(ROUTE)
    world.board.forget(ROUTE)
    assert not world.board.is_ours(ROUTE)
    assert ROUTE not in world.board.refs()


def test_entries_left_by_a_controller_before_are_found() -> None:
    world = World()
    world.board.disown(ROUTE)
    assert world.board.refs() == [ROUTE]
    entry = {"parentRef": {"name": "gw"}, "controllerName": OURS, "conditions": []}
    world.server[ROUTE] = {"parents": [entry]}
    assert world.write(ROUTE) == {"parents": []}


def test_a_straggler_is_waited_for_with_patience_and_named_on_the_gateway() -> None:
    world = World()
    world.proxies(x="", y="")
    world.want("a")
    world.proxies(x="a", y="a")
    world.write(GATEWAY)
    assert world.server[GATEWAY]["conditions"][0]["message"] == "up, 2/2 proxies at version 1"
    world.want("b", 100.0, r=route(good()))
    world.proxies(100.0, x="b", y="a")
    assert world.write(ROUTE, 100.0) is None
    assert world.board.next_look(100.0) == pytest.approx(PATIENCE)
    late = 100.0 + PATIENCE
    assert world.board.look(late) == {ROUTE, GATEWAY}
    assert world.write(ROUTE, late)
    world.write(GATEWAY, late)
    condition = world.server[GATEWAY]["conditions"][0]
    assert condition["status"] == "True"
    assert condition["message"] == "up, 1/2 proxies at version 1, behind: y"
    assert world.proxies(late, x="b", y="b") == {GATEWAY}


def test_a_fleet_that_is_gone_holds_nothing() -> None:
    world = World()
    world.proxies(x="")
    world.want("a", r=route(good()))
    assert world.write(ROUTE) is None
    statuses = Statuses(http_routes={("default", "r"): route(good())})
    assert ROUTE in world.board.want(statuses, 2, {}, {}, 0.0)
    assert world.write(ROUTE)


def test_what_proxies_refuse_is_told_and_taken_back() -> None:
    world = World()
    world.proxies(x="")
    world.want("a", r=route(good()))
    blamed = Rejections(
        gateways={("default", "gw"): ("x: no",)}, routes={("default", "r"): ("x: no",)}
    )
    assert {ROUTE, GATEWAY} <= world.proxies(attribute_rejections=blamed, x="a")
    types = [one["type"] for one in world.write(ROUTE)["parents"][0]["conditions"]]
    assert types == ["Accepted", "Programmed"]
    assert {ROUTE, GATEWAY} <= world.proxies(x="a")
    types = [one["type"] for one in world.write(ROUTE)["parents"][0]["conditions"]]
    assert types == ["Accepted"]


def test_the_fleet_of_a_gateway_may_change() -> None:
    world = World()
    world.proxies(x="")
    world.want("a")
    world.write(GATEWAY)
    other = {("default", "gw"): "other"}
    dirty = world.board.want(
        Statuses(gateways={("default", "gw"): world.gateway}), 2, {"other": "z"}, other, 0.0
    )
    assert GATEWAY in dirty
    world.board.see_proxies("other", (), {}, NO_REJECTIONS, 0.0)
    assert world.write(GATEWAY)["conditions"][0]["status"] == "True"


def test_blame_finds_who_has_to_do_with_a_resource() -> None:
    def host(name: str, route_: str, cluster: str) -> ir.VirtualHost:
        rule = ir.Rule(route=route_, index=0, backends=(ir.BackendRef(cluster=cluster),))
        return ir.VirtualHost(
            listener=f"default/{name}/http", hostname="*", rules=(rule,), entries=()
        )

    tls = ir.ListenerTls(certificates=("secret/default/cert",))
    fleet = ir.Fleet(
        name="fleet",
        listeners=(
            ir.Listener(name="default/gw/http", port=80, bind_port=80, protocol="HTTP", tls=tls),
            ir.Listener(name="default/other/http", port=81, bind_port=81, protocol="HTTP"),
        ),
        virtual_hosts=(host("gw", "default/r", "c1"), host("other", "default/s", "c2")),
    )

    def who(type_: str, name: str) -> tuple[list[Any], list[Any]]:
        found = attribute_rejections(fleet, [Refusal("x", type_, name, "no")])
        return sorted(found.gateways), sorted(found.routes)

    gw, other, r, s = ("default", "gw"), ("default", "other"), ("default", "r"), ("default", "s")
    assert who("virtual_host", "default/gw/http/*") == ([gw], [r])
    assert who("fragment", "default/gw/http/*#3") == ([gw], [r])
    assert who("cluster", "c2") == ([other], [s])
    assert who("listener", "default/other/http") == ([other], [])
    assert who("secret", "secret/default/cert") == ([gw], [])
    assert who("limit_store", "store") == ([gw, other], [])
    unit = ir.PolicyUnit(
        name="listener/default/other/http#filters.requests[0]",
        ext_auth=ir.ExtAuth(backends=(ir.AuthBackend("asked"),)),
    )
    front = msgspec.structs.replace(fleet.listeners[1], filters=(unit.name,))
    fleet = msgspec.structs.replace(fleet, listeners=(fleet.listeners[0], front), policies=(unit,))
    assert who("policy", unit.name) == who("cluster", "asked") == ([other], [])
    assert who("virtual_host", "default/gone/http/*") == ([], [])


def test_listener_sets_and_their_routes_wait_for_the_fleet_of_the_gateway() -> None:
    world = World()
    world.proxies(x="")
    parent = RouteParentStatus(
        parent_ref=ParentReference(kind="ListenerSet", name="more"),
        controller_name=OURS,
        conditions=(good(),),
    )
    programmed = holds("Programmed", "Programmed", "up", 1)
    statuses = Statuses(
        gateways={("default", "gw"): world.gateway},
        listener_sets={("default", "more"): ListenerSetStatus(conditions=(programmed,))},
        http_routes={("default", "r"): RouteStatus(parents=(parent,))},
        parents={("default", "more"): ("default", "gw")},
    )
    one = ("ListenerSet", "default", "more")
    assert {one, ROUTE} <= world.board.want(statuses, 1, {"fleet": "a"}, FLEET_OF, 0.0)
    assert world.write(ROUTE) is None
    assert world.write(one)["conditions"][0]["reason"] == "Pending"
    assert {one, ROUTE} <= world.proxies(x="a")
    assert world.write(ROUTE)["parents"][0]["conditions"][0]["status"] == "True"
    assert world.write(one)["conditions"][0]["status"] == "True"
    refused = Rejections(gateways={("default", "gw"): ("listener default/more/http: x: no",)})
    assert one in world.proxies(attribute_rejections=refused, x="a")


POLICY = ("SecurityPolicy", "default", "p")


def test_a_policy_is_programmed_when_its_proxies_have_it_and_while_there_are_any() -> None:
    world = World()
    world.proxies(x="")
    entry = PolicyAncestorStatus(
        ancestor_ref=ParentReference(name="gw"),
        controller_name=OURS,
        conditions=(good(), holds("Programmed", "Programmed", "Policy is programmed", 1)),
    )
    world.revision += 1
    statuses = Statuses(
        gateways={("default", "gw"): world.gateway},
        security_policies={("default", "p"): PolicyStatus(ancestors=(entry,))},
    )
    dirty = world.board.want(statuses, world.revision, {"fleet": "a"}, FLEET_OF, 0.0)
    assert POLICY in dirty

    def said() -> dict[str, str]:
        world.write(POLICY, now=GRACE)
        (one,) = world.server[POLICY]["ancestors"]
        return {c["type"]: c["reason"] for c in one["conditions"]}

    assert said() == {"Programmed": "Pending"}
    assert POLICY in world.proxies(x="a")
    assert said() == {"Accepted": "Accepted", "Programmed": "Programmed"}
    # The last proxy goes, and another one comes.
    assert POLICY in world.proxies(now=1.0)
    assert said()["Programmed"] == "Pending"
    assert POLICY in world.proxies(now=2.0, y="a")
    assert said() == {"Accepted": "Accepted", "Programmed": "Programmed"}


def test_a_policy_says_so_while_a_proxy_cannot_fetch_its_keys() -> None:
    world = World()
    world.proxies(x="a")
    entries = tuple(
        PolicyAncestorStatus(
            ancestor_ref=ParentReference(name=gateway),
            controller_name=OURS,
            conditions=(good(3), holds("Programmed", "Programmed", "Policy is programmed", 3)),
        )
        for gateway in ("gw", "of-another-fleet")
    )
    statuses = Statuses(security_policies={("default", "p"): PolicyStatus(ancestors=entries)})

    def want(version: str, fleet_of: dict[tuple[str, str], str] = FLEET_OF) -> Any:
        world.revision += 1
        versions = dict.fromkeys(fleet_of.values(), version)
        return world.board.want(statuses, world.revision, versions, fleet_of, 0.0)

    def said() -> list[Any]:
        world.write(POLICY, now=GRACE)
        return [
            next((one for one in entry["conditions"] if one["type"] == "KeysAvailable"), None)
            for entry in world.server[POLICY]["ancestors"]
        ]

    assert POLICY in want("a")
    assert said() == [None, None]
    text = "SecurityPolicy default/p spec.jwt: KeysNotFetched 404"
    assert world.board.see_keys("fleet", {("default", "p"): text}) == {POLICY}
    assert not world.board.see_keys("fleet", {("default", "p"): text})
    told, other = said()
    assert other is None
    assert (told["status"], told["reason"]) == ("False", "KeysNotFetched")
    assert told["message"].startswith(text) and told["observedGeneration"] == 3
    assert world.write(POLICY, now=GRACE) is None
    # A new controller has heard of no proxy yet: the condition stays until one has answered.
    world.board = StatusTracker(OURS)
    world.proxies(x="")
    want("a")
    assert said() == [told, None]
    assert POLICY in world.proxies(x="a")
    assert said() == [None, None]
    # It ends with the report, and with the fleet.
    for end in (lambda: world.board.see_keys("fleet", {}), lambda: want("a", {})):
        world.board.see_keys("fleet", {("default", "p"): text})
        assert said()[0] == told
        assert POLICY in end()
        assert said() == [None, None]


def test_blame_finds_who_asks_a_service() -> None:
    service = ir.ExtAuth(backends=(ir.AuthBackend("service/default/auth/80"),))
    fleet = ir.Fleet(
        name="fleet",
        virtual_hosts=(
            ir.VirtualHost(
                listener="default/gw/http",
                hostname="*",
                rules=(
                    ir.Rule(route="default/a", index=0, policies=("security/default/p#extAuth",)),
                    ir.Rule(route="default/b", index=0),
                    ir.Rule(route="default/c", index=0, ext_auth=service),
                ),
                entries=(),
            ),
        ),
        policies=(ir.PolicyUnit(name="security/default/p#extAuth", ext_auth=service),),
    )
    found = attribute_rejections(fleet, [Refusal("x", "cluster", "service/default/auth/80", "no")])
    assert found.routes.keys() == {("default", "a"), ("default", "c")}


def test_an_ingress_waits_for_the_fleet_that_serves_ingresses() -> None:
    board = StatusTracker(OURS)
    address = IngressAddress(ip="192.0.2.1")
    status = IngressStatus(load_balancer=IngressLoadBalancerStatus(ingress=(address,)))
    ref = ("Ingress", "app", "shop")
    fleets = {("edge", "Ingress"): "edge/made", ("default", "gw"): "fleet"}
    versions = {"edge/made": "v1", "fleet": "v1"}
    dirty = board.want(Statuses(ingresses={ref[1:]: status}), 1, versions, fleets, 0.0)
    assert ref in dirty
    board.see_proxies("edge/made", ["p"], {"p": "v0"}, NO_REJECTIONS, 0.0)
    board.see_proxies("fleet", ["p"], {"p": "v1"}, NO_REJECTIONS, 0.0)
    assert board.judge(ref, {}, 0.0, STAMP).fields is None
    assert ref in board.see_proxies("edge/made", ["p"], {"p": "v1"}, NO_REJECTIONS, 0.1)
    assert board.judge(ref, {}, 0.1, STAMP).fields == {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}
    }
    # It is of another class now: its addresses stay.
    assert ref in board.want(Statuses(), 2, versions, fleets, 1.0)
    assert (
        board.judge(ref, {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, 1.0, STAMP).fields
        is None
    )


def test_an_ingress_keeps_addresses_of_another_controller_until_there_are_own_ones() -> None:
    board = StatusTracker(OURS)
    ref = ("Ingress", "app", "shop")
    theirs = {"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}}
    board.want(Statuses(ingresses={ref[1:]: IngressStatus()}), 1, {}, {}, 0.0)
    assert board.judge(ref, theirs, 0.0, STAMP, ours=False).fields is None
    cleared = {"loadBalancer": {"ingress": []}}
    assert board.judge(ref, theirs, 0.0, STAMP, ours=True).fields == cleared
    address = IngressAddress(ip="192.0.2.1")
    status = IngressStatus(load_balancer=IngressLoadBalancerStatus(ingress=(address,)))
    board.want(Statuses(ingresses={ref[1:]: status}), 2, {}, {}, 1.0)
    own = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    assert board.judge(ref, theirs, 1.0, STAMP, ours=False).fields == own
