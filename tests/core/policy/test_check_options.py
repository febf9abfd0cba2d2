"""Options of an HTTP authorization check: its method, Host and headers, statuses that deny, headers for the client, the sign-in page."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.backend import Answer, Call, make_response
from core.client import make_request
from core.fleets import make_cluster
from core.policy.authenticators import basic, make_passwords, sha
from core.policy.authorized import AUTH, Guarded, fleet_of, guarded, make_auth, of_a_rule
from core.world import World

SIGN_IN = "https://in.test/start?rd={scheme}://{authority}{escapedTarget}"
TEMPLATE = "{scheme}://{authority}/in?h={host}&t={escapedTarget}&a={clientAddress}"
CHALLENGE = ("www-authenticate", "Bearer")
COOKIE = ("Set-Cookie", "s=1")


def says(status: int, *headers: tuple[str, str], body: bytes = b"") -> Answer:
    data = make_response(body, status, headers)
    return lambda call: data


async def check(route: Guarded, path: str = "/", **settings: Any) -> Call:
    """The check of one request."""
    calls: list[Call] = []

    def answer(call: Call) -> bytes:
        calls.append(call)
        return make_response(b"")

    route.service.answer = answer
    assert (await route.ask(path, **settings)).status == 200
    return calls[-1]


async def test_method_and_host(world: World) -> None:
    route = await guarded(world, method="GET", host="auth.test")
    message = (await check(route, method="POST", body=b"12345")).message
    assert (message.method, message.body) == (b"GET", b"")
    assert message.value(b"host") == b"auth.test"
    assert message.value(b"content-length") is None
    assert route.seen[-1].message.method == b"POST" and route.seen[-1].message.body == b"12345"


async def test_a_check_with_a_method_of_bodies_has_no_body(world: World) -> None:
    message = (await check(await guarded(world, method="POST"))).message
    assert (message.method, message.value(b"content-length")) == (b"POST", b"0")


async def test_all_headers(world: World) -> None:
    route = await guarded(world, all_headers=True)
    sent = [
        ("X-Any", "1"),
        ("cookie", "a=b"),
        ("authorization", "Basic x"),
        ("X-Edge-Internal", "forged"),
        ("X-Forwarded-Uri", "forged"),
        ("Connection", "x-gone"),
        ("X-Gone", "1"),
    ]
    message = (await check(route, "/a", headers=sent)).message
    assert message.value(b"x-any") == b"1"
    assert message.value(b"cookie") == b"a=b"
    assert message.value(b"authorization") == b"Basic x"
    assert message.value(b"x-edge-internal") == b"true"
    assert message.value(b"x-forwarded-uri") == b"/a"
    assert message.value(b"x-gone") is None


async def test_headers_of_the_original_request(world: World) -> None:
    route = await guarded(world, all_headers=True, original=True)
    names = ("url", "method", "uri")
    forged = [(f"X-Original-{one}", "forged") for one in names]
    sent = [*forged, ("X-Real-IP", "forged"), ("X-Auth-Request-Redirect", "forged")]
    message = (await check(route, "/a//%62?c=d", headers=sent)).message
    assert message.value(b"x-original-url") == b"http://test/a//%62?c=d"
    assert message.value(b"x-original-method") == b"GET"
    assert message.value(b"x-original-uri") == b"/a//%62?c=d"
    assert message.value(b"x-auth-request-redirect") == b"/a//%62?c=d"
    assert message.value(b"x-real-ip") == b"127.0.0.1"
    assert message.value(b"x-scheme") == b"http"
    assert message.value(b"x-forwarded-uri") is None
    assert message.value(b"x-forwarded-for") == b"127.0.0.1"


async def test_named_headers_of_the_original_request_are_never_those_of_the_client(
    world: World,
) -> None:
    names = ("x-original-method", "x_original_uri", "x-scheme", "x-auth-request-redirect")
    route = await guarded(world, original=True, headers=(*names, "cookie"))
    sent = [*((one, "forged") for one in names if "_" not in one), ("cookie", "a=b")]
    message = (await check(route, "/a", headers=sent)).message
    assert b"forged" not in [value for _, value in message.headers]
    assert message.value(b"x-original-method") == b"GET"
    assert message.value(b"x-scheme") == b"http"
    assert message.value(b"cookie") == b"a=b"


async def test_a_refusal_has_one_location(world: World) -> None:
    route = await guarded(world, says(401, ("Location", "/other")), sign_in=SIGN_IN)
    answer = await route.ask()
    places = [value for name, value in answer.headers if name.lower() == "location"]
    assert places == ["https://in.test/start?rd=http://test%2F"]


async def test_fixed_headers_replace_those_of_the_client(world: World) -> None:
    fixed = (("authorization", "Bearer service"), ("x-auth-request-redirect", "https://back.test/"))
    for more in ({"all_headers": True}, {"headers": ("x-auth-request-redirect",)}):
        route = await guarded(world, original=True, fixed=fixed, **more)
        sent = [("Authorization", "mine"), ("X-Auth-Request-Redirect", "mine")]
        message = (await check(route, headers=sent)).message
        assert message.value(b"authorization") == b"Bearer service"
        assert message.value(b"x-auth-request-redirect") == b"https://back.test/"


@pytest.mark.parametrize(
    ("said", "status"),
    [(200, 200), (204, 200), (401, 401), (403, 403), (302, 500), (404, 500), (500, 500)],
)
async def test_only_some_statuses_deny(world: World, said: int, status: int) -> None:
    settings = {
        "statuses": tuple(range(200, 300)),
        "denied": (401, 403),
        "to_denied": ("www-authenticate",),
        "status_on_error": 500,
    }
    headers = (CHALLENGE, COOKIE, ("X-Other", "1"))
    route = await guarded(
        world, says(said, *headers, body=b"" if said == 204 else b"x"), **settings
    )
    answer = await route.ask()
    assert answer.status == status
    assert len(route.seen) == (status == 200)
    if status in (401, 403):
        assert answer.value("www-authenticate") == "Bearer"
        assert answer.value("set-cookie") is None and answer.value("x-other") is None
        assert answer.body == b""


async def test_a_status_that_does_not_deny_is_a_failure_that_may_open(world: World) -> None:
    route = await guarded(world, says(302), denied=(401,), fail_open=True)
    assert (await route.ask()).status == 200


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("status", [200, 201, 301, 404, 500])
async def test_headers_for_the_client(world: World, always: bool, status: int) -> None:
    route = await guarded(
        world, says(200, COOKIE, COOKIE), to_client=("set-cookie",), to_client_always=always
    )
    kept = route.backend.answer
    assert kept is not None
    route.backend.answer = lambda call: make_response(b"", status, (("Set-Cookie", "own=1"),))
    answer = await route.ask()
    cookies = [value for name, value in answer.headers if name.lower() == "set-cookie"]
    expected = ["own=1", *(["s=1", "s=1"] if always or status < 400 else [])]
    assert (answer.status, sorted(cookies)) == (status, sorted(expected))


@of_a_rule
async def test_headers_for_the_client_on_denials(world: World) -> None:
    for always in (False, True):
        settings = {"to_client": ("set-cookie",), "to_denied": (), "to_client_always": always}
        route = await guarded(world, says(403, COOKIE), **settings)
        assert (await route.ask()).value("set-cookie") == ("s=1" if always else None)


async def test_a_cookie_is_for_one_client(world: World) -> None:
    """An answer with Set-Cookie is never cached."""
    from edgefast.ir.policy import AuthCache

    route = await guarded(
        world, says(200, COOKIE), to_client=("set-cookie",), cache=AuthCache(ttl=60_000)
    )
    for _ in range(2):
        assert (await route.ask()).value("set-cookie") == "s=1"
    assert route.service.count == 2


async def test_401_is_a_redirect_to_the_sign_in_page(world: World) -> None:
    route = await guarded(
        world,
        says(401, CHALLENGE, COOKIE, ("X-Other", "1"), body=b"no"),
        sign_in=SIGN_IN,
        to_denied=("www-authenticate",),
        to_client=("set-cookie",),
        to_client_always=False,
    )
    answer = await route.ask("/a//b?c=d%2F&e=@$,|`~")
    assert (answer.status, answer.body) == (302, b"")
    location = "https://in.test/start?rd=http://test%2Fa%2F%2Fb%3Fc%3Dd%252F%26e%3D@$,|`~"
    assert answer.value("location") == location
    assert answer.value("www-authenticate") == "Bearer"
    assert answer.value("set-cookie") == "s=1"
    assert answer.value("x-other") is None
    route.service.answer = says(403)
    assert (await route.ask()).status == 403


async def test_variables_of_the_address(world: World) -> None:
    route = await guarded(world, says(401), sign_in=TEMPLATE)
    answer = await route.ask("/x", host="TEST:81")
    assert answer.value("location") == "http://TEST:81/in?h=test&t=%2Fx&a=127.0.0.1"


@of_a_rule
async def test_a_wrong_password_goes_to_the_sign_in_page(world: World) -> None:
    """Without a call of the service."""
    service, backend = await world.backend(says(200)), await world.backend(says(200))
    users = make_passwords(user=sha("good"))
    auth = make_cluster(service.port, name=AUTH)
    spec = make_auth(sign_in=SIGN_IN)
    fleet = fleet_of(spec, backend.port, auth, rule={"policies": (users.name,)})
    port = await world.serve(msgspec.structs.replace(fleet, policies=(users,)))
    client = await world.client(port)
    answer = await client.ask(make_request(headers=[basic("user", "bad")]))
    assert answer.status == 302
    assert answer.value("location") == "https://in.test/start?rd=http://test%2F"
    assert (answer.value("www-authenticate") or "").startswith("Basic")
    assert service.count == 0
    assert (await client.ask(make_request(headers=[basic("user", "good")]))).status == 200
