"""XBackends over changes: each costs what belongs to it, and the outcome is what is made when there is no before."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.api.gateway.xbackend import EndpointSelector, XBackend
from edgefast.api.kinds import EXPERIMENTAL_GROUP, Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings, Translation, translate
from edgefast.translate.backend.pod_selectors import MOST
from edgefast.translate.conditions.condition import Condition
from edgefast.translate.conditions.status import PolicyStatus
from tests.translate import world
from tests.translate.test_speed import count_calls

pytestmark = pytest.mark.pure

CLUSTER = Settings(standalone=False)


def pods(name: str, labels: dict[str, str], **spec: Any) -> Object:
    """Return an XBackend of Pods; its labels are not checked, as those of an API server are not."""
    made = world.make(
        f"XBackend default/{name}",
        {
            "type": "EndpointSelector",
            "port": {"number": 80},
            "endpointSelector": {"matchLabels": {"app": "web"}},
            **spec,
        },
        api=f"{EXPERIMENTAL_GROUP}/v1alpha1",
    )
    assert isinstance(made, XBackend)
    selector = EndpointSelector(match_labels=labels)
    spec_of = msgspec.structs.replace(made.spec, endpoint_selector=selector)
    return msgspec.structs.replace(made, spec=spec_of)


def route(index: int, *names: str) -> Object:
    refs = [{"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": name} for name in names]
    return world.route(index, path=f"/{index}", backendRefs=refs)


def select(snapshot: Snapshot, labels: str, *addresses: str, unread: str = "") -> Snapshot:
    draft = snapshot.pods.edit()
    found = tuple(SelectedPod(address=one) for one in addresses)
    draft["default", labels] = SelectedPods(pods=found, unread=unread)
    return msgspec.structs.replace(snapshot, pods=draft.done())


def same(one: Translation, other: Translation) -> bool:
    told = [set(each.problems) for each in (one, other)]
    return (one.ir, dict(one.statuses.items())) == (
        other.ir,
        dict(other.statuses.items()),
    ) and told[0] == told[1]


def policy(own: str, ref: dict[str, Any] | None = None, name: str = "") -> Object:
    """Return a SecurityPolicy that asks what `ref` names, on the Gateway of that name, or "gw"; or on a route of that name and asks nobody."""
    kind = "Gateway" if ref else "HTTPRoute"
    named = name or ("gw" if ref else "")
    target = {"group": "gateway.networking.k8s.io", "kind": kind, "name": named}
    says: dict[str, Any] = {"authorization": {"defaultAction": "Allow"}}
    if ref:
        says = {"extAuth": {"http": {"backendRef": ref}}}
    return world.make(f"SecurityPolicy default/{own}", {"targetRefs": [target], **says})


def tell_accepted(found: Translation, name: str) -> tuple[str, int]:
    (condition,) = conditions_of(found, name)
    return condition.status, condition.observed_generation


def conditions_of(found: Translation, name: str) -> tuple[Condition, ...]:
    status = found.statuses.x_backends["default", name]
    assert isinstance(status, PolicyStatus)
    (entry,) = status.ancestors
    return entry.conditions


@pytest.fixture
def made() -> tuple[Snapshot, Translation]:
    snapshot = Snapshot.of(
        [
            world.gateway_class(),
            world.gateway(),
            *(pods(f"b{at}", {"app": f"a{at}"}) for at in range(4)),
            *(route(at, f"b{at}") for at in range(4)),
        ]
    )
    snapshot = select(snapshot, "app=a0", "10.0.0.1")
    return snapshot, translate(snapshot, CLUSTER)


def test_pods_cost_their_cluster_alone(made: tuple[Snapshot, Translation]) -> None:
    snapshot, before = made
    after = select(snapshot, "app=a0", "10.0.0.1", "10.0.0.2")
    found = translate(after, CLUSTER, before)
    assert (found.work.routes, found.work.clusters) == (0, 1)
    (fleet,) = found.ir.fleets
    changed = next(one for one in fleet.clusters if one.name == "xbackend/default/b0")
    assert [one.address for one in changed.endpoints] == ["10.0.0.1", "10.0.0.2"]
    assert same(found, translate(after, CLUSTER))


def test_pods_that_cannot_be_read_are_told_of_and_stay(made: tuple[Snapshot, Translation]) -> None:
    snapshot, before = made
    after = select(snapshot, "app=a0", "10.0.0.1", unread="Forbidden")
    found = translate(after, CLUSTER, before)
    assert (found.work.routes, found.work.clusters) == (0, 1)
    assert found.ir.fleets == before.ir.fleets
    accepted, resolved = conditions_of(found, "b0")
    assert (accepted.status, resolved.type, resolved.status) == ("True", "ResolvedRefs", "False")
    assert resolved.reason == "PodsNotRead" and "(Forbidden)" in resolved.message
    assert same(found, translate(after, CLUSTER))
    back = translate(snapshot, CLUSTER, found)
    assert conditions_of(back, "b0") == (accepted,) and same(back, before)


def test_an_edit_costs_those_who_name_it(made: tuple[Snapshot, Translation]) -> None:
    snapshot, before = made
    edited = pods("b0", {"app": "a0"}, sessionPersistence={"cookie": {"name": "sid"}})
    after = snapshot.replace(changed=[edited])
    found = translate(after, CLUSTER, before)
    assert (found.work.routes, found.work.clusters) == (1, 1)
    assert same(found, translate(after, CLUSTER))
    kept = before.statuses.x_backends["default", "b1"]
    assert found.statuses.x_backends["default", "b1"] is kept


def test_a_ref_with_another_port_knows_what_the_xbackend_comes_to() -> None:
    """Accepted is of the XBackend, whoever refers to it, and of its newest generation."""
    ref = {"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": "b", "port": 81}
    for user in (world.route(0, backendRefs=[ref]), policy("ask", ref)):
        broken = pods("b", {"app": "a"}, protocol="MCP")
        snapshot = Snapshot.of([world.gateway_class(), world.gateway(), user, broken])
        found = translate(snapshot, CLUSTER)
        assert tell_accepted(found, "b") == ("False", broken.metadata.generation)
        for generation, protocol in ((7, "HTTP"), (8, "HTTP"), (9, "MCP")):
            edited = pods("b", {"app": "a"}, protocol=protocol)
            meta = msgspec.structs.replace(edited.metadata, generation=generation)
            edited = msgspec.structs.replace(edited, metadata=meta)
            snapshot = snapshot.replace(changed=[edited])
            found = translate(snapshot, CLUSTER, found)
            accepted = "False" if protocol == "MCP" else "True"
            assert tell_accepted(found, "b") == (accepted, generation)
            assert same(found, translate(snapshot, CLUSTER))


def test_one_policy_costs_the_same_among_few_and_among_many() -> None:
    """Who asks an XBackend is known without looking at the policies that ask none."""

    def calls(there: int) -> int:
        asking = policy("ask", {"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": "b"})
        rest = (policy(f"p{at}", name=f"r{at}") for at in range(there))
        objects = (world.gateway_class(), world.gateway(), pods("b", {"app": "a"}), asking, *rest)
        snapshot = Snapshot.of(objects)
        before = translate(snapshot, CLUSTER)
        assert tell_accepted(before, "b") == ("True", 0)
        after = snapshot.replace(changed=[policy("p0", name="other")])
        return count_calls(lambda: translate(after, CLUSTER, before))

    assert calls(400) < 1.3 * calls(40)


#: Labels that translation refuses: no key, no value, too many of them, too long together.
UNSOUND: tuple[dict[str, str], ...] = (
    {"z!": "v"},
    {"a b": "c"},
    {"app": "b,c=d"},
    {f"k{at}": "v" for at in range(65)},
    {f"{'p' * 60}/{'k' * 60}{at}": "v" * 63 for at in range(64)},
)


@pytest.mark.parametrize("labels", UNSOUND)
def test_labels_that_are_refused_take_no_place(labels: dict[str, str]) -> None:
    name = next(iter(labels))
    older = [pods(f"a{at}", {**labels, name: f"{labels[name]}{at}"[-63:]}) for at in range(MOST)]
    snapshot = Snapshot.of([world.gateway_class(), world.gateway(), *older])
    users = [route(1, *(f"a{at}" for at in range(MOST))), route(0, "b")]
    found = translate(snapshot.replace(changed=[pods("b", {"app": "web"}), *users]), CLUSTER)
    assert found.selections == {("default", "app=web")}
    assert tell_accepted(found, "b") == ("True", 0)
    assert tell_accepted(found, "a0") == ("False", 0)


@pytest.mark.parametrize("seed", range(12))
def test_any_history_comes_to_the_same(seed: int) -> None:
    """Objects and Pods come, change and go; selectors go over their bound and back."""
    random = Random(seed)
    snapshot = Snapshot.of([world.gateway_class(), world.gateway()])
    found: Translation | None = None
    for _ in range(25):
        match random.randint(0, 5):
            case 0 | 1:
                name, label = f"b{random.randint(0, 24)}", f"a{random.randint(0, 20)}"
                spec = random.choice(
                    (
                        {},
                        {"protocol": "HTTP2"},
                        {"sessionPersistence": {}},
                        {"protocol": "TCP"},
                        {"externalHostname": {"hostname": "a.example.com"}},
                    )
                )
                odd = random.choice((None, None, *UNSOUND))
                snapshot = snapshot.replace(
                    changed=[
                        pods(f"{name}-{at}", odd or {"app": f"{label}{at}"}, **spec)
                        for at in range(6)
                    ]
                )
            case 2:
                names = [f"b{random.randint(0, 24)}-{random.randint(0, 5)}" for _ in range(3)]
                snapshot = snapshot.replace(changed=[route(random.randint(0, 3), *names)])
            case 3:
                label = f"app=a{random.randint(0, 20)}{random.randint(0, 5)}"
                some, why = (
                    ["10.0.0.1"] * random.randint(0, 1),
                    random.choice(("", "", "Forbidden")),
                )
                snapshot = select(snapshot, label, *some, unread=why)
            case 4:
                gone = [
                    ObjectRef("XBackend", *key, EXPERIMENTAL_GROUP)
                    for key in snapshot.x_backends
                    if random.random() < 0.3
                ]
                snapshot = snapshot.replace(removed=gone)
            case _:
                index = random.randint(0, 3)
                snapshot = snapshot.replace(
                    removed=[ObjectRef("HTTPRoute", "default", f"r{index}")]
                )
        found = translate(snapshot, CLUSTER, found)
        assert same(found, translate(snapshot, CLUSTER))
