"""Shadows: what is said never to take a request takes none, and finding it costs little."""

from __future__ import annotations

import sys

import pytest

from edgefast import ir
from edgefast.explain import RequestSpec
from edgefast.explain.example_request import make_example_requests
from edgefast.explain.fleet_pair import make_host
from edgefast.explain.head import Head, scan_head
from edgefast.table import Matcher, compile_fleet
from edgefast.translate.match.precedence import match_order
from edgefast.translate.virtual_host.shadowed_match import HostEntry, find_shadows
from edgefast.translate.virtual_host.tie_break import tie_break_key
from tests.explain.random_tables import Tables

pytestmark = pytest.mark.pure

Value = ir.ValueMatch


def entries_of(matches: list[ir.Match]) -> list[HostEntry]:
    """One route for each match, the older ones first."""
    made = [
        (
            match_order(match),
            tie_break_key((0, f"ns/r{at:05}")),
            0,
            0,
            match,
            at,
            ("ns", f"r{at:05}"),
        )
        for at, match in enumerate(matches)
    ]
    return sorted(made, key=lambda entry: entry[:4])


@pytest.mark.parametrize("seed", range(60))
def test_the_shadowed_take_no_request(seed: int) -> None:
    """Over random hosts: whatever is asked, an entry that is shadowed never comes first."""
    tables = Tables(seed, 1)
    fleet = tables.fleet()
    matcher = Matcher(compile_fleet(fleet).resources)
    for host in fleet.virtual_hosts:
        numbered = [
            (match_order(one.match), tie_break_key((0, "")), at, 0, one.match, at, ("ns", "r"))
            for at, one in enumerate(host.entries)
        ]
        dead = {entry[2] for entry, _ in find_shadows(numbered)}
        # Each entry has a rule of its own, so that the matcher says which of equal ones took it.
        rules = tuple(ir.Rule(route="ns/r", index=at) for at in range(len(numbered)))
        entries = tuple(ir.Entry(match=e[4], rule=e[2]) for e in numbered)
        alone = ir.VirtualHost(listener="ns/gw/l", hostname="*", rules=rules, entries=entries)
        matcher = Matcher(compile_fleet(ir.Fleet(name="f", virtual_hosts=(alone,))).resources)
        asks = [
            RequestSpec(
                method=one.method, host="any.example", target=one.target, headers=one.headers
            )
            for one in make_example_requests([e[4] for e in numbered])[0]
        ]
        for ask in (*asks, *tables.asks(40)):
            head = scan_head(
                ask.head(),
                ir.HttpSettings(underscores="Allow", escaped_slashes="KeepUnchanged"),
                tls=False,
            )
            if not isinstance(head, Head):
                continue
            hit = matcher.match("ns/gw/l", "any.example", head.request())
            assert hit is None or hit.rule.index not in dead, (ask, hit)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (ir.Match(kind="prefix", path="/a"), ir.Match(kind="prefix", path="/a")),
        (
            ir.Match(kind="exact", path="/a", method="GET"),
            ir.Match(kind="exact", path="/a", method="GET"),
        ),
        (ir.Match(kind="regex", path="/a/.*"), ir.Match(kind="prefix", path="/a/b")),
        (ir.Match(kind="regex", path="/a(/.*)?"), ir.Match(kind="prefix", path="/a")),
        (ir.Match(kind="regex", path="^/a(?:/.*)?$"), ir.Match(kind="prefix", path="/a/c")),
        (ir.Match(kind="regex", path=".*"), ir.Match(kind="prefix", path="")),
        (ir.Match(kind="regex", path="/v.*aaaaaaaaaaa|/.*"), None),
        (ir.Match(kind="regex", path="/a.*"), None),
        (
            ir.Match(
                kind="prefix", path="/a", headers=(Value(name="x", value="[0-9]", regex=True),)
            ),
            ir.Match(kind="prefix", path="/a", headers=(Value(name="x", value="1"),)),
        ),
        (
            ir.Match(
                kind="prefix",
                path="/a",
                query=(Value(name="q", value="1"), Value(name="r", value="2")),
            ),
            ir.Match(
                kind="prefix",
                path="/a",
                query=(Value(name="r", value="2"), Value(name="q", value="1")),
            ),
        ),
    ],
)
def test_what_is_found(wide: ir.Match, narrow: ir.Match | None) -> None:
    matches = [wide, narrow or ir.Match(kind="prefix", path="/b")]
    found = find_shadows(entries_of(matches))
    assert [(loser[4], winner[4]) for loser, winner in found] == (
        [(narrow, wide)] if narrow else []
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ir.Match(kind="prefix", path="/a", method="GET"), ir.Match(kind="prefix", path="/a")),
        (ir.Match(kind="exact", path="/a"), ir.Match(kind="prefix", path="/a")),
        (ir.Match(kind="regex", path="/a/.*"), ir.Match(kind="prefix", path="/a")),
        (ir.Match(kind="regex", path="/a(/.*)?"), ir.Match(kind="prefix", path="/ab")),
        (
            ir.Match(kind="prefix", path="/a", headers=(Value(name="x", value="1"),)),
            ir.Match(
                kind="prefix", path="/a", headers=(Value(name="x", value="[0-9]", regex=True),)
            ),
        ),
        (
            ir.Match(kind="prefix", path="/a", headers=(Value(name="x", value=".*", regex=True),)),
            ir.Match(kind="prefix", path="/a", query=(Value(name="x", value="1"),)),
        ),
    ],
)
def test_what_lives(first: ir.Match, second: ir.Match) -> None:
    assert find_shadows(entries_of([first, second])) == []


def _tenants(at: int) -> ir.Match:
    return ir.Match(kind="prefix", path="/a", headers=(Value(name="x-t", value=str(at)),))


def _grid(at: int) -> ir.Match:
    values = tuple(Value(name=f"h{bit:02}", value=str(at >> bit & 1)) for bit in range(14))
    return ir.Match(kind="prefix", path="/a", headers=values)


def _regexes(at: int) -> ir.Match:
    if at % 2:
        return ir.Match(kind="regex", path=f"/p{at}/.*")
    return ir.Match(kind="prefix", path=f"/p{at + 1}/x")


def _header_regexes(at: int) -> ir.Match:
    value = (
        Value(name="x", value=f"a{at}.*", regex=True) if at % 2 else Value(name="x", value=str(at))
    )
    return ir.Match(kind="prefix", path="/a", headers=(value,))


SHAPES = {
    "paths": lambda at: ir.Match(kind="prefix", path=f"/p{at}"),
    "tenants": _tenants,
    "equal": lambda at: ir.Match(kind="prefix", path="/a"),
    "grid": _grid,
    "regexes": _regexes,
    "header regexes": _header_regexes,
    "deep": lambda at: ir.Match(kind="prefix", path=f"{'/a' * 60}/{at}"),
}


def count_calls(entries: list[ir.Entry]) -> int:
    """Calls that the search makes, of Python and of C functions."""
    calls = 0

    def on_event(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        find_shadows(entries)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_rules_are_ten_times_the_work(shape: str) -> None:
    few = count_calls(entries_of([SHAPES[shape](at) for at in range(500)]))
    many = count_calls(entries_of([SHAPES[shape](at) for at in range(5_000)]))
    assert many < 14 * few
    assert many < 5_000 * 400


def test_hosts_for_wildcards_are_of_no_other_name() -> None:
    assert make_host("*", ["*", "*.example", "any.test"]) == "any.invalid"
    assert make_host("*.a.test", ["*.a.test", "any.a.test"]) == "other.a.test"
