r"""Locations from parts of the request: variables, groups, and values that would lead a client elsewhere."""

from __future__ import annotations

import pytest

from core.client import make_request
from core.fleets import make_fleet, make_host, make_listener, make_rule
from core.world import World
from edgefast import ir


async def ask(
    world: World, redirect: ir.Redirect, target: str, host: str = "A.test:81"
) -> tuple[int, str | None]:
    rule = make_rule(redirect=redirect)
    client = await world.client_of(make_fleet(make_listener(), make_host(rule)))
    answer = await client.ask(make_request(target, host=host))
    return answer.status, answer.value("location")


@pytest.mark.parametrize(
    ("template", "pattern", "target", "location"),
    [
        ("https://else.test{target}", "", "/a%20b?c=d", "https://else.test/a%20b?c=d"),
        ("{scheme}://{host}/x", "", "/", "http://a.test/x"),
        ("https://{authority}{path}", "", "/a?b", "https://A.test:81/a"),
        (
            "https://else.test/?to={escapedTarget}",
            "",
            "/a?b=c/d",
            "https://else.test/?to=%2Fa%3Fb%3Dc%2Fd",
        ),
        (r"https://else.test/\2/\1\3", "^/(a)/([^/]*)(x)?", "/a/b/c", "https://else.test/b/a"),
        ("/new?{query}", "", "/a?b=c", "/new?b=c"),
    ],
)
async def test_parts(world: World, template: str, pattern: str, target: str, location: str) -> None:
    redirect = ir.Redirect(status=301, template=template, pattern=pattern, drop_query=True)
    assert await ask(world, redirect, target) == (301, location)


@pytest.mark.parametrize(
    ("template", "mark"), [("https://b.test/x", "?"), ("https://b.test/?x", "&")]
)
async def test_the_query_follows(world: World, template: str, mark: str) -> None:
    redirect = ir.Redirect(status=302, template=template)
    assert await ask(world, redirect, "/a?b=c") == (302, f"{template}{mark}b=c")


@pytest.mark.parametrize(
    ("template", "pattern", "target"),
    [
        (r"/\1", "^/out/(.*)", "/other"),  # no match
        (r"/\1", "^/[a-z]*(.*)", "/out/evil.test"),  # "//evil.test" is another host
        (r"/\1", "^/out(.*)", "/out/"),
        (r"https://b.test/\1\1", "^/(.*)$", "/" + "a" * 5000),
    ],
)
async def test_no_location(world: World, template: str, pattern: str, target: str) -> None:
    redirect = ir.Redirect(template=template, pattern=pattern)
    assert await ask(world, redirect, target) == (500, None)
