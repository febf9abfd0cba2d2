"""Tables for tests: random virtual hosts and requests that often meet, and small fleets in few words.

In: hypothesis draws, or paths. Out: ir objects with entries in order of precedence, requests.
Must never: be clever; a small alphabet makes collisions of paths, names and values likely.
"""

from __future__ import annotations

from hypothesis import strategies as st

from edgefast import ir
from edgefast.table import Request
from tests.table.reference import precedence

LISTENER = "ns/gw/http"

SEGMENTS = st.sampled_from(
    ["a", "b", "ab", ".", "~x", "%C3%A4", "a-segment-that-is-longer-than-a-word"]
)
METHODS = st.sampled_from(["", "", "GET", "POST", "M-SEARCH"])
VALUES = st.sampled_from(["", "1", "2", "1,2", "a b", "a+b", "%31", "ä", "x" * 40])
PATTERNS = st.sampled_from([".*", "1", "[0-9]+", "(a|b)c?", "a.*b", "", "x+", "[^,]*"])
HEADER_NAMES = st.sampled_from(["x-a", "x-b", "x_c", "accept", "cookie:a", "cookie:b"])
PARAMETERS = st.sampled_from(["q", "Q", "a b", "ä", "x-a"])


def _predicates(names: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[ir.ValueMatch, ...]]:
    exact = st.builds(ir.ValueMatch, name=names, value=VALUES)
    regex = st.builds(ir.ValueMatch, name=names, value=PATTERNS, regex=st.just(True))
    return st.lists(exact | regex, max_size=2, unique_by=lambda p: p.name).map(tuple)


PATHS = st.lists(SEGMENTS, max_size=5).map(lambda parts: "".join(f"/{part}" for part in parts))
PATH_PATTERNS = st.sampled_from(["/.*", "/a.*", "/(a|b)(/.*)?", "/[a-z]+/b", ".*"])


@st.composite
def path_matches(draw: st.DrawFn) -> ir.Match:
    kind = draw(st.sampled_from(["exact", "prefix", "prefix", "regex"]))
    if kind == "regex":
        path = draw(PATH_PATTERNS)
    else:
        path = draw(PATHS)
        if kind == "exact":
            path = (path + draw(st.sampled_from(["", "/"]))) or "/"
    return ir.Match(
        kind=kind,
        path=path,
        method=draw(METHODS),
        headers=draw(st.just(()) | _predicates(HEADER_NAMES)),
        query=draw(st.just(()) | _predicates(PARAMETERS)),
    )


@st.composite
def virtual_hosts(draw: st.DrawFn, hostname: str = "www.example.com") -> ir.VirtualHost:
    """A host with rules of one or more matches each; entries in order of precedence, ties by age."""
    per_rule = draw(st.lists(st.lists(path_matches(), min_size=1, max_size=3), max_size=12))
    rules = tuple(ir.Rule(route=f"ns/r{i}", index=i) for i in range(len(per_rule)))
    return make_host(hostname, rules, [(m, i) for i, each in enumerate(per_rule) for m in each])


def make_host(
    hostname: str, rules: tuple[ir.Rule, ...], pairs: list[tuple[ir.Match, int]]
) -> ir.VirtualHost:
    ordered = sorted(range(len(pairs)), key=lambda age: precedence(pairs[age][0], age))
    entries = tuple(ir.Entry(match=pairs[age][0], rule=pairs[age][1]) for age in ordered)
    return ir.VirtualHost(listener=LISTENER, hostname=hostname, rules=rules, entries=entries)


QUERY_PIECES = st.sampled_from(
    [
        "q=1",
        "q=2",
        "q",
        "q=",
        "Q=1",
        "a+b=1",
        "a%20b=a+b",
        "%71=%31",
        "q=a%2Bb",
        "x-a=%zz",
        "%C3%A4=1",
        "",
        "=1",
        "q=%",
    ]
)
COOKIES = st.lists(
    st.sampled_from(
        ["a=1", "a=2", " b=1", "b = a+b ", "A=1", "a", "a=", "b=\t", "", "b=a b", "=1"]
    ),
    max_size=4,
).map(";".join)
HEADERS = st.one_of(
    st.tuples(st.sampled_from(["x-a", "X-A", "X-b", "x_c", "Accept"]), VALUES),
    st.tuples(st.sampled_from(["cookie", "Cookie"]), COOKIES),
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    path = draw(PATHS) + draw(st.sampled_from(["", "/", "/a/b/ab", "x"])) or "/"
    return Request(
        method=draw(st.sampled_from(["GET", "POST", "M-SEARCH", "HEAD"])),
        path=path if path.startswith("/") else f"/{path}",
        query="&".join(draw(st.lists(QUERY_PIECES, max_size=3))),
        headers=tuple(draw(st.lists(HEADERS, max_size=4))),
    )


def prefix_host(hostname: str, paths: list[str]) -> ir.VirtualHost:
    """One rule with one prefix for every path."""
    rules = tuple(make_rule(path) for path in paths)
    matches = [(ir.Match(kind="prefix", path=path), i) for i, path in enumerate(paths)]
    return make_host(hostname, rules, matches)


def make_rule(name: str) -> ir.Rule:
    cluster = ir.BackendRef(cluster=f"service/team{name}/web/8080")
    return ir.Rule(route=f"team{name}/web", index=0, source="generation 1", backends=(cluster,))


def make_fleet(*hosts: ir.VirtualHost) -> ir.Fleet:
    listener = ir.Listener(name=LISTENER, port=80, bind_port=80, protocol="HTTP")
    return ir.Fleet(name="standalone", listeners=(listener,), virtual_hosts=hosts)
