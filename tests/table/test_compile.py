"""compile_fleet: what goes in comes out again, the same bytes every time, and a small change is small.

In: fleets. Out: shards, decoded again; bytes in a Delta. Must never: measure time; work done is counted instead.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast import ir
from edgefast.table import (
    Delta,
    Request,
    Resource,
    Shards,
    compile_fleet,
    decode_blob,
    decode_virtual_host,
    diff,
    match,
)
from edgefast.table import compile as compile_module
from edgefast.table.build import BlobBuilder
from edgefast.table.fragment import (
    JOIN_BELOW,
    SPLIT_ABOVE,
    Compiled,
    compile_cut,
    compile_virtual_host,
)
from edgefast.table.shards import RESOURCE_LIMIT
from tests.table import tables
from tests.table.tables import LISTENER, make_fleet, make_rule, prefix_host

pytestmark = pytest.mark.pure


def replace_rule(host: ir.VirtualHost, place: int, rule: ir.Rule) -> ir.VirtualHost:
    rules = (*host.rules[:place], rule, *host.rules[place + 1 :])
    return msgspec.structs.replace(host, rules=rules)


def named(shards: Shards, type_: str) -> dict[str, Resource]:
    return {name: r for (found, name), r in shards.resources.items() if found == type_}


# --- contents -------------------------------------------------------------------------------------------------------


def canonical(host: ir.VirtualHost) -> tuple[object, ...]:
    """A host without what cutting may change: unused rules, numbers of rules, the order between different paths."""
    pairs = [(entry.match, host.rules[entry.rule]) for entry in host.entries]
    kinds = ("exact", "regex", "prefix")
    runs: dict[tuple[int, str], list[object]] = {}
    for found, rule in pairs:
        path = "" if found.kind == "regex" else found.path
        runs.setdefault((kinds.index(found.kind), path), []).append((found, rule))
    return host.listener, host.hostname, sorted(runs.items(), key=lambda run: run[0])


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(tables.virtual_hosts(), st.sampled_from([1, 2, 4, 16]))
def test_round_trip(host: ir.VirtualHost, count: int) -> None:
    root, *fragments = compile_cut(host, count, None, BlobBuilder()).resources
    assert len(fragments) == (count if count > 1 else 0)
    decoded = decode_virtual_host(root.data, [f.data for f in reversed(fragments)])
    assert canonical(decoded) == canonical(host)
    if count == 1:
        assert decoded.entries == tuple(
            msgspec.structs.replace(entry, rule=decoded.rules.index(host.rules[entry.rule]))
            for entry in host.entries
        )


def test_names_and_types() -> None:
    listener = ir.Listener(name=LISTENER, port=80, bind_port=80, protocol="HTTP")
    cluster = ir.Cluster(name="service/ns/web/80", endpoints=(ir.Endpoint(address="::1", port=1),))
    secret = ir.Secret(name="secret/ns/tls", certificate=b"c", private_key=b"k")
    store = ir.RateLimitStore(kind="redis", addresses=("redis:6379",), password="hunter2")
    fleet = ir.Fleet(
        name="standalone",
        listeners=(listener,),
        virtual_hosts=(prefix_host("*", ["/a"]),),
        clusters=(cluster,),
        secrets=(secret,),
        limit_store=store,
    )
    shards = compile_fleet(fleet)
    resources = shards.resources
    assert list(resources) == [
        ("cluster", "service/ns/web/80"),
        ("limit_store", "store"),
        ("listener", "ns/gw/http"),
        ("secret", "secret/ns/tls"),
        ("virtual_host", "ns/gw/http/*"),
    ]
    assert shards.problems == ()
    decode = msgspec.msgpack.decode
    assert decode(resources["listener", LISTENER].data, type=ir.Listener) == listener
    assert decode(resources["cluster", cluster.name].data, type=ir.Cluster) == cluster
    assert decode(resources["secret", secret.name].data, type=ir.Secret) == secret
    assert decode(resources["limit_store", "store"].data, type=ir.RateLimitStore) == store
    blob = decode_blob(resources["virtual_host", "ns/gw/http/*"].data)
    assert (blob.key, blob.fragments, blob.fragment) == ("ns/gw/http/*", 1, None)
    for (type_, name), resource in resources.items():
        assert (resource.type, resource.name) == (type_, name)
        assert len(resource.version) == 16
    assert (
        "private" not in repr(shards)
        and "'k'" not in repr(shards)
        and "hunter2" not in repr(shards)
    )


def test_same_input_same_bytes() -> None:
    hosts = [prefix_host(f"h{i}", [f"/p{j}" for j in range(50)]) for i in range(20)]
    first, second = compile_fleet(make_fleet(*hosts)), compile_fleet(make_fleet(*hosts))
    assert first.resources == second.resources
    assert first.version == second.version
    assert diff(first, second) == Delta()


# --- changes --------------------------------------------------------------------------------------------------------


class Counted:
    """Counts the hosts that compile_fleet really compiles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled: list[str] = []
        monkeypatch.setattr(compile_module, "compile_virtual_host", self.compile)

    def compile(
        self, host: ir.VirtualHost, before: Compiled | None, builder: BlobBuilder
    ) -> Compiled:
        self.compiled.append(host.hostname)
        return compile_virtual_host(host, before, builder)


