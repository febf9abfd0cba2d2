"""Reasons against the matcher: a match has a reason why it fails exactly when the matcher passes it over."""

from __future__ import annotations

import pytest

from edgefast import ir
from edgefast.api.model.regex import compile_regex
from edgefast.explain import RequestSpecError, Served, read_request_spec
from edgefast.explain.example_request import make_example_requests
from edgefast.explain.explain import explain
from edgefast.explain.head import Head, scan_head
from edgefast.explain.match_failure import describe_match, try_match
from edgefast.explain.regex_sample import sample_pattern
from edgefast.table import Matcher, Request, compile_fleet
from edgefast.table.match import Call, order_hostnames
from tests.explain.random_tables import Tables
from tests.table.tables import LISTENER, make_fleet, make_host

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_reasons_and_hits_agree(start: int) -> None:
    assert sum(_compare(seed) for seed in range(start, start + 10)) > 50


def _compare(seed: int) -> int:
    """Compare one random table; how many hits there were."""
    tables = Tables(seed, 1)
    fleet = tables.fleet()
    served = Served(fleet)
    compared = 0
    for ask in tables.asks(20):
        for listener in served.listeners(ask.port):
            head = scan_head(ask.head(), listener.http, tls=False)
            if not isinstance(head, Head):
                continue
            request = head.request()
            call = Call(request)
            hits = list(served.matcher.matches(listener.name, head.host, request))
            expected = []
            for name in order_hostnames(head.host):
                host = served.hosts.get(listener.name, {}).get(name)
                for entry in host.entries if host else ():
                    if try_match(entry.match, call, request.method) is None:
                        expected.append((name, entry.match, host.rules[entry.rule]))  # type: ignore[union-attr]
            found = [(hit.virtual_host.rpartition("/")[2], hit.match, hit.rule) for hit in hits]
            assert sorted(map(repr, found)) == sorted(map(repr, expected))
            compared += len(found)
    return compared


@pytest.mark.parametrize("seed", range(20))
def test_candidates_are_whole(seed: int) -> None:
    """Every rule that matches beside the winner is a candidate, and the winner is none."""
    tables = Tables(seed, 1)
    served = Served(tables.fleet())
    for ask in tables.asks(15):
        said = explain(served, ask, most=10_000)
        if said.rule is None:
            continue
        assert said.more_candidates == 0
        own = [one for one in said.candidates if one.virtual_host == said.rule.virtual_host]
        own = [
            one
            for one in own
            if (one.route, one.rule, one.match)
            == (said.rule.route, said.rule.index, said.rule.match)
        ]
        assert all(one.code in ("listener", "hostname", "shadowed") for one in own), (said, own)
        ranks = [one.code for one in said.candidates]
        assert "shadowed" not in ranks[ranks.count("shadowed") :], "what matches comes first"


PATTERNS = [
    "/api/.*", "/(a|b)(/.*)?", "[0-9]+", "[^,]*", "(?i)abc", "/v[0-9]{1,3}/x", r"a\.b", r"\d{4}-\d\d",
    "[[:alpha:]]+x", "[^a-z/]+", "(?P<x>foo|bar)baz", "^/x$", r"[\w-]+", "[]a]b", "/a+?", "x{2,}",
    "(?:/.*)?", r"[\d]+z", r"[\]a]+b", r"a[^\]]b", "[[:x]y", "[[:a-z]+",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_samples_match(pattern: str) -> None:
    made = sample_pattern(pattern)
    assert made is not None
    assert compile_regex(pattern).fullmatch(made) is not None


@pytest.mark.parametrize(
    "pattern", [r"\pN{3}x", "[[:cntrl:]]", "x" * 2000, r"[^\x00-\x7f]+", r"a\b\bb"]
)
def test_no_sample_is_no_lie(pattern: str) -> None:
    made = sample_pattern(pattern)
    assert made is None or compile_regex(pattern).fullmatch(made) is not None


def test_urls() -> None:
    ask = read_request_spec("GET", "www.example.com/a?b#c", ["Host: other.test", "X-A:  1 "])
    assert (ask.scheme, ask.port, ask.host, ask.target) == ("http", 80, "other.test", "/a?b")
    assert ask.headers == (("X-A", "1"),)
    ask = read_request_spec("GET", "https://www.Example.com:8443")
    assert (ask.scheme, ask.port, ask.host, ask.target, ask.sni) == (
        "https", 8443, "www.Example.com:8443", "/", "www.example.com",
    )  # fmt: skip
    assert read_request_spec("GET", "https://[::1]/").sni == ""
    assert read_request_spec("OPTIONS", "http://a*").target == "/"


@pytest.mark.parametrize("url", ["", "GET /x", "http://a b/", "http://a\tb", "http://[::/x", "a@b"])
def test_what_is_no_url(url: str) -> None:
    """A method and a path in one word are no host of that name."""
    with pytest.raises(RequestSpecError, match="is not a URL such as"):
        read_request_spec("GET", url)


@pytest.mark.parametrize(
    ("want", "sent", "reason"),
    [
        (ir.ValueMatch("cookie:sid", "one"), "a=b; sid=one", ""),
        (ir.ValueMatch("cookie:sid", "one"), "sid=two; sid=one", ""),
        (ir.ValueMatch("cookie:sid", "one"), "SID=one", "cookie sid is missing"),
        (
            ir.ValueMatch("cookie:sid", "one"),
            "sid=two",
            "cookie sid is not <3 characters, not shown>",
        ),
        (ir.ValueMatch("cookie:sid", "t.*", regex=True), "sid=one; sid=two", ""),
        (
            ir.ValueMatch("cookie:sid", "t.*", regex=True),
            "sid=one",
            "cookie sid does not match <3 characters, not shown>",
        ),
    ],
)
def test_cookies(want: ir.ValueMatch, sent: str, reason: str) -> None:
    """As the matcher has it; and no value is shown."""
    match = ir.Match(kind="prefix", path="", headers=(want,))
    request = Request(headers=(("Cookie", sent),))
    failure = try_match(match, Call(request), "GET")
    assert (failure.text if failure else "") == reason
    rule = ir.Rule(route="ns/r", index=0)
    host = make_host("h", (rule,), [(match, 0)])
    hit = Matcher(compile_fleet(make_fleet(host)).resources).match(LISTENER, "h", request)
    assert (hit is None) == (failure is not None)
    assert describe_match(match).startswith("prefix /, cookie sid")
    (witness, *_), unmade = make_example_requests([match])
    assert unmade == []
    lines = Request(headers=witness.headers)
    assert try_match(match, Call(lines), "GET") is None
