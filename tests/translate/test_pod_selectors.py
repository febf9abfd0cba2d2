"""Whose Pods are followed: those of XBackends that are used, the oldest first, so many of a namespace and of all; whoever was followed before."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from edgefast.api.kinds import EXPERIMENTAL_GROUP, Object
from edgefast.api.model.meta import LabelSelector
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings, Translation, translate
from edgefast.translate.backend import pod_selectors, xbackend_cluster
from edgefast.translate.backend.pod_selectors import (
    MOST,
    MOST_OF_ALL,
    RequestedSelector,
    Selectors,
    choose_selectors,
)
from edgefast.translate.conditions.status import PolicyStatus
from tests.translate import world
from tests.translate.test_speed import count_calls
from tests.translate.test_xbackend import CLUSTER, pods, policy, same

pytestmark = pytest.mark.pure

BASE = (world.gateway_class(), world.gateway(allowedRoutes={"namespaces": {"from": "All"}}))


def moved(one: Object, namespace: str = "default", created: int | None = None) -> Any:
    """Return an object in another namespace, and as old as is said."""
    meta = msgspec.structs.replace(one.metadata, namespace=namespace)
    if created is not None:
        stamp = f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z"
        meta = msgspec.structs.replace(meta, creation_timestamp=stamp)
    return msgspec.structs.replace(one, metadata=meta)


def backend(name: str, namespace: str = "default", created: int | None = None, **spec: Any) -> Any:
    """Return an XBackend of Pods that have its name for a label."""
    return moved(pods(name, {"app": name}, **spec), namespace, created)


def ref(name: str, namespace: str = "") -> dict[str, Any]:
    made = {"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": name}
    return {**made, "namespace": namespace} if namespace else made


def mirror(name: str) -> dict[str, Any]:
    return {"type": "RequestMirror", "requestMirror": {"backendRef": ref(name)}}


def route(index: int, *names: str, **more: Any) -> Object:
    return world.route(index, path=f"/{index}", backendRefs=[ref(one) for one in names], **more)


def followed(found: Translation) -> list[str]:
    """Return what is followed, as "namespace/label"."""
    return sorted(f"{one}/{labels.removeprefix('app=')}" for one, labels in found.selections)


def why_not(found: Translation, name: str, namespace: str = "default") -> str:
    """Return why an XBackend is not accepted, "" when it is."""
    status = found.statuses.x_backends[namespace, name]
    assert isinstance(status, PolicyStatus)
    (accepted,) = status.ancestors[0].conditions
    return "" if accepted.status == "True" else accepted.message


def filtered_gateway(name: str) -> Object:
    auth = {"protocol": "HTTP", "backendRef": ref(name), "http": {}}
    requests = {"requests": [{"type": "ExternalAuth", "externalAuth": auth}]}
    return world.gateway(filters=requests)


def rule_filter(name: str) -> dict[str, Any]:
    auth = {"protocol": "HTTP", "backendRef": ref(name), "http": {}}
    return {"type": "ExternalAuth", "externalAuth": auth}


@pytest.mark.parametrize(
    "user",
    [
        route(0, "b"),
        world.route(0, backendRefs=[ref("b") | {"weight": 0}]),
        world.route(0, filters=[mirror("b")]),
        world.route(0, filters=[rule_filter("b")]),
        world.route(0, backendRefs=[ref("missing") | {"filters": [mirror("b")]}]),
        policy("ask", ref("b")),
        filtered_gateway("b"),
    ],
    ids=["route", "nothing yet", "mirror", "rule", "mirror of a share", "policy", "listener"],
)
def test_whoever_is_used_is_followed_and_nobody_else(user: Object) -> None:
    older = (backend(f"a{at}", created=at) for at in range(MOST))
    snapshot = Snapshot.of([user, *BASE, backend("b"), *older])
    assert followed(translate(snapshot, CLUSTER)) == ["default/b"]


def test_who_is_behind_one_that_is_refused_is_used_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would take the place of that one, be used no more, and give it back."""
    monkeypatch.setattr(pod_selectors, "MOST", 1)
    copied = [ref("young") | {"filters": [mirror("old")]}]
    backends = backend("young", created=2), backend("old", created=1)
    snapshot = Snapshot.of([*BASE, *backends, world.route(0, backendRefs=copied)])
    found = translate(snapshot, CLUSTER)
    assert followed(found) == ["default/old"] and why_not(found, "young")
    again = translate(snapshot, CLUSTER, found)
    assert same(again, found) and followed(again) == ["default/old"]


