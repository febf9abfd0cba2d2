"""Matches on cookies: a header predicate called "cookie:NAME", with a value or an expression, in HTTP/1 lines and HTTP/2 crumbs."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import LISTENER, make_fleet
from core.world import World
from edgefast import ir


def answer(status: int, index: int) -> ir.Rule:
    return ir.Rule(route="ns/web", index=index, direct=ir.DirectResponse(status=status))


def host(*matches: tuple[ir.ValueMatch, ...]) -> ir.VirtualHost:
    """The first match answers 200, the next one 201, ..."""
    return ir.VirtualHost(
        listener=LISTENER,
        hostname="*",
        rules=tuple(answer(200 + i, i) for i in range(len(matches))),
        entries=tuple(
            ir.Entry(match=ir.Match(kind="prefix", path="", headers=one), rule=i)
            for i, one in enumerate(matches)
        ),
    )


EXACT = ir.ValueMatch("cookie:sid", "one")
REGEX = ir.ValueMatch("cookie:sid", "t[a-z]+", regex=True)
OTHER = ir.ValueMatch("cookie:lang", "de|fr", regex=True)


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ([], 404),
        (["sid=one"], 200),
        (["lang=de; sid=one"], 200),
        (["sid=zero", "sid=one"], 200),
        (["sid=two"], 202),
        (["sid=zero; sid=two"], 202),
        (["sid=TWO"], 404),
        (["sid=tw0; sid=two0"], 404),
        (["sid=two; lang=fr"], 201),
        (["sid=1; lang=fr", "lang=it; sid=three"], 201),
        (["lang=fr"], 404),
        (["SID=one"], 404),
        (["xsid=one; sid"], 404),
        (["sid=one"] * 40, 200),
    ],
)
async def test_cookies(world: World, lines: list[str], want: int) -> None:
    client = await world.client_of(make_fleet(host((EXACT,), (REGEX, OTHER), (REGEX,))))
    headers = [("Cookie", line) for line in lines]
    assert (await client.ask(make_request(headers=headers))).status == want