def test_one_changed_host_is_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [prefix_host(f"h{i}", ["/a", "/b"]) for i in range(100)]
    fleet = make_fleet(*hosts)
    old = compile_fleet(fleet)
    counted = Counted(monkeypatch)
    hosts[40] = replace_rule(hosts[40], 0, make_rule("-new"))
    added = prefix_host("added", ["/x"])
    changed = msgspec.structs.replace(fleet, virtual_hosts=(*hosts[:60], added, *hosts[61:]))
    new = compile_fleet(changed, old)
    assert counted.compiled == ["h40", "added"]
    delta = diff(old, new)
    assert [r.name for r in delta.put] == [f"{LISTENER}/added", f"{LISTENER}/h40"]
    assert delta.remove == (("virtual_host", f"{LISTENER}/h60"),)
    fresh = compile_fleet(changed)
    assert new.resources == fresh.resources
    assert new.version == fresh.version != old.version
    assert diff(old, fresh) == delta  # without the shortcut of `base`
    assert diff(new, old).remove == (("virtual_host", f"{LISTENER}/added"),)


def test_moved_and_equal_objects_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [prefix_host(f"h{i}", ["/a"]) for i in range(10)]
    fleet = make_fleet(*hosts)
    old = compile_fleet(fleet)
    counted = Counted(monkeypatch)
    moved = compile_fleet(msgspec.structs.replace(fleet, virtual_hosts=tuple(hosts[::-1])), old)
    assert counted.compiled == []
    assert diff(old, moved) == Delta()
    assert moved.version == old.version
    equal = (*hosts[:3], prefix_host("h3", ["/a"]), *hosts[4:])
    again = compile_fleet(msgspec.structs.replace(fleet, virtual_hosts=equal), moved)
    assert counted.compiled == ["h3"]
    assert diff(moved, again) == Delta()
    assert again.version == old.version


def test_previous_without_memory() -> None:
    """Shards that were read back from a disk serve for a diff, not for reuse."""
    shards = compile_fleet(make_fleet(prefix_host("h", ["/a"]), prefix_host("i", ["/a"])))
    read = Shards(resources=dict(shards.resources), version=shards.version)
    new = compile_fleet(make_fleet(prefix_host("h", ["/a"])), read)
    assert diff(read, new) == Delta((), (("virtual_host", f"{LISTENER}/i"),))


def test_name_twice_is_a_bug() -> None:
    with pytest.raises(ValueError, match=f"virtual_host are named {LISTENER}/h"):
        compile_fleet(make_fleet(prefix_host("h", ["/a"]), prefix_host("h", ["/b"])))
    host = prefix_host("h", ["/a"])
    old = compile_fleet(make_fleet(host))
    with pytest.raises(ValueError, match="two resources"):
        compile_fleet(make_fleet(host, host), old)


def test_delta_order() -> None:
    listener = ir.Listener(name=LISTENER, port=80, bind_port=80, protocol="HTTP")
    big = prefix_host("big", [f"/p{i}" for i in range(1000)])
    fleet = ir.Fleet(
        name="f",
        listeners=(listener,),
        virtual_hosts=(big,),
        clusters=(ir.Cluster(name="c"),),
        secrets=(ir.Secret(name="s"),),
        limit_store=ir.RateLimitStore(),
    )
    shards = compile_fleet(fleet)
    fragments = len(named(shards, "fragment"))
    assert fragments > 1
    put = diff(None, shards).put
    cut = ["fragment"] * fragments
    first = ["secret", "limit_store", "cluster"]
    assert [r.type for r in put] == [*first, *cut, "virtual_host", "listener"]
    empty = compile_fleet(ir.Fleet(name="f"), shards)
    delta = diff(shards, empty)
    assert delta.put == ()
    assert [key[0] for key in delta.remove] == [
        "listener",
        "virtual_host",
        *cut,
        "cluster",
        "limit_store",
        "secret",
    ]
    assert empty.version == compile_fleet(ir.Fleet(name="f")).version


