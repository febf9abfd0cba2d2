"""Answers: who may ask, with which headers, what is refused, and that no answer is without bound."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest

from console.answers import Told, ask, ask_all
from console.fleets import LISTENER, make_fleet, make_host, make_rule, spread
from edgefast import ir
from edgefast.console import Console, LazyConsole, console
from edgefast.console.changes import list_changes
from edgefast.console.explain_form import serve
from edgefast.console.host_check import is_loopback
from edgefast.diagnostics.problem import Problem
from edgefast.httpd.server import Reply, Request

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("localhost:19000", True),
        ("127.0.0.1:19000", True),
        ("127.8.9.1", True),
        ("[::1]:19000", True),
        ("[::1]", True),
        ("", False),
        ("10.0.0.1:19000", False),
        ("[2001:db8::1]:1", False),
        ("localhost.evil.test", False),
        ("evil.test:19000", False),
        ("127.0.0.1.evil.test", False),
        ("localhost,evil.test", False),
        ("0x7f.1", False),
    ],
)
def test_only_loopback_hosts(host: str, own: bool) -> None:
    assert is_loopback(host) is own
    paths = ("", "app.js", "api/overview")
    statuses = {one.status for one in ask_all(Told(spread(1)), *paths, host=host)}
    assert statuses == ({200} if own else {421})


def test_every_route_only_reads() -> None:
    routes = asyncio.run(_routes())
    assert {method for method, _ in routes} == {"GET"}
    assert {"/", "/console", "/console/", "/console/app.js", "/console/api/tree"} <= {
        path for _, path in routes
    }


def test_a_console_that_is_loaded_later_has_the_same_routes() -> None:
    source = Told(spread(1))

    async def read() -> tuple[set[tuple[str, str]], set[tuple[str, str]], Reply, Reply]:
        lazy, eager = LazyConsole(source).routes, Console(source).routes
        request = Request("GET", "/console/api/tree", {}, b"", host="localhost")
        replies = [await routes["GET", request.path](request) for routes in (lazy, eager)]
        return set(lazy), set(eager), *replies

    lazy, eager, late, early = asyncio.run(read())
    assert lazy == eager
    assert late == early and late.status == 200


async def _routes() -> list[tuple[str, str]]:
    return list(Console(Told(spread(1))).routes)


def test_every_answer_has_the_headers() -> None:
    source = Told(spread(1))
    for reply in ask_all(
        source, "", "console.css", "icon.svg", "api/overview", ("api/node", "id=x"), "api/explain"
    ):
        headers = dict(reply.headers)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    ("path", "query", "status", "part"),
    [
        ("tree", "node=h:gone", 404, "was removed from the table"),
        ("tree", "offset=-1", 400, "not a number"),
        ("tree", "limit=x", 400, "not a number"),
        ("tree", "offset=99999999999", 400, "not a number"),
        ("tree", "sort=random", 400, "Invalid enum value"),
        ("node", "", 400, "missing id"),
        ("overview", "fleet=other", 404, "no fleet other"),
        ("explain", "url=", 400, "is not a URL"),
        ("explain", "url=http://a.test/&source=somewhere", 400, "not an IP address"),
        ("explain", f"url=http://a.test/{'x' * 9000}", 400, "longer than"),
        ("explain", "url=http://a.test/&headers=nonsense", 400, "not a header"),
        ("changes", "step=x", 400, "not a number"),
    ],
)
def test_what_is_refused(path: str, query: str, status: int, part: str) -> None:
    (reply,) = ask_all(Told(spread(1)), (f"api/{path}", query))
    assert reply.status == status
    assert part in msgspec.json.decode(reply.body)["error"]


def test_answers_are_bounded() -> None:
    source = Told(spread(5000, 1000))
    for question in (
        ("api/overview", ""),
        ("api/tree", f"node=l:{LISTENER}&limit=100000"),
        ("api/search", "q=example&limit=100000"),
        ("api/search", "q=" + "e" * 5000),
        ("api/members", "limit=100000"),
        ("api/limits", ""),
        ("api/problems", ""),
        ("api/changes", ""),
    ):
        (reply,) = ask_all(source, question)
        assert reply.status == 200
        assert len(reply.body) < 100_000, question


def test_reasons_are_explained_by_the_catalogue() -> None:
    source = Told(make_fleet([make_host("a.test", [make_rule(1)])]))
    told = ask(source, "reason", "q=Invalid")
    assert told["word"] == "Invalid" and told["means"].startswith("A value is not allowed")
    assert "reference (edgefast docs reference)" in told["fix"][0]
    (reply,) = ask_all(source, ("api/reason", "q=Invalide"))
    assert reply.status == 400
    source.told_problems = [Problem(None, "admin", "TooMany", "Invalid is said here")]
    (row,) = ask(source, "problems", "")["rows"]
    assert row["reasons"] == ["TooMany"]


def test_explain() -> None:
    source = Told(make_fleet([make_host("a.test", [make_rule(1)])]))
    told = ask(source, "explain", "method=GET&url=http://a.test/r1/x&headers=x-a: 1\n\nx-b: 2")
    assert told["answers"][0]["backend"] == "service/default/s1/80"
    assert told["node"] == f"r:{LISTENER}/a.test|default/r1|0"
    assert told["request"]["headers"] == [["x-a", "1"], ["x-b", "2"]]
    told = ask(source, "explain", "url=http://a.test/none")
    assert told["answers"][0]["status"] == 404
    assert told["node"] == ""


def test_many_endpoints_are_cut() -> None:
    fleet = make_fleet([make_host("a.test", [make_rule(1)])])
    endpoints = tuple(ir.Endpoint(f"10.0.{n // 250}.{n % 250}", 80) for n in range(900))
    cluster = msgspec.structs.replace(fleet.clusters[0], endpoints=endpoints)
    source = Told(msgspec.structs.replace(fleet, clusters=(cluster,)))
    told = ask(source, "explain", "url=http://a.test/r1")
    (backend,) = told["backends"]
    assert (len(backend["endpoints"]), backend["more_endpoints"]) == (20, 880)


async def test_a_new_table_is_seen_and_an_old_one_is_not_read_again() -> None:
    source = Told(spread(3))
    routes = Console(source).routes

    async def tree() -> list[str]:
        query = {"node": f"h:{LISTENER}/h0.example.com"}
        request = Request("GET", "/console/api/tree", query, b"", "localhost")
        reply = await routes[("GET", "/console/api/tree")](request)
        return [one["name"] for one in msgspec.json.decode(reply.body)["page"]["rows"]]

    assert await tree() == ["/r0", "/r1", "/r2"]
    assert await tree() == ["/r0", "/r1", "/r2"]
    assert source.looks == 1, "counters are not read again within a second"
    source.use(spread(2))
    assert await tree() == ["/r0", "/r1"]


@pytest.mark.parametrize(
    ("api", "query", "slow"),
    [("changes", {}, list_changes), ("explain", {"url": "http://h0.example.com/r0"}, serve)],
)
def test_what_takes_longer_than_anybody_waits_is_done_once(
    monkeypatch: pytest.MonkeyPatch, api: str, query: dict[str, str], slow: Callable[..., object]
) -> None:
    begun: list[int] = []
    may_end = threading.Event()

    def work(*arguments: object) -> object:
        begun.append(1)
        assert may_end.wait(60)
        return slow(*arguments)

    monkeypatch.setattr(console, slow.__name__, work)
    source = Told(spread(3))
    source.use(spread(2))

    async def main() -> None:
        routes = Console(source).routes

        async def ask_for(name: str, words: dict[str, str]) -> int:
            path = f"/console/api/{name}"
            return (
                await routes[("GET", path)](Request("GET", path, words, b"", "localhost"))
            ).status

        assert await ask_for("overview", {}) == 200
        monkeypatch.setattr(console, "_DEADLINE", 0.05)
        while not begun:
            assert await ask_for(api, query) == 503
        for _ in range(3):
            assert await ask_for(api, query) == 503
        if api == "changes":  # other work stands before the thread as long as somebody waits for it
            assert await ask_for("changes", {"step": "77"}) == 503
        monkeypatch.setattr(console, "_DEADLINE", 60.0)
        may_end.set()
        assert await ask_for(api, query) == 200
        assert await ask_for(api, query) == 200

    try:
        asyncio.run(main())
    finally:
        may_end.set()
    assert len(begun) == 1


def test_a_store_that_does_not_answer() -> None:
    assert ask(Told(spread(1)), "counters")["why_not"] == "the store does not answer"
