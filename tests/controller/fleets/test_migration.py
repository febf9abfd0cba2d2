"""Overlap: who leaves a merged fleet is served there until the next one takes over; nobody else notices."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import pytest

from controller.fleets.migration import LINGER, Migration
from controller.pipeline import Outcome
from edgefast import ir
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.table import compile_fleet
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings
from tests.translate import world

pytestmark = pytest.mark.pure

SYSTEM = "edge-gateway-system"
ADDRESS = ("192.0.2.1",)
LISTENER = "default/leaves/http"


def merged_class(name: str) -> tuple[Object, Object]:
    """A class whose Gateways share a fleet."""
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": name, "namespace": SYSTEM}
    spec = {"controllerName": "gateway.edge.io/gatewayclass-controller", "parametersRef": reference}
    return (
        world.make(f"GatewayClass {name}", spec),
        world.make(f"EdgeProxy {SYSTEM}/{name}", {"mergeGateways": True}),
    )


def gateway(name: str, class_name: str, *listeners: dict[str, Any], **spec: Any) -> Object:
    """A Gateway; without listeners it has one on port 80 for a host of its own."""
    own = {"name": "http", "port": 80, "protocol": "HTTP", "hostname": f"{name}.example"}
    return world.make(
        f"Gateway default/{name}",
        {"gatewayClassName": class_name, "listeners": list(listeners) or [own], **spec},
    )


BASE = (
    world.gateway_class(),
    *merged_class("merged"),
    *merged_class("others"),
    world.service("web"),
    world.endpoints("web", "10.0.0.1"),
    world.service("shop"),
    world.endpoints("shop", "10.0.0.2"),
    gateway("stays", "merged"),
    world.route(0, host="stays.example", backend="web", parents=[{"name": "stays"}]),
    world.route(1, host="leaves.example", backend="shop", parents=[{"name": "leaves"}]),
)


class Cluster:
    """Runs outcomes through one Overlap; `states` and `serving` are what is seen."""

    def __init__(self, *objects: Object) -> None:
        self.overlap = Migration()
        self.snapshot = Snapshot.of([*BASE, *objects])
        self.states: dict[str, FleetState] = {}
        self.serves = True
        self.now = 100.0
        self._before: Outcome | None = None

    def apply(self, *objects: Object, removed: tuple[Any, ...] = ()) -> Outcome:
        """Translate with other objects."""
        self.snapshot = self.snapshot.replace(objects, removed)
        return self.run()

    def run(self) -> Outcome:
        before = self._before
        settings = Settings(standalone=False)
        translation = translate(self.snapshot, settings, before.translation if before else None)
        self.plain = Outcome(
            revision=before.revision + 1 if before else 1,
            translation=translation,
            shards={one.name: compile_fleet(one) for one in translation.ir.fleets},
            changed=frozenset(),
        )
        self._before = self.plain
        return self.overlap.extend(self.plain, self.states.get, self._serving, self.now)

    def run_out(self) -> Outcome:
        """The next fleet can take over, and the time for clients to follow is over."""
        assert self.run() is not self.plain and not self.overlap.waiting
        self.now = self.overlap.next_end()
        return self.run()

    def _serving(self, fleet: str, version: str) -> Set[str]:
        return {"pod"} if self.serves else set()

    def see(self, outcome: Outcome, name: str, **changes: Any) -> None:
        """A fleet that can do all it is to do, but for the changes."""
        infra = infra_of(outcome, name)
        state = {
            "addresses": ADDRESS,
            "ready": ("pod",),
            "replicas": 1,
            "ports": tuple((one.protocol, one.port) for one in infra.ports),
        }
        seen = FleetState(name=infra.name, namespace=infra.namespace, **{**state, **changes})
        self.states[f"{infra.namespace}/{infra.name}"] = seen


def infra_of(outcome: Outcome, name: str) -> ir.Infra:
    """Return the fleet of a class or Gateway, by the beginning of its name."""
    return next(one for one in outcome.translation.infra if one.name.startswith(f"edge-{name}-"))


def fleet_of(outcome: Outcome, name: str) -> ir.Fleet:
    wanted = infra_of(outcome, name).name
    return next(one for one in outcome.translation.ir.fleets if one.name == wanted)


def listeners_of(outcome: Outcome, name: str) -> set[str]:
    """Return the listeners in a fleet's table, which is the one that the IR is of."""
    fleet = fleet_of(outcome, name)
    found = {one for type_, one in outcome.shards[fleet.name].resources if type_ == "listener"}
    assert found == {one.name for one in fleet.listeners}
    return found