# --- large hosts ----------------------------------------------------------------------------------------------------

MANY = [f"/team-{i}/service" for i in range(10_000)]


@pytest.fixture(scope="module")
def large() -> tuple[ir.Fleet, Shards]:
    fleet = make_fleet(prefix_host("www", MANY))
    return fleet, compile_fleet(fleet)


def test_fragments_of_a_large_host(large: tuple[ir.Fleet, Shards]) -> None:
    fleet, shards = large
    fragments = named(shards, "fragment")
    sizes = [len(resource.data) for resource in fragments.values()]
    assert len(sizes) in (32, 64, 128, 256)
    assert JOIN_BELOW < sum(sizes) / len(sizes) <= SPLIT_ABOVE
    assert max(sizes) < 2 * SPLIT_ABOVE
    assert sum(sizes) / len(MANY) < 1000  # bytes of table per route
    assert set(fragments) == {f"{LISTENER}/www#{i}" for i in range(len(sizes))}
    for path in ("/team-7/service", "/team-9999/service"):
        hit = match(shards, LISTENER, "www", Request(path=f"{path}/x"))
        assert hit is not None and hit.match.path == path


def test_one_route_among_many(large: tuple[ir.Fleet, Shards]) -> None:
    """D2: one route more, changed or gone among 10,000 on one host resends a fragment, not the host."""
    fleet, old = large
    host = fleet.virtual_hosts[0]
    total = sum(len(r.data) for r in old.resources.values())
    changed = replace_rule(host, 5000, make_rule("-other"))
    rules = (
        *host.rules[:3000],
        make_rule("-new"),
        *host.rules[3000:],
    )  # all later rules are renumbered
    entries = [
        msgspec.structs.replace(e, rule=e.rule + 1) if e.rule >= 3000 else e for e in host.entries
    ]
    new_entry = ir.Entry(match=ir.Match(kind="prefix", path="/team-new/service"), rule=3000)
    added = msgspec.structs.replace(host, rules=rules, entries=(new_entry, *entries))
    removed = msgspec.structs.replace(host, entries=host.entries[1:])
    for variant in (changed, added, removed):
        new = compile_fleet(make_fleet(variant), old)
        delta = diff(old, new)
        hosts = [r for r in delta.put if r.type != "listener"]
        assert [r.type for r in hosts] == ["fragment"]
        assert delta.remove == ()
        assert sum(len(r.data) for r in hosts) < total / 30
        assert compile_fleet(make_fleet(variant)).resources == new.resources


def test_a_deeper_path_changes_the_root_too(large: tuple[ir.Fleet, Shards]) -> None:
    fleet, old = large
    host = fleet.virtual_hosts[0]
    deep = ir.Entry(match=ir.Match(kind="prefix", path="/team-1/a/b/c"), rule=0)
    new = compile_fleet(
        make_fleet(msgspec.structs.replace(host, entries=(deep, *host.entries))), old
    )
    assert [r.type for r in diff(old, new).put] == ["fragment", "virtual_host"]
    hit = match(new, LISTENER, "www", Request(path="/team-1/a/b/c/d"))
    assert hit is not None and hit.match == deep.match


def test_count_has_hysteresis() -> None:
    def count(n: int, previous: Shards | None = None) -> tuple[int, Shards]:
        shards = compile_fleet(make_fleet(prefix_host("h", MANY[:n])), previous)
        return len(named(shards, "fragment")), shards

    grown = None
    seen = []
    for n in range(100, 2600, 100):
        fragments, grown = count(n, grown)
        seen.append(fragments)
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] >= 8
    assert len(set(seen)) <= 5  # only powers of two, each for a long while
    shrunk = grown
    back = []
    for n in range(2500, 50, -100):
        fragments, shrunk = count(n, shrunk)
        back.append(fragments)
    assert back == sorted(back, reverse=True) and back[-1] == 0
    assert back[::-1] != seen  # it joins later than it splits
    for n in (200, 700, 1500):  # one route more or less at any size never swings
        base, shards = count(n)
        more, shards = count(n + 1, shards)
        less, _ = count(n - 1, shards)
        assert more == less


