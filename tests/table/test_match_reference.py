"""The matcher against the naive reference: random tables, random requests, any number of fragments.

In: virtual hosts cut into 1, 2, 4, 8 or 16 fragments. Out: the same rules, in the same order, as a linear scan gives.
Must never: compare winners only; everything after the winner is what explain shows.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast import ir
from edgefast.table import Matcher, Request, Shards, compile_fleet, match
from edgefast.table.build import BlobBuilder
from edgefast.table.fragment import compile_cut
from tests.table import reference, tables

pytestmark = pytest.mark.pure


def cut(host: ir.VirtualHost, count: int) -> Matcher:
    compiled = compile_cut(host, count, None, BlobBuilder())
    assert compiled.problems == ()
    return Matcher({(r.type, r.name): r for r in compiled.resources})


def expected(host: ir.VirtualHost, request: Request) -> list[tuple[ir.Match, ir.Rule]]:
    return [
        (entry.match, host.rules[entry.rule])
        for entry in host.entries
        if reference.matches(entry.match, request)
    ]


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(
    tables.virtual_hosts(),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(tables.requests(), min_size=1, max_size=8),
)
def test_same_as_linear_scan(host: ir.VirtualHost, count: int, requests: list[Request]) -> None:
    matcher = cut(host, count)
    for request in requests:
        hits = list(matcher.matches(tables.LISTENER, "www.example.com", request))
        assert [(hit.match, hit.rule) for hit in hits] == expected(host, request)
        for hit in hits:
            if hit.match.kind == "prefix":
                assert request.path[: hit.prefix_len] == hit.match.path
            else:
                assert hit.prefix_len == len(request.path)


HOSTNAMES = ["www.example.com", "*.example.com", "*.com", "*", "example.com", "a.www.example.com"]


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(st.data(), st.lists(st.sampled_from(HOSTNAMES), unique=True), st.sampled_from(HOSTNAMES))
def test_falls_through_hostnames(data: st.DataObject, hostnames: list[str], host: str) -> None:
    host = host.replace("*", "other")
    hosts = [data.draw(tables.virtual_hosts(name)) for name in hostnames]
    shards = compile_fleet(tables.make_fleet(*hosts))
    request = data.draw(tables.requests())
    by_name = {each.hostname: each for each in hosts}
    want = [
        (f"{tables.LISTENER}/{name}", *pair)
        for name in reference.order_hosts(host, hostnames)
        for pair in expected(by_name[name], request)
    ]
    hits = Matcher(shards.resources).matches(tables.LISTENER, host.upper(), request)
    assert [(hit.virtual_host, hit.match, hit.rule) for hit in hits] == want
    answer = match(shards, tables.LISTENER, host, request)
    assert (answer.rule if answer else None) == (want[0][2] if want else None)


def answer_of(host: ir.VirtualHost, path: str) -> str | None:
    shards: Shards = compile_fleet(tables.make_fleet(host))
    hit = match(shards, tables.LISTENER, host.hostname, Request(path=path))
    return hit.match.path if hit is not None else None


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/foo", "/foo"),
        ("/foo/", "/foo"),
        ("/foo/bar", "/foo"),
        ("/foobar", None),
        ("/Foo", None),
        ("/foo/bar/baz", "/foo/bar/baz"),
        ("/", None),
        ("*", None),
    ],
)
def test_prefix_is_whole_segments(path: str, want: str | None) -> None:
    assert answer_of(tables.prefix_host("h", ["/foo", "/foo/bar/baz"]), path) == want


def test_prefix_of_everything() -> None:
    host = tables.prefix_host("h", [""])
    assert answer_of(host, "/") == ""
    assert answer_of(host, "/any/thing") == ""
    assert answer_of(host, "*") is None  # OPTIONS * has no path


def test_attack_path_finds_the_deepest_prefix() -> None:
    deepest = "/s" * 63
    host = tables.prefix_host("h", ["/s", deepest])
    assert answer_of(host, "/s" * 4000) == deepest
    assert answer_of(host, "/s" * 62 + "/t" * 4000) == "/s"