def test_a_user_that_nobody_serves_is_none() -> None:
    """A route of another's Gateway, of none, from a namespace without a grant; a policy at nothing."""
    users = (
        policy("ask", ref("b"), "none"),
        world.route(0, parents=[{"name": "other"}], backendRefs=[ref("b")]),
        world.route(1, parents=[{"name": "gw", "sectionName": "none"}], backendRefs=[ref("b")]),
        moved(
            world.route(
                2,
                parents=[{"name": "gw", "namespace": "default"}],
                backendRefs=[ref("b", "default")],
            ),
            "away",
        ),
    )
    found = translate(Snapshot.of([*BASE, backend("b"), *users]), CLUSTER)
    assert not found.selections


def test_what_is_refused_for_anything_else_takes_no_place() -> None:
    tls = {
        "mode": "ServerOnly",
        "validation": {
            "hostname": "a.example.com",
            "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "none"}],
        },
    }
    older = [backend(f"a{at}", created=at, protocol="MCP") for at in range(MOST)]
    older += [backend(f"t{at}", created=at, tls=tls) for at in range(MOST)]
    users = [route(at, one.metadata.name) for at, one in enumerate(older)]
    snapshot = Snapshot.of([*BASE, backend("b"), *older, *users, route(99, "b")])
    found = translate(snapshot, CLUSTER)
    assert followed(found) == ["default/b"] and not why_not(found, "b")
    assert "MCP" in why_not(found, "a0") and "caCertificateRefs" in why_not(found, "t0")


def test_namespaces_that_are_not_watched_have_nobody_followed() -> None:
    """But for those that a watched route may refer to, as it may to their Services."""
    settings = msgspec.structs.replace(
        CLUSTER, watch_selector=LabelSelector(match_labels={"tenant": "a"})
    )
    there = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in (("default", {"tenant": "a"}), ("away", {}))
    ]
    parents = [{"name": "gw", "namespace": "default"}]
    unwatched = world.route(0, parents=parents, backendRefs=[ref("b")])
    objects = [*BASE, *map(world.make, there), backend("b", "away"), moved(unwatched, "away")]
    snapshot = Snapshot.of(objects)
    assert not translate(snapshot, settings).selections
    assert followed(translate(snapshot, CLUSTER)) == ["away/b"]
    grant = world.make(
        "ReferenceGrant away/g",
        {
            "from": [
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}
            ],
            "to": [{"group": EXPERIMENTAL_GROUP, "kind": "XBackend"}],
        },
        api="gateway.networking.k8s.io/v1beta1",
    )
    watched = world.route(1, backendRefs=[ref("b", "away")])
    assert not translate(snapshot.replace([watched]), settings).selections
    assert followed(translate(snapshot.replace([watched, grant]), settings)) == ["away/b"]


def test_all_namespaces_together_have_a_bound() -> None:
    spaces = MOST_OF_ALL // MOST + 1
    backends, users = [], []
    for at in range(spaces * MOST):
        namespace, name = f"n{at // MOST:02}", f"b{at:03}"
        backends.append(backend(name, namespace, created=at))
        parents = [{"name": "gw", "namespace": "default"}]
        made = world.route(at, path=f"/{at}", parents=parents, backendRefs=[ref(name)])
        users.append(moved(made, namespace))
    snapshot = Snapshot.of([*BASE, *backends, *users])
    found = translate(snapshot, CLUSTER)
    assert len(found.selections) == MOST_OF_ALL
    last = f"n{spaces - 1:02}"
    assert not any(namespace == last for namespace, _ in found.selections)
    said = why_not(found, f"b{MOST_OF_ALL:03}", last)
    assert f"TooMany the XBackends of all namespaces select Pods by more than {MOST_OF_ALL}" in said
    # When an older one is used no more, the oldest of the others gets its place.
    gone = snapshot.replace(removed=[ObjectRef("HTTPRoute", "n00", "r0")])
    after = translate(gone, CLUSTER, found)
    assert not why_not(after, f"b{MOST_OF_ALL:03}", last)
    assert len(after.selections) == MOST_OF_ALL and same(after, translate(gone, CLUSTER))


