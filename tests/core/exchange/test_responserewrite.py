"""Location, Refresh and Set-Cookie of responses, rewritten (HTTPRouteFilter responseRewrite), and the bounds of that.

In: responses of a backend. Out: what a client gets, over HTTP/1.1. The order of cookies never changes.
"""

from __future__ import annotations

import pytest

from core.backend import make_response
from core.client import Response, make_request
from core.fleets import CLUSTER, make_cluster, make_fleet, make_rule
from core.world import World
from edgefast import ir

#: consts.pxi
COOKIE_ATTRIBUTES = 32
REWRITE_GROWTH = 65536


def prefix(pattern: str, value: str) -> ir.TextRewrite:
    return ir.TextRewrite(kind="prefix", pattern=pattern, value=value)


def exact(pattern: str, value: str) -> ir.TextRewrite:
    return ir.TextRewrite(kind="exact", pattern=pattern, value=value)


def regex(pattern: str, value: str) -> ir.TextRewrite:
    return ir.TextRewrite(kind="regex", pattern=pattern, value=value)


async def ask(
    world: World,
    rewrite: ir.ResponseRewrite,
    *headers: tuple[str, str],
    ops: ir.HeaderOps | None = None,
) -> Response:
    """The response that a client gets of a backend's with these headers."""
    backend = await world.backend(lambda call: make_response(b"body", 302, headers))
    rule = make_rule(CLUSTER, response_rewrite=rewrite, response_headers=ops)
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    return await client.ask(make_request("/a", host="Shop.test:8080"))


def values(response: Response, name: str) -> list[str]:
    return [value for key, value in response.headers if key == name]


TO_APP = prefix("http://app:8080/", "/app/")


@pytest.mark.parametrize(
    ("rewrites", "given", "got"),
    [
        ((TO_APP,), "http://app:8080/x?a=http://app:8080/", "/app/x?a=http://app:8080/"),
        ((TO_APP,), "http://app:8080", "http://app:8080"),
        ((TO_APP,), "HTTP://app:8080/x", "HTTP://app:8080/x"),
        ((TO_APP,), "/x", "/x"),
        ((prefix("/", "{scheme}://{host}/app/"),), "/x", "http://shop.test/app/x"),
        ((prefix("/a/", "/1/"), prefix("/", "/2/"), prefix("/2", "/3")), "/b", "/2/b"),
        ((prefix("/a/", "/1/"), prefix("/", "/2/")), "/a/b", "/1/b"),
        (
            (regex("^http://([a-z]+):8080/", r"https://\1.{host}/"),),
            "http://app:8080/x",
            "https://app.shop.test/x",
        ),
        ((regex("a", "bb"),), "/a/a", "/bb/bb"),
        ((regex("a", "a"), prefix("/", "/no/")), "/a", "/a"),
        ((regex("none", "x"), prefix("/", "/yes/")), "/a", "/yes/a"),
        ((regex("(?s:^.*?)(?:b)(?s:.*)$", "/whole"),), "/a/b/c", "/whole"),
        ((prefix("/", ""),), "/", ""),
    ],
)
async def test_locations(
    world: World, rewrites: tuple[ir.TextRewrite, ...], given: str, got: str
) -> None:
    response = await ask(world, ir.ResponseRewrite(locations=rewrites), ("location", given))
    assert response.value("location") == got


@pytest.mark.parametrize(
    ("given", "got"),
    [
        ("5; url=http://app:8080/x", "5; url=/app/x"),
        ("5; URL=http://app:8080/x", "5; URL=/app/x"),
        ("5; url='http://app:8080/x'", "5; url='http://app:8080/x'"),
        ("http://app:8080/x", "http://app:8080/x"),
        ("5", "5"),
        ("5; url=", "5; url="),
    ],
)
async def test_refresh(world: World, given: str, got: str) -> None:
    response = await ask(world, ir.ResponseRewrite(locations=(TO_APP,)), ("Refresh", given))
    assert response.value("refresh") == got


@pytest.mark.parametrize(
    ("domains", "paths", "given", "got"),
    [
        ((exact("app", "shop.test"),), (), "a=b; Domain=app; Path=/", "a=b; Domain=shop.test; Path=/"),
        ((exact("app", "shop.test"),), (), "a=b;domain=.APP", "a=b;domain=.shop.test"),
        ((exact("app", "shop.test"),), (), "a=b; Domain=sub.app", "a=b; Domain=sub.app"),
        ((exact("app", ""),), (), "a=b; Domain=.app; Secure", "a=b; Secure"),
        ((exact("app", "shop.test"),), (), "Domain=app; Domain = app", "Domain=app; Domain =shop.test"),
        ((exact("app", "shop.test"),), (), "a=Domain=app", "a=Domain=app"),
        ((exact("app", "shop.test"),), (), "a=b; Domain; Path=/", "a=b; Domain; Path=/"),
        ((regex(r"(?i)^\.?app\.(.*)$", r"\1.test"),), (), "a=b; Domain=APP.x", "a=b; Domain=x.test"),
        ((), (prefix("/", "/app/"),), "a=b; PATH=/x; HttpOnly", "a=b; PATH=/app/x; HttpOnly"),
        ((), (prefix("/", "/app/"),), "a=b; Path=x", "a=b; Path=x"),
        ((), (prefix("/x/", "/y/"), prefix("/", "/z/")), "a=b; Path=/x/1; Path=/w", "a=b; Path=/y/1; Path=/z/w"),
        ((exact("app", "shop.test"),), (prefix("/", "/app/"),), "a=b; Domain=app; Path=/", "a=b; Domain=shop.test; Path=/app/"),
        ((exact("app", "shop.test"),), (), "=; Domain=app", "=; Domain=shop.test"),
    ],
)  # fmt: skip
async def test_cookies(
    world: World,
    domains: tuple[ir.TextRewrite, ...],
    paths: tuple[ir.TextRewrite, ...],
    given: str,
    got: str,
) -> None:
    rewrite = ir.ResponseRewrite(cookie_domains=domains, cookie_paths=paths)
    response = await ask(world, rewrite, ("set-cookie", given))
    assert values(response, "set-cookie") == [got]