def moved(*listeners: dict[str, Any]) -> tuple[Cluster, Outcome]:
    """Two Gateways in a merged fleet, of which one has left for a fleet of its own that is not there yet."""
    cluster = Cluster(gateway("leaves", "merged", *listeners))
    first = cluster.run()
    assert first is cluster.plain
    cluster.see(first, "merged")
    return cluster, cluster.apply(gateway("leaves", "edge", *listeners))


def test_who_leaves_is_served_until_the_next_fleet_takes_over() -> None:
    cluster, outcome = moved()
    heir = f"{SYSTEM}/{infra_of(outcome, 'default-leaves').name}"
    host = infra_of(outcome, "merged").name
    assert listeners_of(outcome, "merged") == {"default/stays/http", LISTENER}
    fleet = fleet_of(outcome, "merged")
    assert {one.name for one in fleet.clusters} == {
        "service/default/web/80",
        "service/default/shop/80",
    }
    assert host in outcome.changed and cluster.overlap
    said = f"fleet {SYSTEM}/{host} serves default/leaves until this one takes over: "
    assert cluster.overlap.waiting == {heir: (f"{said}its objects do not exist",)}

    # Its next fleet is there in part: still both.
    for lacking in ({"ready": ()}, {"addresses": ()}, {"ports": ()}):
        cluster.see(outcome, "default-leaves", **lacking)
        assert LISTENER in listeners_of(cluster.run(), "merged")
    cluster.see(outcome, "default-leaves")
    cluster.serves = False
    assert LISTENER in listeners_of(cluster.run(), "merged")
    assert cluster.overlap.waiting == {heir: (f"{said}pod do not serve its table",)}

    # All is there: clients get time to follow, unless it breaks again.
    cluster.serves = True
    assert LISTENER in listeners_of(cluster.run(), "merged") and not cluster.overlap.waiting
    assert cluster.overlap.next_end() == cluster.now + LINGER
    cluster.see(outcome, "default-leaves", ready=())
    cluster.now += LINGER + 1
    assert LISTENER in listeners_of(cluster.run(), "merged") and not cluster.overlap.next_end()
    cluster.see(outcome, "default-leaves")
    outcome = cluster.run_out()
    assert listeners_of(outcome, "merged") == {"default/stays/http"}
    assert host in outcome.changed, "its proxies have to hear of it"
    assert not cluster.overlap and not cluster.overlap.waiting
    assert cluster.run() is cluster.plain


def test_edits_and_endpoints_are_followed_meanwhile() -> None:
    cluster, _ = moved()
    outcome = cluster.apply(
        world.endpoints("shop", "10.0.0.7"),
        world.route(1, "/new", host="leaves.example", backend="shop", parents=[{"name": "leaves"}]),
    )
    fleet = fleet_of(outcome, "merged")
    (shop,) = (one for one in fleet.clusters if "shop" in one.name)
    assert [one.address for one in shop.endpoints] == ["10.0.0.7"]
    (host,) = (one for one in fleet.virtual_hosts if one.listener == LISTENER)
    assert "/new" in str(host)


def test_a_port_of_its_own_stays_at_the_service_of_the_fleet_before() -> None:
    own = {"name": "http", "port": 8080, "protocol": "HTTP"}
    cluster, outcome = moved(own)
    assert [one.port for one in infra_of(outcome, "merged").ports] == [80, 8080]
    cluster.see(outcome, "default-leaves")
    assert [one.port for one in infra_of(cluster.run_out(), "merged").ports] == [80]


@pytest.mark.parametrize(
    "taken",
    [
        {"name": "b", "port": 80, "protocol": "HTTP", "hostname": "leaves.example"},
        {"name": "b", "port": 10080, "protocol": "HTTP", "hostname": "b.example"},
    ],
    ids=["hostname", "port of containers"],
)
def test_those_whom_the_fleet_is_for_come_first(taken: dict[str, Any]) -> None:
    cluster, _ = moved()
    outcome = cluster.apply(gateway("stays", "merged", taken))
    assert listeners_of(outcome, "merged") == {"default/stays/b"}


