"""Routing end to end: which rule of which route on which listener answers, through the whole product."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.responses import Response

NAMES = ["one", "two", "three", "four"]


class Backends:
    """Origins by name; each answers who it is."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.by_name = {
            name: self.stack.enter_context(RecordingOrigin(echo(name))) for name in NAMES
        }

    def objects(self) -> list[make.Object]:
        """A Service for each."""
        return [
            item
            for name, origin in self.by_name.items()
            for item in make.service(name, [("127.0.0.1", origin.port)])
        ]


@pytest.fixture(scope="module")
def backends() -> Iterator[Backends]:
    made = Backends()
    with made.stack:
        yield made


def header(name: str, value: str, kind: str = "Exact") -> make.Object:
    return {"type": kind, "name": name, "value": value}


def build_objects(ports: dict[str, int], backends: Backends) -> list[make.Object]:
    """One Gateway for matching, one for hostnames, one for listener isolation."""
    matching = [
        make.rule("one", matches=[make.path("/exact", "Exact")]),
        make.rule("two", matches=[make.path("/exact")]),
        make.rule("three", matches=[make.path("/pre/fix"), make.path("/other/")]),
        make.rule("four", matches=[make.path("/re/[0-9]+(/x)?", "RegularExpression")]),
        make.rule("one", matches=[{**make.path("/m"), "method": "POST"}]),
        make.rule("two", matches=[make.path("/m")]),
        make.rule("one", matches=[{**make.path("/h"), "headers": [header("Version", "1")]}]),
        make.rule("two", matches=[{**make.path("/h"), "headers": [
            header("version", "1"), header("color", "blue")]}]),
        make.rule("three", matches=[{**make.path("/h"), "headers": [
            header("x-list", "a,b")]}]),
        make.rule("four", matches=[{**make.path("/h"), "headers": [
            header("agent", "cu.l/[0-9.]+", "RegularExpression")]}]),
        make.rule("one", matches=[{**make.path("/q"), "queryParams": [header("animal", "whale")]}]),
        make.rule("two", matches=[{**make.path("/q"), "queryParams": [
            header("animal", "dol.*", "RegularExpression")]}]),
        make.rule("three", matches=[{**make.path("/q"), "queryParams": [
            header("animal", "whale"), header("ANIMAL", "whale")]}]),
        make.rule("one", matches=[make.path("/long/er/path")]),
        make.rule("two", matches=[make.path("/long")]),
        make.rule("four", matches=[make.path("/sp%20ace", "Exact")]),
    ]  # fmt: skip
    hosts = [
        make.gateway("hosts", [make.listener(ports["hosts"])]),
        make.route("host-exact", [make.rule("one", matches=[make.path("/a")])],
                   ["exact.h.test"], "hosts"),
        make.route("host-wild", [make.rule("two")], ["*.h.test"], "hosts"),
        make.route("host-deep", [make.rule("three")], ["*.deep.h.test"], "hosts"),
        make.route("host-none", [make.rule("four", matches=[make.path("/none")])], [], "hosts"),
    ]  # fmt: skip
    isolation = [
        make.gateway("isolated", [
            make.listener(ports["isolated"], "any"),
            make.listener(ports["isolated"], "wild", "*.i.test"),
            make.listener(ports["isolated"], "exact", "exact.i.test"),
        ]),
        make.route("iso-any", [make.rule("one", matches=[make.path("/any")])], [], "isolated",
                   sectionName="any"),
        make.route("iso-wild", [make.rule("two", matches=[make.path("/wild")])], [], "isolated",
                   sectionName="wild"),
        make.route("iso-exact", [make.rule("three", matches=[make.path("/exact")])], [],
                   "isolated", sectionName="exact"),
    ]  # fmt: skip
    return [
        make.gateway("web", [make.listener(ports["web"])]),
        make.route("matching", matching, ["m.test"]),
        *hosts,
        *isolation,
        *backends.objects(),
    ]


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return {name: free_port() for name in ("web", "hosts", "isolated")}


@pytest.fixture(scope="module")
def gateway(ports: dict[str, int], backends: Backends) -> Iterator[Gateway]:
    with Gateway(build_objects(ports, backends)) as running:
        yield running


def ask(
    port: int,
    target: str,
    host: str = "m.test",
    method: str = "GET",
    headers: list[tuple[str, str]] | None = None,
) -> Response:
    """One request."""
    with Client(("127.0.0.1", port)) as client:
        return client.request(method, target, host, headers or [])


def said(answer: Response) -> Any:
    """What the echo tells."""
    assert answer.status == 200, answer
    return json.loads(answer.body)


#: Target, then who answers: exact, prefix by segments, expressions on the whole path, longest first, after normalisation.
PATHS = [
    ("/exact", "one"), ("/exact?x=1", "one"), ("/exact/", "two"), ("/exact/more", "two"),
    ("/exactly", ""), ("/Exact", ""), ("/pre/fix", "three"), ("/pre/fix/a", "three"),
    ("/pre/fixed", ""), ("/pre", ""), ("/other", "three"), ("/other/", "three"),
    ("/other/a", "three"), ("/others", ""), ("/re/1", "four"), ("/re/12/x", "four"),
    ("/re/12/y", ""), ("/re/", ""), ("/a/re/1", ""), ("/re/1/", ""), ("/m", "two"),
    ("/long/er/path/x", "one"), ("/long/er", "two"), ("/", ""), ("//exact", "one"),
    ("/x/../exact", "one"), ("/%65xact", "one"), ("/exact/..", ""), ("/sp%20ace", "four"),
]  # fmt: skip

