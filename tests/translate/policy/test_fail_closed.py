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
from edgefast.diagnostics.problem import ObjectRef
from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.describe import describe_unit
from edgefast.explain.explain import explain
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest
from tests.translate import world
from tests.translate.policy.hierarchy import EDGE, GROUP
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure

CLOSED = "security/default/p#closed"
DENY = {"defaultAction": "Deny"}


def target(name: str, kind: str = "HTTPRoute", **more: Any) -> dict[str, Any]:
    return {"group": GROUP, "kind": kind, "name": name, **more}


def raw(**spec: Any) -> dict[str, Any]:
    meta = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {
        "apiVersion": EDGE,
        "kind": "SecurityPolicy",
        "metadata": {**meta, "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    }


def deep(levels: int) -> Any:
    return json.loads('{"a":' * levels + "{}" + "}" * levels)


def closed_routes(made: Translation) -> set[str]:
    return {
        rule.route
        for fleet in made.ir.fleets
        for host in fleet.virtual_hosts
        for rule in host.rules
        if CLOSED in rule.policies
    }


def put(store: Store, obj: dict[str, Any]) -> None:
    meta = obj["metadata"]
    text = msgspec.Raw(json.dumps(obj).encode())
    store.put(Source(released=True), "SecurityPolicy", Item("default", meta["name"], "1", text))


@pytest.mark.parametrize(
    ("spec", "routes"),
    [
        ({"targetRefs": [target("r1")], "jwt": deep(250)}, {"default/r1"}),
        ({"targetRefs": [target("r1")], "extAuth": {"timeout": 5}}, {"default/r1"}),
        ({"targetRefs": [target("r1")], "authorization": {"rules": [{}]}}, {"default/r1"}),
        ({"targetRefs": [target("r1")], "authorization": {"rules": [None]}}, {"default/r1"}),
        ({"targetRef": target("r2")}, {"default/r2"}),
        # Of another namespace nothing is closed, whatever is written.
        ({"targetRef": target("r2", namespace="other")}, {"default/r2"}),
        ({"targetRefs": [{"kind": 5}]}, {f"default/r{at}" for at in range(3)}),
        ({}, {f"default/r{at}" for at in range(3)}),
        # Of what is all but a target the one that was meant; the mistake is the whole policy's.
        ({"targetRefs": [target("r0") | {"group": None}], "authorization": DENY}, {"default/r0"}),
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


def site(*policies: dict[str, Any]) -> str:
    items = [
        manifest("GatewayClass edge", {"controllerName": "gateway.edge.io/gatewayclass-controller"}, api=f"{GROUP}/v1"),
        manifest("Gateway gw", {"gatewayClassName": "edge",
                  "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}, api=f"{GROUP}/v1"),
        manifest("Service web", {"ports": [{"port": 80}]}),
    ]  # fmt: skip
    for at in range(2):
        route = {"parentRefs": [{"name": "gw"}], "hostnames": [f"r{at}.example"],
                 "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}  # fmt: skip
        items.append(manifest(f"HTTPRoute r{at}", route, api=f"{GROUP}/v1"))
    named = [one | {"metadata": {"name": "p"}} for one in policies]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, *named]})


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


def test_the_targets_of_all_broken_policies_of_one_name_are_closed(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    maybe = {"defaultAction": "Maybe"}
    policies = [raw(targetRefs=[target(f"r{at}")], authorization=maybe) for at in range(2)]
    file.write_text(site(*policies))
    made = translate(FileSource([file]).read().snapshot, Settings())
    assert closed_routes(made) == {"default/r0", "default/r1"}


def test_a_namespace_in_a_target_closes_nothing_of_its_owner(tmp_path: Path) -> None:
    """A targetRef has no such field: what stands beside the policy is meant, as an API server would take it."""
    file = tmp_path / "all.yaml"
    listed = json.loads(site(raw(targetRefs=[target("r0", namespace="other")])))
    (route,) = [one for one in listed["items"] if one["metadata"]["name"] == "r0"]
    listed["items"].append(route | {"metadata": {"name": "r0", "namespace": "other"}})
    file.write_text(json.dumps(listed))
    made = translate(FileSource([file]).read().snapshot, Settings())
    assert closed_routes(made) == {"default/r0"}
    told = [one.message for one in made.problems if "get 500" in one.message]
    assert told == ["while the policy has an error, requests get 500 for HTTPRoute default/r0"]


def tcp(name: str = "t", gateway: str = "l4") -> Any:
    return world.make(f"TCPRoute default/{name}", {"parentRefs": [{"name": gateway}],
                 "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}, api=f"{GROUP}/v1alpha2")  # fmt: skip


def test_routes_of_layer_4_below_a_policy_are_closed() -> None:
    front = world.make("Gateway default/l4", {"gatewayClassName": "edge",
                 "listeners": [{"name": "tcp", "port": 9443, "protocol": "TCP"}]}, api=f"{GROUP}/v1")  # fmt: skip
    snapshot = world.many(1).replace([front, tcp()])
    before = translate(snapshot, Settings())
    (stream,) = before.ir.fleets[0].stream_routes
    assert stream.backends
    policy = decode_api_object(
        raw(targetRefs=[target("l4", "Gateway")], authorization=DENY), "SecurityPolicy"
    )
    after = translate(snapshot.replace([policy]), Settings(), before)
    _same(after, translate(snapshot.replace([policy]), Settings()))
    (stream,) = after.ir.fleets[0].stream_routes
    assert not stream.backends and "SecurityPolicy default/p" in stream.reason
    (entry,) = after.statuses.security_policies["default", "p"].ancestors
    programmed = entry.conditions[-1]
    assert (programmed.status, programmed.reason) == ("False", "NotSupported")
    assert "TCPRoute default/t" in programmed.message
    assert any(
        one.severity == "error" and "TCPRoute default/t" in one.message for one in after.problems
    )
    # The status follows the routes, and settings of traffic close nothing.
    gone = snapshot.replace([policy], [ObjectRef("TCPRoute", "default", "t")])
    free = translate(gone, Settings(), after)
    _same(free, translate(gone, Settings()))
    (entry,) = free.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"
    limit = raw(targetRefs=[target("l4", "Gateway")], requestBuffer={"limit": "1Mi"})
    traffic = decode_api_object(limit | {"kind": "BackendTrafficPolicy"}, "BackendTrafficPolicy")
    quiet = translate(snapshot.replace([traffic]), Settings(), before)
    _same(quiet, translate(snapshot.replace([traffic]), Settings()))
    assert quiet.ir.fleets[0].stream_routes[0].backends
    (said,) = [one for one in quiet.problems if "UDPRoute" in one.message]
    assert said.severity == "warning"


def test_a_default_that_every_route_replaces_is_not_programmed() -> None:
    above = raw(targetRefs=[target("gw", "Gateway")], authorization=DENY)
    below = raw(targetRefs=[target("r0")], mergeType="Replace")
    below["metadata"]["name"] = "q"
    snapshot = world.many(1).replace(
        [decode_api_object(one, "SecurityPolicy") for one in (above, below)]
    )
    made = translate(snapshot, Settings())
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    last = entry.conditions[-1]
    assert (last.status, last.reason) == ("False", "Overridden")
    assert "SecurityPolicy default/q" in last.message
    # One more route, and it holds there.
    more = translate(snapshot.replace([world.route(1)]), Settings(), made)
    _same(more, translate(snapshot.replace([world.route(1)]), Settings()))
    (entry,) = more.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"


def test_a_key_of_nothing_is_refused_and_a_narrow_one_told() -> None:
    def told(keys: list[str], **http: Any) -> tuple[list[str], Translation]:
        service = {"backendRef": {"name": "web", "port": 80}, **http}
        ext = {"http": service, "headersToExtAuth": ["cookie", "Authorization"],
               "cache": {"ttl": "5s", "keyHeaders": keys}}  # fmt: skip
        spec = raw(targetRefs=[target("r0")], extAuth=ext)
        made = translate(
            world.many(1).replace([decode_api_object(spec, "SecurityPolicy")]), Settings()
        )
        return [str(one) for one in made.problems], made

    problems, made = told([])
    assert any("keyHeaders" in one and "Required" in one for one in problems)
    assert all(one.status == 500 for one in made.ir.fleets[0].policies)
    problems, made = told(["x-user"])
    assert any("keyHeaders" in one and "not include cookie," in one for one in problems)
    assert all(one.status == 0 for one in made.ir.fleets[0].policies)
    assert not any("without" in one for one in told(["Cookie"])[0])
    # What stands behind a question mark may be a token.
    problems, _ = told(["cookie"], pathOverride="/x y?token=secret")
    assert problems and "secret" not in " ".join(problems)


def test_a_broken_unit_keeps_where_its_credentials_are() -> None:
    """No log shows them while it answers 500."""
    keys = {"credentialRefs": [{"name": "gone"}], "extractFrom": [{"params": ["key"]}]}
    for more in ({}, {"targetRefs": [target("r0", sectionName="x", kind="Service", group="")]}):
        spec = raw(**{"targetRefs": [target("r0")], "apiKeyAuth": keys, **more})
        made = translate(
            world.many(1).replace([decode_api_object(spec, "SecurityPolicy")]), Settings()
        )
        for unit in made.ir.fleets[0].policies:
            assert unit.status == 500 and [one.params for one in unit.places] == [("key",)]
    assert (
        translate(
            world.many(1).replace(
                [
                    decode_api_object(
                        raw(targetRefs=[target("r0")], apiKeyAuth=keys, mergeType="x"),
                        "SecurityPolicy",
                    )
                ]
            ),
            Settings(),
        )
        .ir.fleets[0]
        .policies[0]
        .places
    )


def test_nothing_is_looked_at_where_there_are_no_policies() -> None:
    made = translate(world.many(2), Settings())
    again = translate(world.many(3), Settings(), made)
    assert again.memo.uses is made.memo.uses