def test_the_oldest_that_are_used_have_the_places_whoever_had_them() -> None:
    names = [f"b{at:02}" for at in range(MOST + 1)]
    backends = [backend(name, created=at) for at, name in enumerate(names)]
    users = [route(at, name) for at, name in enumerate(names) if at]
    snapshot = Snapshot.of([*BASE, *backends, *users])
    found = translate(snapshot, CLUSTER)
    assert not why_not(found, names[-1])
    after = translate(snapshot.replace([route(0, names[0])]), CLUSTER, found)
    assert f"more than {MOST} different" in why_not(after, names[-1])
    assert (after.work.routes, after.work.clusters) == (2, 2)
    # Who writes the labels of one that is followed needs no place.
    shared = moved(pods(names[-1], {"app": names[0]}), created=MOST)
    assert not why_not(
        translate(snapshot.replace([shared, route(0, names[0])]), CLUSTER, after), names[-1]
    )
    back = translate(snapshot, CLUSTER, after)
    assert same(back, found) and back.selections == found.selections


def test_who_fits_costs_nothing_twice() -> None:
    """Without anybody beyond the bounds one pass is all there is."""
    snapshot = Snapshot.of([*BASE, backend("b"), route(0, "b")])
    found = translate(snapshot, CLUSTER)
    assert (found.work.routes, found.work.clusters) == (1, 1)


def test_among_many_one_more_is_no_call_for_each() -> None:
    """All are gone through in their order, which is there already."""
    there = 4000
    wishes: Any = pod_selectors.EMPTY.edit()
    for at in range(there):
        wishes["n", f"b{at}"] = RequestedSelector((at, f"n/b{at}"), f"app=a{at % 20}")
    one = choose_selectors(wishes.done(), Selectors())
    wishes["n", "new"] = RequestedSelector((there, "n/new"), "app=web")
    more = wishes.done()
    assert count_calls(lambda: choose_selectors(more, one)) < 2 * there + 1000


def test_changes_elsewhere_ask_nobody() -> None:
    snapshot = Snapshot.of([*BASE, backend("b"), route(0, "b"), world.service("web")])
    found = translate(snapshot, CLUSTER)
    after = translate(snapshot.replace([world.route(1)]), CLUSTER, found)
    assert after.memo.selectors is found.memo.selectors


@pytest.mark.parametrize("seed", range(30))
def test_any_history_comes_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few places, and users of all kinds that come and go, some behind others that are refused."""
    for module in (pod_selectors, xbackend_cluster):
        monkeypatch.setattr(module, "MOST", 2)
        monkeypatch.setattr(module, "MOST_OF_ALL", 3)
    random = Random(seed)
    names = [f"b{at}" for at in range(8)]
    spaces = ("default", "other")
    settings = Settings(standalone=False)
    snapshot, found = Snapshot.of(BASE), None
    for _ in range(25):
        name, namespace = random.choice(names), random.choice(spaces)
        changed: list[Object] = []
        removed: list[ObjectRef] = []
        match random.randint(0, 6):
            case 0 | 1:
                spec = random.choice(({}, {}, {}, {"protocol": "MCP"}, {"protocol": "TCP"}))
                changed = [backend(name, namespace, random.randint(0, 9), **spec)]
            case 2 | 3:
                behind = {"filters": [mirror(random.choice(names))]}
                refs = [ref(name) | random.choice(({}, behind, {"port": 81}))]
                parents = [{"name": random.choice(("gw", "gw", "none")), "namespace": "default"}]
                index = random.randint(0, 5)
                host = f"h{index % 3}.example.com"
                made = world.route(index, host=host, parents=parents, backendRefs=refs)
                changed = [moved(made, namespace)]
            case 4:
                changed = [policy("ask", ref(name))]
            case 5:
                changed = [random.choice((filtered_gateway(name), BASE[1]))]
            case _:
                gone = [("HTTPRoute", key, "") for key in snapshot.http_routes]
                gone += [("XBackend", key, EXPERIMENTAL_GROUP) for key in snapshot.x_backends]
                removed = [
                    ObjectRef(kind, *key, group)
                    for kind, key, group in gone
                    if random.random() < 0.2
                ]
        snapshot = snapshot.replace(changed, removed)
        found = translate(snapshot, settings, found)
        plain = translate(snapshot, settings)
        assert same(found, plain) and found.selections == plain.selections
        assert len(found.selections) <= 3
        # A third time finds nothing that is not so.
        again = translate(snapshot, settings, found)
        assert again.work.clusters == 0 and again.selections == found.selections