#: Method, headers (joined, names in any case) and query parameters (decoded, the first counts).
PREDICATES: list[tuple[str, list[tuple[str, str]], str, str]] = [
    ("POST", [], "/m", "one"), ("GET", [], "/m", "two"), ("PUT", [], "/m/x", "two"),
    ("GET", [("Version", "1")], "/h", "one"), ("GET", [("VERSION", "1")], "/h", "one"),
    ("GET", [("version", "1"), ("color", "blue")], "/h", "two"),
    ("GET", [("version", "1"), ("color", "Blue")], "/h", "one"),
    ("GET", [("version", "2")], "/h", ""), ("GET", [("version", "1 ")], "/h", "one"),
    ("GET", [("x-list", "a"), ("x-list", "b")], "/h", "three"),
    ("GET", [("x-list", "a,b")], "/h", "three"), ("GET", [("x-list", "b,a")], "/h", ""),
    ("GET", [("agent", "curl/8.0")], "/h", "four"), ("GET", [("agent", "xcurl/8.0")], "/h", ""),
    ("GET", [("agent", "curl/8.0x")], "/h", ""),
    ("GET", [], "/q?animal=whale", "one"), ("GET", [], "/q?animal=whale&ANIMAL=whale", "three"),
    ("GET", [], "/q?animal=dolphin", "two"), ("GET", [], "/q?Animal=whale", ""),
    ("GET", [], "/q?animal=%77hale", "one"), ("GET", [], "/q?x&animal=whale", "one"),
    ("GET", [], "/q?animal=cat&animal=whale", ""), ("GET", [], "/q?animal=", ""),
    ("GET", [], "/q", ""),
]  # fmt: skip

#: Exact before longer wildcard before none; a miss goes on to the less specific ones.
HOSTNAMES = [
    ("exact.h.test", "/a", "one"), ("exact.h.test", "/b", "two"), ("EXACT.H.TEST", "/a", "one"),
    ("exact.h.test:99", "/a", "one"), ("x.h.test", "/a", "two"), ("x.y.h.test", "/", "two"),
    ("x.deep.h.test", "/", "three"), ("deep.h.test", "/", "two"), ("h.test", "/", ""),
    ("h.test", "/none", "four"), ("anything", "/none", "four"), ("anything", "/", ""),
    ("x.deep.h.test", "/none", "three"), ("xh.test", "/", ""), ("[::1]", "/none", "four"),
    ("127.0.0.1:80", "/none", "four"),
]  # fmt: skip

#: The most specific listener owns the request: routes of other listeners do not answer for it.
ISOLATION = [
    ("foo.test", "/any", "one"), ("foo.test", "/wild", ""), ("a.i.test", "/wild", "two"),
    ("a.i.test", "/any", ""), ("exact.i.test", "/exact", "three"), ("exact.i.test", "/wild", ""),
    ("exact.i.test", "/any", ""), ("i.test", "/any", "one"), ("b.exact.i.test", "/wild", "two"),
]  # fmt: skip

QUESTIONS = [
    *(("web", "GET", "m.test", target, [], name) for target, name in PATHS),
    *(("web", method, "m.test", target, pairs, name) for method, pairs, target, name in PREDICATES),
    *(("hosts", "GET", host, target, [], name) for host, target, name in HOSTNAMES),
    *(("isolated", "GET", host, target, [], name) for host, target, name in ISOLATION),
]


@pytest.mark.parametrize(("port", "method", "host", "target", "headers", "name"), QUESTIONS)
def test_the_rule_that_answers(
    port: str, method: str, host: str, target: str, headers: list[tuple[str, str]], name: str,
    gateway: Gateway, ports: dict[str, int],
) -> None:  # fmt: skip
    answer = ask(ports[port], target, host, method, headers)
    assert (said(answer)["origin"] if name else answer.status) == (name or 404)


def test_route_of_one_port_is_unknown_on_another(gateway: Gateway, ports: dict[str, int]) -> None:
    """Ports do not leak into each other, whatever Host says."""
    assert ask(ports["hosts"], "/exact", "m.test").status == 404
    assert ask(ports["web"], "/any", "foo.test").status == 404
    assert ask(ports["web"], "/exact", f"m.test:{ports['hosts']}").status == 200


# --- weights ----------------------------------------------------------------------------------------------------------


def test_weights_of_two_rules_are_separate(
    gateway: Gateway, ports: dict[str, int], backends: Backends
) -> None:
    """Alternating between two rules does not lock their shares together."""
    half = [make.backend_ref("one", 1), make.backend_ref("two", 1)]
    rules = [make.rule(*half, matches=[make.path("/x")]), make.rule(*half)]
    gateway.apply([*build_objects(ports, backends), make.route("weights", rules, ["w.test"])])
    seen: Counter[tuple[str, str]] = Counter()
    with Client(("127.0.0.1", ports["web"])) as client:
        for number in range(200):
            target = ("/x", "/y")[number % 2]
            seen[target, said(client.request("GET", target, "w.test"))["origin"]] += 1
    assert all(abs(count - 50) <= 1 for count in seen.values()), seen
