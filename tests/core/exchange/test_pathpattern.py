"""Paths rewritten by a regular expression (HTTPRouteFilter urlRewrite): every match, and what is no path in the end."""

from __future__ import annotations

import pytest

from core.backend import Call, say
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener, make_rule
from core.world import World
from edgefast import ir


def rewrite(pattern: str, value: str) -> ir.Rewrite:
    return ir.Rewrite(path=ir.PathRewrite("regex", value, pattern))


@pytest.mark.parametrize(
    ("pattern", "value", "asked", "got"),
    [
        ("^/api/v([0-9]+)/", r"/v\1/api/", "/api/v2/x?a=1", "/v2/api/x?a=1"),
        ("o", "0", "/foo/o?o=o", "/f00/0?o=o"),
        (
            "(a)(b)(c)(d)(e)(f)(g)(h)(i)",
            r"\9\8\7\6\5\4\3\2\1\0",
            "/abcdefghi",
            "/ihgfedcbaabcdefghi",
        ),
        ("none", "x", "/foo", "/foo"),
        ("^", "/p", "/a/b", "/p/a/b"),
        ("$", "/end", "/a", "/a/end"),
        (".*", "/all", "/a/b", "/all"),
        ("x*", "-", "/axxb", None),  # "-/-a-b-" is no path
        ("/x*", "/-", "/xxb/x", "/-b/-"),
        ("[0-9]?", "", "/a1b2", "/ab"),
        ("/(a)?b", r"/<\1>", "/b/ab", "/<>/<a>"),
        ("a", r"\\1", "/a", None),  # a backslash, which is a slash to some
        ("^/static", "/files/", "/static../secret", None),  # "/files/../secret"
        ("^/static", "/files/", "/static%2e./secret", None),
        ("^/static", "/files/", "/static./a", None),
        ("^/static", "/files/", "/static/a", None),  # "//"
        ("^/static", "/files", "/static../secret", "/files../secret"),
        ("x", "", "/a/x../b", None),
        ("x", "", "/a/.x./b", None),
        ("x", "", "/a/..x/b", None),
        ("x", "%2e", "/a/x./b", None),
        ("x", "%2F", "/ax", None),
        ("x", "%5c", "/ax", None),
        ("x", "%41", "/ax", None),
        ("x", "%c3%a4", "/ax", None),
        ("x", "%", "/ax", None),
        ("x", "..;/b", "/a/x", None),
        ("^/+", "/", "/a", "/a"),
        ("%C3%A4", "ae", "/%c3%a4", "/ae"),
        ("[^/]", "", "/a", "/"),
        ("^/a", "", "/a/b", "/b"),
        ("^/a", "", "/a", None),  # nothing is left
        ("^/", "", "/a", None),
        ("/", " ", "/a", None),
        ("a", "b c", "/a", None),
        ("a", "\r\nx: y", "/a", None),
        ("a", "\x7f", "/a", None),
        ("a", "b?c", "/a", None),
        ("a", "b#c", "/a", None),
        ("a", r"\1", "/a", None),  # no such group
        ("a", "x\\", "/a", None),
        ("a", r"\n", "/a", None),
        ("(", "x", "/a", None),
        ("a", "b" * 200 + "/", "/" + "a" * 40, "/" + ("b" * 200 + "/") * 40),
        ("a", "b" * 200 + "/", "/" + "a" * 41, None),  # more than 8 KiB
    ],
)
async def test_rewrites(
    world: World, pattern: str, value: str, asked: str, got: str | None
) -> None:
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return say("x")(call)

    backend = await world.backend(note)
    rule = make_rule(rewrite=rewrite(pattern, value))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    answer = await client.get(asked)
    if got is None:
        assert answer.status == 500
        assert world.lines()[0]["flags"] == "CFG"
        assert calls == []
    else:
        assert answer.status == 200
        assert [call.message.target for call in calls] == [got.encode()]
    world.take_faults()
    assert (await client.get("/", method="OPTIONS")).status in (200, 500)
    world.take_faults()


@pytest.mark.parametrize(
    ("asked", "got"),
    [("/a%2Fx", "/a%2Fb"), ("/a%2F", "/a%2F"), ("/..%2Fx", "/..%2Fb"), ("/x", "/b"), ("/y", None)],
)
async def test_escaped_slashes_stay_where_they_are_kept(
    world: World, asked: str, got: str | None
) -> None:
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return say("x")(call)

    backend = await world.backend(note)
    share = ir.BackendRef(cluster=CLUSTER, rewrite=rewrite("x", "b"))
    if asked == "/y":
        share = ir.BackendRef(cluster=CLUSTER, rewrite=rewrite("y", "%2F"))
    listener = make_listener(escaped_slashes="KeepUnchanged")
    fleet = make_fleet(listener, make_rule(share), make_cluster(backend.port))
    client = await world.client_of(fleet)
    answer = await client.get(asked)
    assert [call.message.target for call in calls] == ([got.encode()] if got else [])
    assert answer.status == (200 if got else 500)


async def test_it_sees_the_path_that_was_matched(world: World) -> None:
    calls: list[Call] = []

    def note(call: Call) -> bytes:
        calls.append(call)
        return say("x")(call)

    backend = await world.backend(note)
    share = ir.BackendRef(cluster=CLUSTER, rewrite=rewrite("^/a/", "/b/"))
    client = await world.client_of(make_fleet(make_rule(share), make_cluster(backend.port)))
    assert (await client.get("/x/../%61/./c")).status == 200
    assert calls[0].message.target == b"/b/c"
