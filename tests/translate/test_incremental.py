"""Work done: a change costs what it touches, and gives what a translation from nothing gives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, Work, translate
from edgefast.translate.deps.policy_summary import KIND_OF
from edgefast.translate.translation import Memo
from tests.translate import world
from tests.translate.edits import EDITS

PLAIN = Settings()


def _remembered(memo: Memo) -> dict[str, object]:
    """What the next translation builds on, as plain values."""
    sums, hosts = memo.sums, memo.hosts
    found: dict[str, object] = {
        "routes": {key: (one.reads, one.status, one.hosts) for key, one in memo.routes.items()},
        "clusters": {ref: (one.cluster, one.reads) for ref, one in memo.clusters.items()},
        "readers": (list(memo.route_readers), list(memo.cluster_readers)),
        "uses": (dict(memo.cluster_uses.items()), memo.cluster_notes),
        "owned": (memo.owned.wide, dict(memo.owned.owners.items())),
        "sums": [dict(one.items()) for one in (sums.statuses, sums.attached, sums.users)],
        "told": dict(sums.problems.items()),
        "hosts": ({at: one.host for at, one in hosts.outcomes.items()}, list(hosts.noted)),
        "reach": (dict(memo.reach.warnings.items()), memo.reach.across),
    }
    own, judged = memo.own, memo.judged
    found["own"] = {
        key: (one.shape, one.targets, one.units, one.reads, one.problems)
        for key, one in own.outcomes.items()
    }
    found["attached"] = [dict(one.items()) for one in (own.attached, own.units)]
    found["own readers"] = (list(own.readers), own.closed, own.behind, own.aimed)
    found["judged"] = [
        dict(one.items()) for one in (*(judged.of(kind) for kind in KIND_OF.values()), judged.told)
    ]
    found["filters"] = {
        name: (one.gateway, one.units, one.reads, one.clusters, one.problems)
        for name, one in memo.filters.outcomes.items()
    }
    found["own uses"] = dict(memo.uses.counts.items())
    for fleet, shelf in memo.fleet_caches.by_fleet.items():
        held = (shelf.hosts, shelf.clusters, shelf.uses, shelf.secrets)
        held += (shelf.policies, shelf.asked, shelf.policy_uses, shelf.treated)
        found[f"shelf {fleet}"] = [dict(one.items()) for one in held]
        found[f"counted {fleet}"] = (shelf.limited, shelf.filters, shelf.checking, shelf.zoned)
        found[f"crowded {fleet}"] = (shelf.crowded, shelf.varied, shelf.unmade)
    found["unmade"] = memo.judged.unmade.places
    return found


def _same(one: Translation, other: Translation) -> None:
    assert one.ir == other.ir
    assert one.infra == other.infra
    assert one.problems == other.problems
    assert list(one.statuses.items()) == list(other.statuses.items())
    assert _remembered(one.memo) == _remembered(other.memo)
    encode = msgspec.msgpack.Encoder(enc_hook=tuple).encode
    assert encode(one.ir) == encode(other.ir)


def _step(snapshot: Snapshot, previous: Translation) -> Translation:
    made = translate(snapshot, PLAIN, previous)
    _same(made, translate(snapshot, PLAIN))
    return made


@pytest.fixture(scope="module")
def thousand() -> tuple[Snapshot, Translation]:
    snapshot = world.many(1000)
    return snapshot, translate(snapshot, PLAIN)


@pytest.mark.pure
def test_nothing_changed(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    after = _step(snapshot, before)
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=0)
    assert after.ir.fleets[0] is before.ir.fleets[0]


@pytest.mark.pure
def test_one_route_changed(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    after = _step(snapshot.replace([world.route(500, path="/new")]), before)
    assert after.work == Work(routes=1, virtual_hosts=1, clusters=0)
    old, new = before.ir.fleets[0].virtual_hosts, after.ir.fleets[0].virtual_hosts
    assert sum(a is not b for a, b in zip(old, new, strict=True)) == 1


@pytest.mark.pure
def test_a_listener_that_takes_another_hostname_takes_other_hosts() -> None:
    """Nobody touches the hosts; which of them it owns follows from the listeners."""
    apart = [world.route(at, host=f"h.{name}", parents=[{"name": "gw", "sectionName": "l0"}])
             for at, name in enumerate(("a.com", "b.com"))]  # fmt: skip
    snapshot = world.many(2).replace([world.nested_gateway("", "*.a.com"), *apart])
    before = translate(snapshot, PLAIN)
    assert [host for _, host in before.memo.owned.owners] == ["h.a.com"]
    after = _step(snapshot.replace([world.nested_gateway("", "*.b.com")]), before)
    assert [host for _, host in after.memo.owned.owners] == ["h.b.com"]


@pytest.mark.pure
def test_one_route_moved_to_another_host(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    after = _step(snapshot.replace([world.route(500, host="h501.example.com")]), before)
    assert after.work.routes == 1
    assert after.work.virtual_hosts == 1  # the other one is gone
    assert len(after.ir.fleets[0].virtual_hosts) == 999


@pytest.mark.pure
def test_one_route_removed_and_put_back(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    gone = snapshot.replace(removed=[ObjectRef("HTTPRoute", "default", "r500")])
    after = _step(gone, before)
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=0)
    again = _step(gone.replace([world.route(500)]), after)
    assert again.work == Work(routes=1, virtual_hosts=1, clusters=0)
    _same(again, before)


@pytest.mark.pure
def test_rollout_touches_no_route(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    after = _step(snapshot.replace([world.endpoints("web", "10.0.0.2", "10.0.0.3")]), before)
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=1)
    old, new = before.ir.fleets[0].virtual_hosts, after.ir.fleets[0].virtual_hosts
    assert all(a is b for a, b in zip(old, new, strict=True))


@pytest.mark.pure
def test_last_endpoint_gone_changes_statuses_but_no_table(
    thousand: tuple[Snapshot, Translation],
) -> None:
    snapshot, before = thousand
    after = _step(snapshot.replace([world.endpoints("web")]), before)
    assert after.work.routes == 1000
    assert after.work.virtual_hosts == 0
    assert len(after.problems) == 1000


@pytest.mark.pure
def test_unrelated_objects_touch_nothing(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    after = _step(
        snapshot.replace([world.service("other"), world.endpoints("other", "10.1.1.1")]), before
    )
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=0)


@pytest.mark.pure
def test_policies_are_looked_at_when_something_of_theirs_changed() -> None:
    snapshot = world.many(3).replace([world.policy("p"), world.authority(True)])
    before = translate(snapshot, PLAIN)
    after = _step(snapshot.replace([world.route(1, path="/new")]), before)
    assert after.memo.policies is before.memo.policies
    assert after.statuses.backend_tls_policies is before.statuses.backend_tls_policies
    # Whoever uses the Service is told of in the policy's status, though the policy is the same.
    gone = [ObjectRef("HTTPRoute", "default", f"r{at}") for at in range(3)]
    unused = _step(snapshot.replace(removed=gone), before)
    assert unused.memo.policies is before.memo.policies
    assert before.statuses.backend_tls_policies and not unused.statuses.backend_tls_policies
    other = _step(snapshot.replace([world.authority(False)]), before)
    assert other.memo.policies is not before.memo.policies


@pytest.mark.pure
def test_a_filter_of_a_listener_is_a_unit_that_changes_alone() -> None:
    snapshot = world.many(100).replace([world.gateway(filters=world.filters(["auth"]))])
    before = translate(snapshot, PLAIN)
    (fleet,) = before.ir.fleets
    assert [one.status for one in fleet.policies] == [500]
    there = _step(snapshot.replace([world.service("auth")]), before)
    (after,) = there.ir.fleets
    assert there.work == Work(routes=0, virtual_hosts=0, clusters=1, filters=1)
    assert after.listeners == fleet.listeners
    (unit,) = after.policies
    assert unit.ext_auth is not None and unit.ext_auth.backends[0].cluster in {
        one.name for one in after.clusters
    }
    quiet = _step(there.memo.world.snapshot.replace([world.route(1, path="/new")]), there)
    assert quiet.work.filters == 0 and quiet.memo.filters.outcomes is there.memo.filters.outcomes
    plain = _step(snapshot.replace([world.gateway()]), there)
    assert not plain.ir.fleets[0].policies and not plain.memo.filters.outcomes


@pytest.mark.pure
def test_a_policy_of_tls_is_told_at_which_gateway_a_filter_asks() -> None:
    snapshot = world.many(0).replace(
        [
            world.gateway(filters=world.filters(["auth"])),
            world.service("auth"),
            world.policy("p", "auth"),
            world.authority(True),
        ]
    )
    made = translate(snapshot, PLAIN)
    status = made.statuses.backend_tls_policies["default", "p"]
    assert [one.ancestor_ref.name for one in status.ancestors] == ["gw"]
    plain = _step(snapshot.replace([world.gateway()]), made)
    assert not plain.statuses.backend_tls_policies


@pytest.mark.pure
def test_one_translation_may_have_several_successors(
    thousand: tuple[Snapshot, Translation],
) -> None:
    snapshot, before = thousand
    first = _step(snapshot.replace([world.route(1, path="/a")]), before)
    second = _step(snapshot.replace([world.route(2, path="/b")]), before)
    assert first.work == second.work == Work(routes=1, virtual_hosts=1, clusters=0)
    _same(translate(snapshot, PLAIN, second), before)


@pytest.mark.pure
def test_other_settings_start_anew(thousand: tuple[Snapshot, Translation]) -> None:
    snapshot, before = thousand
    assert translate(snapshot, Settings(enable_backend=False), before).work.routes == 1000
    assert translate(snapshot, Settings(now=1, addresses=("::1",)), before).work.routes == 0


@pytest.mark.pure
@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(EDITS, min_size=1, max_size=3), max_size=8))
def test_any_history_gives_what_nothing_gives(steps: list[list[object]]) -> None:
    snapshot = world.many(3)
    translation = translate(snapshot, PLAIN)
    for edits in steps:
        removed = [edit for edit in edits if isinstance(edit, ObjectRef)]
        changed = [edit for edit in edits if not isinstance(edit, ObjectRef)]
        snapshot = snapshot.replace(changed, removed)  # type: ignore[arg-type]
        translation = _step(snapshot, translation)


_ALLOW_BLUE = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "blue"}}}}
_LIMIT = {"group": "gateway.edge.io", "kind": "RateLimitFilter", "name": "limits"}
_FILTER = {"group": "gateway.edge.io", "kind": "HTTPRouteFilter", "name": "page"}


@pytest.mark.pure
@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param(
            [
                world.gateway(allowedRoutes=_ALLOW_BLUE),
                world.namespace("team", team="red"),
                world.far_route([]),
            ],
            world.namespace("team", team="blue"),
            id="namespace-labels",
        ),
        pytest.param(
            [
                world.gateway(allowedRoutes={"namespaces": {"from": "All"}}),
                world.far_route([{"name": "web", "namespace": "default", "port": 80}]),
            ],
            world.grant("team"),
            id="grant",
        ),
        pytest.param(
            [world.route(0, filters=[{"type": "ExtensionRef", "extensionRef": _LIMIT}])],
            world.rate_limit_filter("limits"),
            id="rate-limit-filter",
        ),
        pytest.param(
            [world.route(0, filters=[{"type": "ExtensionRef", "extensionRef": _FILTER}])],
            world.route_filter("page", "pages"),
            id="route-filter",
        ),
        pytest.param(
            [
                world.route(0, filters=[{"type": "ExtensionRef", "extensionRef": _FILTER}]),
                world.route_filter("page", "pages"),
            ],
            world.config_map("pages", body="hello"),
            id="body-of-answer",
        ),
        pytest.param(
            [world.route(0, parents=[{"kind": "ListenerSet", "name": "more"}])],
            world.listener_set("more"),
            id="listener-set",
        ),
        pytest.param(
            [world.route(0, parents=[{"name": "late"}])], world.gateway("late", 81), id="gateway"
        ),
        pytest.param([world.route(0, backend="late")], world.service("late"), id="service"),
        pytest.param(
            [world.policy("p"), world.authority(False), world.route(0), world.service("web")],
            world.authority(True),
            id="authority-of-policy",
        ),
        pytest.param(
            [world.policy("p", bundle=True), world.trust_bundle(False), world.route(0)],
            world.trust_bundle(True),
            id="bundle-of-policy",
        ),
    ],
)
def test_whatever_a_route_reads_makes_it_anew(before: list[Object], change: Object) -> None:
    base = [world.gateway_class(), world.gateway(), world.service("web")]
    named = {(type(one), one.metadata.name): one for one in [*base, *before]}
    snapshot = Snapshot.of(named.values())
    first = translate(snapshot, PLAIN)
    after = _step(snapshot.replace([change]), first)
    assert after.work.routes == 1
    assert list(after.statuses.items()) != list(first.statuses.items())


@pytest.mark.pure
def test_a_cluster_that_only_a_refused_route_names_is_not_taken_from_the_past(
    tmp_path: Path,
) -> None:
    """What no route uses is forgotten whole: the next one that asks gets it as it is by then."""
    head = (
        "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: edge},"
        " spec: {controllerName: gateway.edge.io/gatewayclass-controller}}\n"
        "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw},"
        " spec: {gatewayClassName: edge, listeners: [{name: http, port: 80, protocol: HTTP}]}}\n"
        "---\n{apiVersion: gateway.edge.io/v1alpha1, kind: Backend, metadata: {name: far},"
        " spec: {endpoints: [{ip: {address: ADDRESS, port: 80}}]}}\n"
        "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec:"
        " {parentRefs: [{name: gw}], rules: [{matches: [{path: {type: TYPE, value: /}}], backendRefs:"
        " [{group: gateway.edge.io, kind: Backend, name: far}]}]}}\n"
    )
    source = FileSource([tmp_path])
    made: Translation | None = None
    for address, kind in (("10.0.0.1", "Wrong"), ("10.0.0.2", "Wrong"), ("10.0.0.2", "PathPrefix")):
        text = head.replace("ADDRESS", address).replace("TYPE", kind)
        (tmp_path / "a.yaml").write_text(text)
        snapshot = source.read().snapshot
        made = translate(snapshot, PLAIN, made)
        _same(made, translate(snapshot, PLAIN))
    assert [one.address for cluster in made.ir.fleets[0].clusters for one in cluster.endpoints] == [
        "10.0.0.2"
    ]