async def test_order_of_cookies_stays(world: World) -> None:
    rewrite = ir.ResponseRewrite(cookie_paths=(prefix("/", "/app/"),))
    given = ["a=1", "a=2; Path=/", "a=3", "b=4; Path=/b"]
    response = await ask(world, rewrite, *(("Set-Cookie", one) for one in given))
    expected = ["a=1", "a=2; Path=/app/", "a=3", "b=4; Path=/app/b"]
    assert values(response, "set-cookie") == expected


async def test_filters_of_the_rule_come_first(world: World) -> None:
    """A header that a ResponseHeaderModifier sets or removes is not the backend's any more."""
    rewrite = ir.ResponseRewrite(
        locations=(prefix("/", "/app/"),), cookie_paths=(prefix("/", "/app/"),)
    )
    ops = ir.HeaderOps(set=(("location", "/own"),), remove=("set-cookie",))
    response = await ask(world, rewrite, ("location", "/x"), ("set-cookie", "a; Path=/"), ops=ops)
    assert response.value("location") == "/own"
    assert values(response, "set-cookie") == []


async def test_own_answers_stay(world: World) -> None:
    rewrite = ir.ResponseRewrite(locations=(prefix("http", "ftp"),))
    rule = make_rule(CLUSTER, response_rewrite=rewrite, redirect=ir.Redirect(hostname="b.test"))
    client = await world.client_of(make_fleet(rule, make_cluster(1)))
    response = await client.ask(make_request("/"))
    assert response.value("location") == "http://b.test:8080/"


async def test_attributes_are_bounded(world: World) -> None:
    rewrite = ir.ResponseRewrite(cookie_paths=(prefix("/", "/app/"),))
    most = "a=b" + "; Path=/" * COOKIE_ATTRIBUTES
    response = await ask(world, rewrite, ("set-cookie", most))
    assert response.value("set-cookie") == "a=b" + "; Path=/app/" * COOKIE_ATTRIBUTES


async def test_too_many_attributes(world: World) -> None:
    rewrite = ir.ResponseRewrite(cookie_paths=(prefix("/", "/app/"),))
    more = "a=b" + "; Path=/" * (COOKIE_ATTRIBUTES + 1)
    response = await ask(world, rewrite, ("set-cookie", more))
    assert response.status == 502
    assert values(response, "set-cookie") == []


async def test_untouched_cookies_are_not_counted(world: World) -> None:
    """Without rewrites of cookies they pass, whatever they are."""
    rewrite = ir.ResponseRewrite(locations=(TO_APP,))
    more = "a=b" + "; Path=/" * (COOKIE_ATTRIBUTES + 1)
    assert (await ask(world, rewrite, ("set-cookie", more))).value("set-cookie") == more


@pytest.mark.parametrize(
    "rewrite",
    [
        ir.ResponseRewrite(cookie_paths=(prefix("/", "/" + "x" * 1023),)),
        ir.ResponseRewrite(cookie_paths=(regex("(.*)", r"\1" * 500),)),
    ],
)
async def test_growth_is_bounded(world: World, rewrite: ir.ResponseRewrite) -> None:
    """32 Paths of 1 KiB in each of a few cookies, and groups that repeat what the backend sent."""
    cookie = "a=b" + "; Path=/" * COOKIE_ATTRIBUTES + "/" + "y" * 200
    response = await ask(world, rewrite, *[("set-cookie", cookie)] * 3)
    assert response.status == 502
    sizes = sum(len(name) + len(value) for name, value in response.headers)
    assert sizes < 1024 < REWRITE_GROWTH


async def test_reply_of_a_later_try_is_rewritten(world: World) -> None:
    """A response that is retried leaves nothing behind."""
    replies = [
        make_response(b"", 503, (("location", "/first"), ("set-cookie", "a; Path=/"))),
        make_response(b"", 302, (("location", "/second"),)),
    ]
    backend = await world.backend(lambda call: replies.pop(0))
    rule = make_rule(
        CLUSTER,
        response_rewrite=ir.ResponseRewrite(
            locations=(prefix("/", "/app/"),), cookie_paths=(prefix("/", "/app/"),)
        ),
        retry=ir.Retry(codes=(503,), attempts=1),
    )
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    response = await client.ask(make_request("/"))
    assert response.value("location") == "/app/second"
    assert values(response, "set-cookie") == []
