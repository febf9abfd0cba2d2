"""Policies that cannot be had whole: what they are meant for is closed, by whichever field they say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.kube.reflector import Item
from controller.kube.store import Source, Store
from edgefast.api.decode.decode import decode_api_object
from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.describe import describe_unit
from edgefast.explain.explain import explain
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate
from tests.translate import world
from tests.translate.policy.hierarchy import GROUP
from tests.translate.policy.site import DENY, closed_routes, raw, site, target
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure


def deep(levels: int) -> Any:
    return json.loads('{"a":' * levels + "{}" + "}" * levels)


def put(store: Store, obj: dict[str, Any]) -> None:
    meta = obj["metadata"]
    text = msgspec.Raw(json.dumps(obj).encode())
    store.put(Source(released=True), "SecurityPolicy", Item("default", meta["name"], "1", text))


@pytest.mark.parametrize(
    ("spec", "routes"),
    [
        ({"targetRefs": [target("r1")], "jwt": deep(250)}, {"default/r1"}),
        ({"targetRefs": [target("r1")], "extAuth": {"timeout": 5}}, {"default/r1"}),
        ({"targetRefs": [target("r1")], "authorization": {"rules": [None]}}, {"default/r1"}),
        ({"targetRef": target("r2")}, {"default/r2"}),
        # Of another namespace nothing is closed, whatever is written.
        ({"targetRef": target("r2", namespace="other")}, {"default/r2"}),
        ({}, {f"default/r{at}" for at in range(3)}),
        ({"targetRefs": [target("r0", "HttpRoute")], "authorization": DENY}, {"default/r0"}),
        (
            {
                "targetRefs": [target("r1"), target("r2") | {"group": f"{GROUP}/v1"}],
                "authorization": DENY,
            },
            {"default/r1", "default/r2"},
        ),
    ],
)
def test_of_an_api_server_what_cannot_be_read_closes_its_targets(
    spec: dict[str, Any], routes: set[str]
) -> None:
    store = Store(lambda: None, lambda ref: None)
    put(store, raw(**spec))
    (policy,) = store.snapshot().security_policies.values()
    snapshot = world.many(3).replace([policy])
    made = translate(snapshot, Settings(standalone=False))
    assert closed_routes(made) == routes
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    accepted, _, programmed = entry.conditions
    assert (accepted.status, accepted.reason, accepted.observed_generation) == (
        "False",
        "Invalid",
        3,
    )
    assert (programmed.status, programmed.reason) == ("False", "Invalid")
    # It opens again with a sound version, and when it is gone.
    put(store, raw(targetRefs=[target("r0")], authorization=DENY))
    (policy,) = store.snapshot().security_policies.values()
    after = translate(snapshot.replace([policy]), Settings(standalone=False), made)
    _same(after, translate(snapshot.replace([policy]), Settings(standalone=False)))
    assert not closed_routes(after)
    # What was good once stays in force, and says so; what only the new version names is closed.
    put(store, raw(targetRefs=[target("r0"), target("r1"), {"kind": 5}], authorization=5))
    (kept,) = store.snapshot().security_policies.values()
    assert kept.spec == policy.spec and kept.closed is None and kept.newer is not None
    behind = translate(snapshot.replace([kept]), Settings(standalone=False), after)
    _same(behind, translate(snapshot.replace([kept]), Settings(standalone=False)))
    check_behind(behind, "default/r1", 3)
    put(store, raw(targetRefs=[target("r0")], authorization=DENY))
    (again,) = store.snapshot().security_policies.values()
    assert again == policy
    sound = translate(snapshot.replace([again]), Settings(standalone=False), behind)
    _same(sound, after)
    store.delete(Source(released=True), "SecurityPolicy", "default", "p")
    assert not store.snapshot().security_policies


def check_behind(made: Translation, added: str, generation: int, path: str = "spec.") -> None:
    """The version before is in force and says so, with what is wrong with the new one, whose own targets are closed."""
    units = {one.name: one for fleet in made.ir.fleets for one in fleet.policies}
    held, shut = units["security/default/p#authorization"], units["security/default/p?new#closed"]
    assert held.status == 0 and held.authorization is not None
    assert held.reason.startswith(
        f"the previous version is in force; the new one has an error: {path}"
    )
    assert shut.status == 500 and "SecurityPolicy default/p: the previous version" in shut.reason
    rules = [
        rule for fleet in made.ir.fleets for host in fleet.virtual_hosts for rule in host.rules
    ]
    by = {rule.route: rule.policies for rule in rules if rule.policies}
    assert by == {"default/r0": (held.name,), added: (shut.name,)}
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    accepted, _, programmed = entry.conditions
    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert "; the previous version stays in force" in accepted.message
    assert programmed.status == "True" and "the previous version is in force" in programmed.message
    assert {one.observed_generation for one in entry.conditions} == {generation}
    assert any(f"requests get 500 for HTTPRoute {added}" in str(one) for one in made.problems)
    (fleet,) = made.ir.fleets
    host = next(one for one in fleet.virtual_hosts if one.rules[0].route == "default/r0")
    url = f"http://{host.hostname}:{fleet.listeners[0].port}{host.entries[0].match.path or '/'}"
    found = explain(serve_translation(made), read_request_spec("GET", url, (), "192.0.2.1"))
    assert any(held.reason in part.about for part in found.policies), found


def test_a_mistaken_edit_of_a_file_leaves_the_version_before_in_force(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    good = site(raw(targetRefs=[target("r0")], authorization=DENY))
    file.write_text(good)
    source = FileSource([file])
    first = translate(source.read().snapshot, Settings())
    bad = raw(targetRefs=[target("r0"), target("r1")], authorization={"defaultAction": "Maybe"})
    file.write_text(site(bad))
    reading = source.read()
    behind = translate(reading.snapshot, Settings(), first)
    _same(behind, translate(reading.snapshot, Settings()))
    check_behind(behind, "default/r1", 0)
    assert source.read().snapshot is reading.snapshot
    quiet = translate(reading.snapshot, Settings(), behind)
    assert (quiet.work.routes, quiet.work.policies) == (0, 0)
    # A slip in its kind is a mistake like any other.
    file.write_text(site(raw(targetRefs=[target("r1")]) | {"kind": "SecurityPolicies"}))
    check_behind(translate(source.read().snapshot, Settings(), behind), "default/r1", 0, "kind:")
    file.write_text(good)
    _same(translate(source.read().snapshot, Settings(), behind), first)


def test_a_limit_of_the_version_before_says_so(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    traffic = {"kind": "BackendTrafficPolicy"}
    file.write_text(site(raw(targetRefs=[target("r0")], requestBuffer={"limit": 5}) | traffic))
    source = FileSource([file])
    source.read()
    file.write_text(site(raw(targetRefs=[target("r0")], requestBuffer={"limit": []}) | traffic))
    made = translate(source.read().snapshot, Settings())
    served = serve_translation(made)
    found = explain(served, read_request_spec("GET", "http://r0.example/", (), "192.0.2.1"))
    assert any("traffic/default/p: the previous version is in force" in one for one in found.notes)
    assert "the previous version" in describe_unit(made.ir.fleets[0].policies[0])


@pytest.mark.parametrize(
    "beside",
    [
        {"targetRef": target("r1")},
        {"targetSelectors": [{"group": GROUP, "kind": "HTTPRoute", "matchLabels": {"a": "b"}}]},
        {"targetSelectors": [{"kind": "HTTPRoute", "matchLabels": {"a": "b"}}]},
    ],
)
def test_targets_of_fields_that_are_not_served_are_closed_too(beside: dict[str, Any]) -> None:
    policy = decode_api_object(
        raw(targetRefs=[target("other")], authorization=DENY, **beside), "SecurityPolicy"
    )
    meta = msgspec.structs.replace(world.route(1).metadata, labels={"a": "b"})
    marked = msgspec.structs.replace(world.route(1), metadata=meta)
    snapshot = world.many(3).replace([marked, policy])
    made = translate(snapshot, Settings())
    assert closed_routes(made) == {"default/r1"}
    quiet = translate(snapshot, Settings(), made)
    assert (quiet.work.routes, quiet.work.policies) == (0, 0)
    if "targetSelectors" in beside:  # labels decide, and may change
        plain = snapshot.replace([world.route(1)])
        after = translate(plain, Settings(), made)
        _same(after, translate(plain, Settings()))
        assert not closed_routes(after)


@pytest.mark.parametrize(
    ("written", "spec", "closed"),
    [
        # One row for each rule of docs/reference/closed.md; tests/api/test_closed_policy.py has their edges.
        ({}, {"targetRefs": [target("r0")], "authorization": 5}, {"r0"}),
        ({"kind": "securitypolicy"}, {"targetRefs": [target("r0")]}, {"r0"}),
        ({"kind": "Guard"}, {"targetRefs": [target("r0")]}, {"r0"}),
        ({"apiVersion": "gateway.edge.io/v1"}, {"targetRefs": [target("r0")]}, {"r0"}),
        ({"apiVersion": "gateways.edge.io/v1", "kind": "Guard"}, {"targetRefs": [target("r0")]}, set()),
        ({}, {"targetRefs": [target("r0") | {"group": "gateway.networking.k8s.oi"}]}, {"r0"}),
        ({}, {"targetRefs": [target("r0", "HttpRoute")]}, {"r0"}),
        ({}, {"targetRefs": [target("r0", namespace="other")]}, {"r0"}),
        ({}, {"targetRefs": [target("r0", "GatewayClass")], "authorization": 5}, set()),
        ({}, {"authorization": DENY}, {"r0", "r1"}),
        ({}, {"targetRefs": [target("r0"), {"kind": 5}]}, {"r0", "r1"}),
        ({"kind": "SecurityPolicies"}, {"authorization": DENY}, {"r0", "r1"}),
        ({"kind": "Guard"}, {"authorization": DENY}, set()),
    ],
)  # fmt: skip
def test_what_a_policy_of_a_file_closes(
    written: dict[str, Any], spec: dict[str, Any], closed: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(site(raw(**spec) | written))
    reading = FileSource([file]).read()
    made = translate(reading.snapshot, Settings())
    assert closed_routes(made) == {f"default/{one}" for one in closed}
    assert {one.severity for one in reading.problems} == (
        {"warning"} if "gateways" in str(written) else {"error"}
    )
    # Kinds that a reference of an unknown kind can name, but no object has, are not reported.
    assert not [one for one in made.problems if one.reason == "TargetNotFound"]
    assert bool(closed) == any("get 500" in one.message for one in made.problems)
    served = serve_translation(made)
    for name in ("r0", "r1"):
        (answer,) = explain(served, read_request_spec("GET", f"http://{name}.example/")).answers
        assert (answer.check == "policy_invalid") is (name in closed)


def test_the_targets_of_all_broken_policies_of_one_name_are_closed(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    maybe = {"defaultAction": "Maybe"}
    policies = [raw(targetRefs=[target(f"r{at}")], authorization=maybe) for at in range(2)]
    file.write_text(site(*policies))
    made = translate(FileSource([file]).read().snapshot, Settings())
    assert closed_routes(made) == {"default/r0", "default/r1"}
