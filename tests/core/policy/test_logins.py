"""Logins in the engine: which requests a session or a token admits, and what backends get of both."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.client import make_request
from core.conftest import check
from core.policy.authenticators import Proving, prove
from core.policy.test_tokens import bearer, provider, token, tokens
from core.world import World
from edgefast import ir
from edgefast.auth.oidc.login_client import LoginClient, TokenCall
from edgefast.auth.oidc.login_session import LoginSession, seal_session
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.core.policy.login_services import LoginServices
from origin.message import Message
from tests.auth.oidc.ring import Ring, chance, oidc

OIDC = "security/ns/p#oidc"
RING = Ring()


class Busy:
    """A provider for which no place is left."""

    def ask(
        self,
        unit: str,
        scope: bytes,
        client: bytes,
        call: TokenCall,
        callback: Callable[[str, TokenResponse | None], object],
    ) -> int:
        return 0

    def cancel(self, number: int) -> None:
        raise AssertionError("nothing waits")


@pytest.fixture
def world() -> Iterator[World]:
    yield from check(World(login_services=LoginServices(RING, Busy())))


def logins(**more: Any) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=OIDC, oidc=oidc(**more))


def session(seed: int = 1, **more: Any) -> str:
    """Return the cookie of a browser that logged in."""
    client = LoginClient(oidc(**more), RING, chance(seed).randbytes)
    parts = ({"alg": "ES256"}, {"iss": client.issuer, "sub": "jane"})
    text = b".".join(urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in parts)
    now = time.time()
    made = LoginSession(text.decode() + ".AAAA", expires=now + 300, ends=now + 600)
    ((name, value),) = seal_session(client._cipher, client.session_name, made) or ()
    return f"{name}={value}"


async def ask(route: Proving, *headers: tuple[str, str], path: str = "/") -> int:
    client = await route.client()
    return (await client.ask(make_request(path, headers=headers))).status


async def test_a_session_admits_and_its_cookie_goes_no_further(world: World) -> None:
    route = await prove(world, logins(claim_headers=(("x-sub", "sub"),)))
    cookie = session()
    for _ in range(2):
        assert await ask(route, ("cookie", f"a=b; {cookie}; c=d"), ("x-sub", "root")) == 200
        assert route.seen[-1].values(b"cookie") == [b"a=b; c=d"]
        assert route.seen[-1].values(b"x-sub") == [b"jane"]
    assert await ask(route) == 401
    assert await ask(route, ("cookie", session(client_id="other"))) == 401


@pytest.mark.parametrize("end", ["\xff", "\xe4" * 20, "", "g" * 20, "0" * 19, "0" * 21, "A" * 20])
async def test_a_name_that_no_login_has_ends_no_connection(world: World, end: str) -> None:
    route = await prove(world, logins(claim_headers=(("x-sub", "sub"),)))
    name = LoginClient(oidc(), RING, chance().randbytes).state_name
    client = await route.client()
    for cookie, status in ((f"{name}-{end}=1", 401), (f"{name}-{end}=1; {session()}", 200)):
        answer = await client.ask(make_request(headers=[("cookie", cookie)]))
        assert answer.status == status, "on the same connection"
    assert route.seen[-1].values(b"cookie") == [f"{name}-{end}=1".encode("latin-1")]
    assert world.lines()[0]["policy_rule"] == "missing"


async def test_many_cookies_of_logins_are_not_read(world: World) -> None:
    route = await prove(world, logins())
    name = LoginClient(oidc(), RING, chance().randbytes).state_name
    many = "; ".join(f"{name}-{at:020x}=1" for at in range(400))
    client = await route.client()
    answer = await client.ask(make_request("/logout", headers=[("cookie", many)]))
    removed = [one for key, one in answer.headers if key == "set-cookie"]
    assert answer.status == 302 and len(removed) == 32
    assert await ask(route, ("cookie", f"{many}; {session()}")) == 200, "they do not hide a session"


PASSES: dict[str, Any] = {"pass_through": True, "forward_access_token": True}


@pytest.mark.parametrize("setting", [{}, {"optional": True}, {"fail_open": True}])
async def test_only_a_verified_token_is_in_place_of_a_session(
    world: World, setting: dict[str, bool]
) -> None:
    places = ir.CredentialExtractors(
        headers=(("authorization", "Bearer "), ("x-token", "")), cookies=("t",)
    )
    route = await prove(world, logins(**PASSES), tokens(provider(places=places), **setting))
    stale = f"{session().partition('=')[0]}=1AAAA"
    for headers in (
        bearer("x"),
        bearer(token(number=1)),
        [("x-token", "x")],
        [("cookie", f"t=x; {stale}")],
        [("cookie", f"t={token(number=1)}; {session(**PASSES)}")],
        [("cookie", stale)],
        [],
    ):
        assert await ask(route, *headers) == 401, headers
    assert route.seen == []
    good = token()
    assert await ask(route, ("cookie", f"t={good}; {stale}")) == 200
    assert await ask(route, ("cookie", f"t={good}; {session(**PASSES)}; a=b")) == 200
    assert route.seen[-1].values(b"cookie") == [f"t={good}; a=b".encode()]
    assert await ask(route, ("cookie", session(**PASSES))) == 200


async def test_the_backend_gets_no_authorization_but_that_of_the_verified_token(
    world: World,
) -> None:
    places = ir.CredentialExtractors(
        headers=(("authorization", "Bearer "), ("x-token", "")), params=("access_token",)
    )
    route = await prove(world, logins(**PASSES), tokens(provider(places=places)))
    good = token()
    basic = ("authorization", "Basic YWRtaW46YWRtaW4=")
    assert await ask(route, basic, path=f"/?access_token={good}") == 200
    assert await ask(route, basic, ("x-token", good)) == 200
    assert [one.values(b"authorization") for one in route.seen] == [[], []]
    assert await ask(route, basic, *bearer(good)) == 200
    assert await ask(route, ("Authorization", f"bearer  {good}")) == 200
    for one in route.seen[2:]:
        assert one.values(b"authorization") == [f"Bearer {good}".encode()]


@pytest.mark.parametrize("claims", [(), (("x-sub", "sub"), ("x-iss", "iss"))])
async def test_a_known_session_is_as_one_that_was_opened(
    world: World, claims: tuple[tuple[str, str], ...]
) -> None:
    route = await prove(world, logins(claim_headers=claims))
    base = LoginClient(oidc(), RING, chance().randbytes)
    state = f"{base.state_name}-{'0a' * 10}=1"
    own = base.session_name
    requests: tuple[tuple[list[bytes], tuple[str, ...]], ...] = (
        ([], ("{0}",)),
        ([b"a=b; c=d"], (" a=b ;{0}; ;c=d;",)),
        ([b"a=b; c=d"], ("a=b", "{0}; c=d")),
        ([b"a=b"], ("{0}", "a=b", f"{state};{own}-1=x")),
        ([b"a; =x; b= y"], ("a; =x; {0}; b= y",)),
        ([b"; ".join([b"a"] * 4000)], (";".join(["a"] * 4000), "{0}")),  # it becomes longer
        ([f"a=\xff; x{own}=1".encode("latin-1")], (f"a=\xff; x{own}=1", "{0}")),
    )  # fmt: skip
    for seed, (expected, lines) in enumerate(requests):
        made = session(seed, claim_headers=claims)
        seen = []
        for _ in range(3):  # opened once, then known
            headers = [("cookie", line.replace("{0}", made)) for line in lines]
            more = [("x-sub", "root"), ("x-other", "1")]
            assert await ask(route, *headers, *more, path="/a%20b?c=d") == 200, lines
            seen.append(route.seen[-1])
        assert [one.values(b"cookie") for one in seen] == [expected] * 3
        for one in seen:
            assert (one.target, rest_of(one)) == (b"/a%20b?c=d", rest_of(seen[0]))
        assert seen[0].values(b"x-sub") == ([b"jane"] if claims else [b"root"])


async def test_a_preflight_needs_no_session_and_other_options_do(world: World) -> None:
    cors = ir.Cors(allow_origins=("https://app.test",), allow_methods=("GET",))
    preflight = (("origin", "https://app.test"), ("access-control-request-method", "GET"))
    for given, status in ((cors, 204), (None, 401)):
        route = await prove(world, logins(), rule={"cors": given})
        client = await route.client()
        answer = await client.ask(make_request(method="OPTIONS", headers=preflight))
        assert (answer.status, answer.value("location")) == (status, None)
        answer = await client.ask(make_request(method="OPTIONS"))
        assert (answer.status, route.seen) == (401, [])


async def test_a_session_gets_a_cookie_of_a_new_key_once(world: World) -> None:
    route = await prove(world, logins())
    cookie = session(seed=9)
    client = await route.client()
    RING.rotate()
    answer = await client.ask(make_request(headers=[("cookie", cookie)]))
    (fresh,) = [value for name, value in answer.headers if name == "set-cookie"]
    assert answer.status == 200 and answer.value("cache-control") == "private"
    for one, count in ((fresh.partition(";")[0], 0), (cookie, 1)):
        answer = await client.ask(make_request(headers=[("cookie", one)]))
        assert answer.status == 200, "also the previous key"
        assert len([name for name, _ in answer.headers if name == "set-cookie"]) == count
    RING.rotate()
    RING.rotate()
    assert await ask(route, ("cookie", cookie)) == 401
    assert route.seen[-1].values(b"cookie") == []


def rest_of(message: Message) -> list[tuple[bytes, bytes]]:
    """Return the header lines that no request has of its own."""
    return [pair for pair in message.headers if pair[0] != b"x-request-id"]
