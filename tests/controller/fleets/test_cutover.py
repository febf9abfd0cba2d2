"""Succession: a fleet goes when another one takes its requests, and not before; a refused Gateway keeps its own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from controller.fleets.cutover import Kept, find_kept
from controller.fleets.fleet_owner import Owner, owner_of
from controller.fleets.ownership import ObjectFacts
from controller.pipeline import Outcome
from edgefast import ir
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.table import compile_fleet
from edgefast.translate.pipeline import translate
from edgefast.translate.settings import FleetState, Settings
from tests.support.manifest import manifest
from tests.translate import world

pytestmark = pytest.mark.pure

OLD = "edge-gateway-system/edge-edge-00000000"
MERGED = {OLD: Owner(gateway_class="edge")}
ADDRESS = ("192.0.2.1",)


def outcome(*gateways: Object, settings: Settings | None = None) -> Outcome:
    """Translate Gateways of the class "edge", each with a fleet of its own."""
    objects = Snapshot.of([world.gateway_class(), *gateways])
    translation = translate(objects, settings or Settings(standalone=False))
    shards = {one.name: compile_fleet(one) for one in translation.ir.fleets}
    return Outcome(revision=1, translation=translation, shards=shards, changed=frozenset())


def fleets(made: Outcome) -> list[str]:
    return [f"{one.namespace}/{one.name}" for one in made.translation.infra]


def kept(
    made: Outcome, owners: dict[str, Owner], serving: int = 9, /, **states: FleetState
) -> set[str]:
    """Return what stays; `states` by the place of a fleet: `old`, `new0`, `new1`; of each, `serving` pods have the table."""
    return set(found(made, owners, serving, **states).fleets)


def found(
    made: Outcome, owners: dict[str, Owner], serving: int = 9, /, **states: FleetState
) -> Kept:
    """The same, with what is told of it."""
    names = {f"new{at}": name for at, name in enumerate(fleets(made))}
    seen = {names.get(place, OLD): state for place, state in states.items()}
    return find_kept(made, owners, seen.get, served(made, serving))


def served(made: Outcome, count: int = 9) -> Callable[[str, str], set[str]]:
    """Pods of which `count` serve the present table of their fleet, and none another one."""
    present = {(name, made.shards[name.partition("/")[2]].version) for name in fleets(made)}
    nodes = {f"pod-{at}" for at in range(count)}
    return lambda fleet, version: nodes if (fleet, version) in present else set()


def state(
    ready: int = 1,
    replicas: int = 1,
    addresses: tuple[str, ...] = ADDRESS,
    ports: tuple[tuple[ir.Transport, int], ...] = (("TCP", 80), ("TCP", 81)),
    failure: str = "",
) -> FleetState:
    pods = tuple(f"pod-{at}" for at in range(ready))
    return FleetState(
        name="", ready=pods, replicas=replicas, addresses=addresses, ports=ports, failure=failure
    )


def refused(name: str = "gw") -> Object:
    """A Gateway whose parameters are not there."""
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "nothing"}
    made = manifest(
        f"Gateway default/{name}",
        {
            "gatewayClassName": "edge",
            "infrastructure": {"parametersRef": reference},
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    )
    return world.make(made)


@pytest.mark.parametrize(
    ("heir", "lack"),
    [
        (None, "its objects do not exist"),
        (state(ready=0), "0 of 1 proxies are ready"),
        (state(ready=1, replicas=2), "1 of 2 proxies are ready"),
        (state(ready=0, replicas=0), "0 of 1 proxies are ready"),
        (state(addresses=()), "it has no address"),
        (state(ready=2, ports=(("TCP", 443), ("UDP", 80))), "its Service lacks port 80"),
        (state(ready=2, failure="Service edge/edge: 403 Forbidden"), "it could not be applied"),
    ],
    ids=[
        "nothing of it",
        "no pod",
        "not all pods",
        "no workload",
        "no address",
        "ports before",
        "refused",
    ],
)
def test_a_fleet_stays_until_its_successor_takes_requests(
    heir: FleetState | None, lack: str
) -> None:
    """Whoever asks why is told at the Gateway of the successor."""
    made = outcome(world.gateway())
    seen = {"new0": heir} if heir else {}
    told = found(made, MERGED, old=state(ready=2), **seen)
    assert told.fleets == {OLD}
    said = f"fleet {OLD} serves its last table until this one takes over: {lack}"
    assert told.waiting == {fleets(made)[0]: (said,)}
    assert kept(made, MERGED, old=state(ready=2), new0=state(ready=2, replicas=2)) == set()


def test_a_successor_that_is_up_already_takes_over_when_its_pods_have_the_table() -> None:
    """A Gateway moves into a fleet whose pods, address and ports are there; its routes are not."""
    made = outcome(world.gateway())
    up = state(ready=2, replicas=2)
    assert kept(made, MERGED, 0, old=state(), new0=up) == {OLD}
    ((said,),) = found(made, MERGED, 1, old=state(), new0=up).waiting.values()
    assert said.endswith("takes over: pod-1 do not serve its table")
    assert kept(made, MERGED, 2, old=state(), new0=up) == set()


def test_pods_that_cannot_be_hold_nothing_up() -> None:
    """A DaemonSet with a node that is dead: as many pods as before are enough."""
    made = outcome(world.gateway())
    short = state(ready=2, replicas=3)
    assert kept(made, MERGED, old=state(ready=2, replicas=3), new0=short) == set()
    assert kept(made, MERGED, old=state(ready=3, replicas=3), new0=short) == {OLD}
    assert kept(made, MERGED, old=state(ready=0), new0=short) == set()  # one, at least


def test_a_successor_that_is_to_have_no_pods_is_not_waited_for() -> None:
    made = outcome(world.gateway())
    (infra,) = made.translation.infra
    none = msgspec.structs.replace(infra, replicas=0)
    made = msgspec.structs.replace(
        made, translation=msgspec.structs.replace(made.translation, infra=(none,))
    )
    assert kept(made, MERGED, old=state(), new0=state(ready=0, replicas=0)) == set()
    assert kept(made, MERGED, old=state()) == set()


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
    assert find_kept(made, owners, seen.get, served(made)).fleets == {old}
    seen[new] = state()
    assert find_kept(made, owners, seen.get, served(made)) == Kept()


def asking(address: str, name: str = "gw", port: int = 80) -> Object:
    """A Gateway that asks for an address."""
    return world.make(
        f"Gateway default/{name}",
        {
            "gatewayClassName": "edge",
            "addresses": [{"type": "IPAddress", "value": address}],
            "listeners": [{"name": "http", "port": port, "protocol": "HTTP"}],
        },
    )


def test_a_merged_fleet_that_all_gateways_have_left_waits_for_those_that_it_was_for() -> None:
    """They have another class now; its labels do not tell of them, the process that wanted it last does."""
    made = outcome(world.gateway("one"), world.gateway("gone-on", port=81))
    left = {OLD: Owner(gateway_class="left")}
    gateways = (("default", "one"), ("default", "no-more"))
    sight = ObjectFacts(served=lambda fleet: gateways if fleet == OLD else ())
    new = next(name for name in fleets(made) if "-one-" in name)
    seen = {OLD: state()}
    told = find_kept(made, left, seen.get, served(made), sight)
    assert told.fleets == {OLD} and set(told.waiting) == {new}
    seen[new] = state()
    assert find_kept(made, left, seen.get, served(made), sight).fleets == set()
    # After a restart nobody knows, and its class is gone or has nobody.
    assert find_kept(made, left, {OLD: state()}.get, served(made)).fleets == set()


def test_an_address_that_is_asked_for_is_let_go_of_at_once() -> None:
    """It can be at one Service alone; whoever waits for it is told why nobody answers meanwhile."""
    made = outcome(asking("2001:db8::9"))
    told = found(made, MERGED, old=state(addresses=("2001:db8:0:0::9",)))
    assert told.fleets == set() and not told.waiting
    assert told.let_go == {
        fleets(made)[
            0
        ]: f"fleet {OLD} was removed before this one took over because only one Service can "
        "have address 2001:db8::9"
    }
    # Another one that is waited for keeps it there.
    both = outcome(asking(*ADDRESS), world.gateway("two", port=81))
    told = found(both, MERGED, old=state())
    assert told.fleets == {OLD}
    assert list(told.let_go.values()) == [
        f"only one Service can have address {ADDRESS[0]}, and fleet {OLD} has it until it is "
        "removed"
    ]


def test_an_address_that_the_one_before_has_not_is_no_reason_to_break() -> None:
    made = outcome(asking("192.0.2.9"))
    assert kept(made, MERGED, old=state()) == {OLD}
    assert kept(made, MERGED, old=state(), new0=state(addresses=("192.0.2.9",))) == set()


def test_a_refused_gateway_keeps_what_it_has() -> None:
    made = outcome(refused())
    assert fleets(made) == []
    own = {OLD: Owner("default", "gw")}
    assert kept(made, own, old=state()) == {OLD}
    assert kept(made, MERGED) == {OLD}
    # One that somebody else serves already is not held up by it.
    both = outcome(world.gateway("one"), refused())
    assert kept(both, MERGED, old=state(), new0=state()) == set()


def test_the_fleet_of_a_gateway_that_is_gone_goes_and_one_without_a_word_of_whose_it_is_stays() -> (
    None
):
    made = outcome(world.gateway())
    owners = {OLD: Owner("default", "gone"), "x/y": owner_of({})}
    told = found(made, owners, old=state())
    assert told.fleets == {"x/y"}
    assert told.claims["x/y"].why == "its labels do not name its owner"


def test_the_owner_is_read_from_labels() -> None:
    labels = {
        "gateway.edge.io/owning-gateway-namespace": "shop",
        "gateway.edge.io/owning-gatewayclass": "edge",
    }
    assert owner_of(labels) == Owner("shop", "", "edge")
