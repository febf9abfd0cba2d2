"""Work done: a change costs what it touches, and gives what a translation from nothing gives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.problem import ObjectRef
from edgefast.providers.files import FileSource
from edgefast.resources.kinds import Object
from edgefast.resources.snapshot import Snapshot
from edgefast.translate import Settings, Translation, Work, translate
from edgefast.translate.translation import Memo
from tests.translate import world

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
    for fleet, shelf in memo.shelves.by_fleet.items():
        held = (shelf.hosts, shelf.clusters, shelf.uses, shelf.secrets)
        found[f"shelf {fleet}"] = [dict(one.items()) for one in held] + [shelf.limited]
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


#: Edits that hit everything that outcomes read; names are few so that they collide.
_EDITS = st.one_of(
    st.builds(
        world.route,
        st.integers(0, 3),
        path=st.sampled_from(["/", "/a"]),
        host=st.sampled_from(["a.example.com", "*.example.com", "b.org"]),
        backend=st.sampled_from(["web", "api"]),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        host=st.just("a.example.com"),
        matches=st.sampled_from(
            [
                [],
                [{"path": {"type": "RegularExpression", "value": "/a/(?=x)"}}],
                [{"path": {"type": "RegularExpression", "value": "(?=x)"}}],
            ]
        ),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        parents=st.sampled_from(
            [[{"kind": "Gatway", "name": "gw"}], [{"group": "", "name": "gw"}]]
        ),
    ),
    st.builds(world.service, st.sampled_from(["web", "api"])),
    st.builds(world.service, st.just("api"), appProtocol=st.sampled_from(["http", "grpc"])),
    st.builds(world.endpoints, st.just("web")),
    st.builds(
        world.endpoints, st.sampled_from(["web", "api"]), st.sampled_from(["10.0.0.1", "bad"])
    ),
    st.builds(world.gateway, port=st.sampled_from([80, 81])),
    st.builds(world.gateway, hostname=st.sampled_from(["*.example.com", "b.org"])),
    st.builds(
        world.nested_gateway, st.just(""), st.just("*.example.com"), st.just("a.example.com")
    ),
    st.builds(world.nested_gateway, st.just("*.com"), st.sampled_from(["*.org", "*.example.com"])),
    st.builds(world.gateway, st.just("second"), protocol=st.sampled_from(["HTTP", "TCP"])),
    st.builds(world.gateway_class, st.sampled_from(["example.com/other", PLAIN.controller_name])),
    st.builds(
        world.gateway,
        allowedRoutes=st.sampled_from(
            [
                {"namespaces": {"from": "All"}},
                {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "blue"}}}},
            ]
        ),
    ),
    st.builds(world.namespace, st.just("team"), team=st.sampled_from(["blue", "red"])),
    st.builds(world.grant, st.sampled_from(["team", "other"])),
    st.builds(world.policy, st.sampled_from(["p", "q"]), st.sampled_from(["web", "api"])),
    st.builds(
        world.policy,
        st.just("p"),
        created=st.sampled_from(["2026-01-01T00:00:00+14:00", "2026-01-01T00:00:00Z", ""]),
    ),
    st.builds(world.authority, st.booleans()),
    st.builds(world.backend, st.just("own"), st.booleans()),
    st.builds(world.rate_limit_filter, st.just("limits"), requests=st.integers(0, 1)),
    st.builds(world.route, st.integers(0, 3), filters=st.just(world.limited("limits"))),
    st.builds(
        world.far_route,
        st.lists(
            st.sampled_from(
                [
                    {"name": "web", "namespace": "default", "port": 80},
                    {"name": "missing", "port": 80},
                ]
            ),
            max_size=2,
        ),
    ),
    st.builds(
        world.route,
        st.integers(0, 3),
        backendRefs=st.just([{"group": "gateway.edge.io", "kind": "Backend", "name": "own"}]),
    ),
    st.sampled_from(
        [
            ObjectRef("HTTPRoute", "default", "r0"),
            ObjectRef("ReferenceGrant", "default", "grant"),
            ObjectRef("BackendTLSPolicy", "default", "p"),
            ObjectRef("ConfigMap", "default", "ca"),
            ObjectRef("Backend", "default", "own"),
            ObjectRef("RateLimitFilter", "default", "limits"),
            ObjectRef("HTTPRoute", "default", "r1"),
            ObjectRef("Service", "default", "web"),
            ObjectRef("Service", "default", "api"),
            ObjectRef("EndpointSlice", "default", "web-1"),
            ObjectRef("Gateway", "default", "gw"),
            ObjectRef("GatewayClass", "", "edge"),
        ]
    ),
)


@pytest.mark.pure
@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(_EDITS, min_size=1, max_size=3), max_size=8))
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
            [world.route(0, parents=[{"kind": "ListenerSet", "name": "more"}])],
            world.listener_set("more"),
            id="listener-set",
        ),
        pytest.param(
            [world.route(0, parents=[{"name": "late"}])],
            world.gateway("late", 81),
            id="gateway",
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
    for address, kind in (
        ("10.0.0.1", "Wrong"),
        ("10.0.0.2", "Wrong"),
        ("10.0.0.2", "PathPrefix"),
    ):
        text = head.replace("ADDRESS", address).replace("TYPE", kind)
        (tmp_path / "a.yaml").write_text(text)
        snapshot = source.read().snapshot
        made = translate(snapshot, PLAIN, made)
        _same(made, translate(snapshot, PLAIN))
    assert [one.address for cluster in made.ir.fleets[0].clusters for one in cluster.endpoints] == [
        "10.0.0.2"
    ]