# --- what does not fit ----------------------------------------------------------------------------------------------


def test_no_resource_above_the_limit() -> None:
    payload = "x" * 100_000  # rules so large that the usual number of fragments is not enough
    rules = tuple(ir.Rule(route=f"ns/r{i}", index=0, reason=payload) for i in range(40))
    pairs = [(ir.Match(kind="exact", path=f"/{i}"), i) for i in range(40)]
    shards = compile_fleet(make_fleet(tables.make_host("h", rules, pairs)))
    assert shards.problems == ()
    assert max(len(r.data) for r in shards.resources.values()) <= RESOURCE_LIMIT
    hit = match(shards, LISTENER, "h", Request(path="/39"))
    assert hit is not None and hit.rule.route == "ns/r39"


@pytest.mark.parametrize("kind", ["exact", "regex"])
def test_host_that_no_table_holds(kind: str) -> None:
    """It answers 500 instead of letting its requests fall through to another host, and others are served."""
    rules = tuple(ir.Rule(route=f"ns/r{i % 7}", index=i, reason="x" * 50_000) for i in range(30))
    pairs = [(ir.Match(kind=kind, path="/one", method="GET"), i) for i in range(30)]  # type: ignore[arg-type]
    fleet = make_fleet(tables.make_host("h", rules, pairs), prefix_host("*", [""]))
    shards = compile_fleet(fleet)
    assert max(len(r.data) for r in shards.resources.values()) <= RESOURCE_LIMIT
    (problem,) = shards.problems
    assert "is too large" in problem.text() and "500" in problem.text()
    assert "ns/r0, ns/r1, ns/r2 and 4 more" in problem.text()
    hit = match(shards, LISTENER, "h", Request(path="/one"))
    assert hit is not None and hit.rule.status == 500 and "too large" in hit.rule.reason
    other = match(shards, LISTENER, "other", Request(path="/one"))
    assert other is not None and other.rule.status == 0
    healed = compile_fleet(make_fleet(prefix_host("h", ["/one"]), fleet.virtual_hosts[1]), shards)
    assert healed.problems == ()


def test_entries_that_do_not_fit() -> None:
    """Each is a problem of its route; the rest of the host is served."""
    long_value = (ir.ValueMatch(name="x-a", value="v" * 300_000),)
    many = tuple(ir.ValueMatch(name=f"h{i}", value="") for i in range(256))
    bad = [
        ir.Match(kind="prefix", path="/s" * 64),
        ir.Match(kind="exact", path="relative"),
        ir.Match(kind="prefix", path="/slash/"),
        ir.Match(kind="prefix", path="/m", method="GARBLE"),
        ir.Match(kind="prefix", path="/h", headers=long_value),
        ir.Match(kind="prefix", path="/h", headers=many),
        ir.Match(kind="prefix", path="/" + "p" * 70_000),
    ]
    good = ir.Match(kind="prefix", path="/good", headers=(ir.ValueMatch(name="x-a", value="1"),))
    rules = tuple(ir.Rule(route="ns/web", index=i) for i in range(len(bad) + 1))
    host = tables.make_host("h", rules, [(m, i) for i, m in enumerate([*bad, good])])
    shards = compile_fleet(make_fleet(host))
    assert len(shards.problems) == len(bad)
    for problem in shards.problems:
        assert problem.text().startswith("HTTPRoute ns/web spec.rules[")
    blob = decode_blob(shards.resources["virtual_host", f"{LISTENER}/h"].data)
    assert [entry.match for entry in blob.entries] == [good]
    hit = match(shards, LISTENER, "h", Request(path="/good", headers=(("X-A", "1"),)))
    assert hit is not None and hit.rule.index == len(bad)
    kept = compile_fleet(make_fleet(host, prefix_host("i", ["/a"])), shards)
    assert kept.problems == shards.problems  # remembered for what was not compiled again


def test_resource_of_another_kind_above_the_limit() -> None:
    endpoints = tuple(
        ir.Endpoint(address=f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", port=80)
        for i in range(40_000)
    )
    fleet = ir.Fleet(
        name="f", clusters=(ir.Cluster(name="big", endpoints=endpoints), ir.Cluster(name="c"))
    )
    shards = compile_fleet(fleet)
    assert list(shards.resources) == [("cluster", "c")]
    (problem,) = shards.problems
    assert "cluster big has" in problem.text() and "it is not served" in problem.text()
