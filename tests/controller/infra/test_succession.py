"""Succession: a fleet goes when another one takes its requests, and not before; a refused Gateway keeps its own."""

from __future__ import annotations

import pytest

from controller.infra.succession import Owner, find_kept, owner_of
from controller.pipeline import Outcome
from edgefast.resources.kinds import Object
from edgefast.resources.snapshot import Snapshot
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings
from tests.translate import world

pytestmark = pytest.mark.pure

OLD = "edge-gateway-system/edge-edge-00000000"
MERGED = {OLD: Owner(gateway_class="edge")}
ADDRESS = ("192.0.2.1",)


def outcome(*gateways: Object, settings: Settings | None = None) -> Outcome:
    """Translate Gateways of the class "edge", each with a fleet of its own."""
    objects = Snapshot.of([world.gateway_class(), *gateways])
    translation = translate(objects, settings or Settings(standalone=False))
    return Outcome(revision=1, translation=translation, shards={}, changed=frozenset())


def fleets(made: Outcome) -> list[str]:
    return [f"{one.namespace}/{one.name}" for one in made.translation.infra]


def kept(made: Outcome, owners: dict[str, Owner], **states: FleetState) -> set[str]:
    """Return what stays; `states` by the place of a fleet: `old`, `new0`, `new1`."""
    names = {f"new{at}": name for at, name in enumerate(fleets(made))}
    seen = {names.get(place, OLD): state for place, state in states.items()}
    return find_kept(made, owners, seen.get)


def state(ready: int = 1, replicas: int = 1, addresses: tuple[str, ...] = ADDRESS) -> FleetState:
    pods = tuple(f"pod-{at}" for at in range(ready))
    return FleetState(name="", ready=pods, replicas=replicas, addresses=addresses)


def refused(name: str = "gw") -> Object:
    """A Gateway whose parameters are not there."""
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "nothing"}
    made = {
        "apiVersion": world.GATEWAY,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "gatewayClassName": "edge",
            "infrastructure": {"parametersRef": reference},
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    }
    return world.make(made)


@pytest.mark.parametrize(
    "heir",
    [None, state(ready=0), state(ready=1, replicas=2), state(addresses=())],
    ids=["nothing of it", "no pod", "not all pods", "no address"],
)
def test_a_fleet_stays_until_its_successor_takes_requests(heir: FleetState | None) -> None:
    made = outcome(world.gateway())
    seen = {"new0": heir} if heir else {}
    assert kept(made, MERGED, old=state(), **seen) == {OLD}
    assert kept(made, MERGED, old=state(), new0=state()) == set()


def test_every_successor_of_a_merged_fleet_is_waited_for() -> None:
    made = outcome(world.gateway("one"), world.gateway("two", port=81))
    assert len(fleets(made)) == 2
    assert kept(made, MERGED, old=state(), new0=state()) == {OLD}
    assert kept(made, MERGED, old=state(), new0=state(), new1=state()) == set()


def test_a_moment_without_a_ready_pod_costs_no_fleet() -> None:
    made = outcome(world.gateway())
    assert kept(made, MERGED, old=state(ready=0)) == {OLD}
    assert kept(made, MERGED) == set()  # there is nothing of it


def test_where_no_load_balancer_is_none_is_waited_for() -> None:
    made = outcome(world.gateway())
    assert kept(made, MERGED, old=state(addresses=()), new0=state(addresses=())) == set()


def test_the_same_name_in_another_namespace_is_another_fleet() -> None:
    """The deployment mode has changed: the fleet moves from the controller's namespace to the Gateway's."""
    settings = Settings(standalone=False, gateway_namespace_mode=True)
    made = outcome(world.gateway(), settings=settings)
    (new,) = fleets(made)
    old = f"edge-gateway-system/{new.partition('/')[2]}"
    owners = {old: Owner("default", "gw")}
    seen = {old: state()}
    assert find_kept(made, owners, seen.get) == {old}
    seen[new] = state()
    assert find_kept(made, owners, seen.get) == set()


def test_an_address_that_is_asked_for_is_let_go_of_at_once() -> None:
    gateway = world.make(
        {
            "apiVersion": world.GATEWAY,
            "kind": "Gateway",
            "metadata": {"name": "gw", "namespace": "default"},
            "spec": {
                "gatewayClassName": "edge",
                "addresses": [{"type": "IPAddress", "value": "192.0.2.9"}],
                "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
            },
        }
    )
    assert kept(outcome(gateway), MERGED, old=state()) == set()


def test_a_refused_gateway_keeps_what_it_has() -> None:
    made = outcome(refused())
    assert fleets(made) == []
    own = {OLD: Owner("default", "gw")}
    assert kept(made, own, old=state()) == {OLD}
    assert kept(made, MERGED) == {OLD}
    # One that somebody else serves already is not held up by it.
    both = outcome(world.gateway("one"), refused())
    assert kept(both, MERGED, old=state(), new0=state()) == set()


def test_nobodys_fleet_and_that_of_a_gateway_that_is_gone_go() -> None:
    made = outcome(world.gateway())
    owners = {OLD: Owner("default", "gone"), "x/y": owner_of({})}
    assert kept(made, owners, old=state()) == set()


def test_the_owner_is_read_from_labels() -> None:
    labels = {
        "gateway.edge.io/owning-gateway-namespace": "shop",
        "gateway.edge.io/owning-gatewayclass": "edge",
    }
    assert owner_of(labels) == Owner("shop", "", "edge")