def test_an_address_that_is_asked_for_is_at_one_service_alone() -> None:
    asked = {"addresses": [{"type": "IPAddress", "value": ADDRESS[0]}]}
    cluster = Cluster(gateway("leaves", "merged", **asked))
    first = cluster.run()
    cluster.see(first, "merged")
    outcome = cluster.apply(gateway("leaves", "edge", **asked))
    assert listeners_of(outcome, "merged") == {"default/stays/http"}
    heir = f"{SYSTEM}/{infra_of(outcome, 'default-leaves').name}"
    host = f"{SYSTEM}/{infra_of(outcome, 'merged').name}"
    said = (
        f"only one Service can have address {ADDRESS[0]}, "
        f"so fleet {host} released it before this one took over"
    )
    assert cluster.overlap.let_go == {heir: (said,)}
    # Told for as long as it may matter, though the fleet before has another address by now.
    cluster.see(outcome, "merged", addresses=("192.0.2.77",))
    cluster.run()
    assert cluster.overlap.let_go == {heir: (said,)}
    cluster.see(outcome, "default-leaves")
    cluster.run()
    assert not cluster.overlap.let_go


def test_who_comes_back_or_goes_is_no_guest() -> None:
    cluster, _ = moved()
    outcome = cluster.apply(gateway("leaves", "merged"))
    assert LISTENER in listeners_of(outcome, "merged") and not cluster.overlap
    outcome = cluster.apply(gateway("leaves", "edge"))
    assert LISTENER in listeners_of(outcome, "merged") and cluster.overlap
    outcome = cluster.apply(gateway("leaves", "nobodys"))
    assert listeners_of(outcome, "merged") == {"default/stays/http"} and not cluster.overlap


def test_nothing_of_others_in_the_next_fleet_comes_along() -> None:
    """It may be merged, too: what the fleet before is given is what the guest uses, no more."""
    cluster = Cluster(
        gateway("leaves", "merged"),
        gateway("stranger", "others"),
        world.service("secret"),
        world.route(2, host="stranger.example", backend="secret", parents=[{"name": "stranger"}]),
    )
    cluster.see(cluster.run(), "merged")
    outcome = cluster.apply(gateway("leaves", "others"))
    assert listeners_of(outcome, "others") == {"default/stranger/http", LISTENER}
    assert listeners_of(outcome, "merged") == {"default/stays/http", LISTENER}
    fleet = fleet_of(outcome, "merged")
    assert {one.name for one in fleet.clusters} == {
        "service/default/web/80",
        "service/default/shop/80",
    }
    assert {one.listener for one in fleet.virtual_hosts} == {"default/stays/http", LISTENER}


def policy(name: str, kind: str, *, of: str = "Gateway", **spec: Any) -> Object:
    group = "" if of == "Service" else "gateway.networking.k8s.io"
    target = {"group": group, "kind": of, "name": name}
    return world.make(f"{kind} default/{name}", {"targetRefs": [target], **spec})


def test_policies_of_both_go_on() -> None:
    """A rule whose unit was not found in the table answers 500: those of who stays are there, and those of who has left and of its backends, with whom they ask."""
    service = {"backendRefs": [{"name": "auth", "port": 80}]}
    near = {"type": "LeastRequest", "zoneAware": {"preferLocal": {}}}
    cluster = Cluster(
        gateway("leaves", "merged"),
        world.service("auth"),
        world.endpoints("auth", "10.0.0.3"),
        policy("stays", "BackendTrafficPolicy", loadBalancer=near),
        policy("leaves", "SecurityPolicy", extAuth={"http": service}),
        policy("shop", "BackendTrafficPolicy", of="Service", circuitBreaker={"maxConnections": 5}),
    )
    cluster.see(cluster.run(), "merged")
    outcome = cluster.apply(gateway("leaves", "edge"))
    fleet = fleet_of(outcome, "merged")
    assert {host.listener for host in fleet.virtual_hosts} == {"default/stays/http", LISTENER}
    named = {name for host in fleet.virtual_hosts for rule in host.rules for name in rule.units()}
    assert len(named) == 3 and named == {one.name for one in fleet.policies}
    assert "service/default/auth/80" in {one.name for one in fleet.clusters}
    assert fleet.proxies is not None
    table = outcome.shards[fleet.name].resources
    assert {("policy", name) for name in named} | {("proxies", "fleet")} <= table.keys()
