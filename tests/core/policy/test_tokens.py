"""Signed tokens: who gets in by them, what the backend, rules and logs get of them, what nobody can say."""

from __future__ import annotations

import time
from typing import Any

import pytest

from core.client import make_request
from core.fleets import encode, make_cluster
from core.policy.authenticators import prove
from core.policy.authorized import AUTH, make_auth
from core.traces import spans_since
from core.world import World
from edgefast import ir
from edgefast.table.shards import make_resource
from tests.auth.jwt import issuer

JWT = "security/ns/p#jwt"
RULES = "security/ns/p#authorization"
CELLS = "security/ns/p\tjwt"
ISSUER = "https://issuer.test"


def provider(**settings: Any) -> ir.JwtProvider:
    """Of the issuer below, whose keys are one of each of two algorithms."""
    named = {"name": "a", "issuer": ISSUER, "audiences": ("web",), **settings}
    return ir.JwtProvider(keys=issuer.key_set(issuer.jwk("ES256"), issuer.jwk("RS256")), **named)


def tokens(*providers: ir.JwtProvider, **settings: Any) -> ir.PolicyUnit:
    """A unit that wants one."""
    return ir.PolicyUnit(name=JWT, jwt=ir.Jwt(providers=providers or (provider(),), **settings))


def rules(*of: ir.AccessRule, allow: bool = False) -> ir.PolicyUnit:
    """Rules that may ask for one."""
    return ir.PolicyUnit(name=RULES, authorization=ir.Authorization(rules=of, allow=allow))


def claim(
    path: str, *values: str, array: bool = False, who: str = "a", **rule: Any
) -> ir.AccessRule:
    """A rule about a claim."""
    asked = ir.AccessClaim(name=path, values=values, array=array)
    return ir.AccessRule(token=ir.AccessToken(provider=who, claims=(asked,)), **rule)


def token(alg: str = "ES256", number: int = 0, **claims: Any) -> str:
    """A token of the issuer, good now."""
    now = int(time.time())
    said = {"iss": ISSUER, "aud": "web", "sub": "ann", "iat": now, "exp": now + 86_400, **claims}
    return issuer.token(alg, number, **said).decode()


def bearer(text: str) -> list[tuple[str, str]]:
    """The header line."""
    return [("authorization", f"Bearer {text}")]


async def test_who_has_a_good_one_is_known(world: World) -> None:
    told = (("x-sub", "sub"), ("x-roles", "realm.roles"))
    route = await prove(world, tokens(provider(claim_headers=told)))
    client = await route.client()
    good = token(realm={"roles": ["a", "b"]})
    for _ in range(3):
        sent = [*bearer(good), ("x-sub", "root"), ("X-Roles", "root")]
        assert (await client.ask(make_request(headers=sent))).body == b"behind"
        assert route.seen[-1].values(b"x-sub") == [b"ann"]
        assert route.seen[-1].values(b"x-roles") == [b"WyJhIiwiYiJd"]
        assert route.seen[-1].value(b"authorization") == f"Bearer {good}".encode()
    assert (await client.ask(make_request(headers=bearer(token("RS256"))))).status == 200
    assert world.counters.policy(CELLS) == {"allowed": 4}
    assert [one["user"] for one in world.lines()] == ["ann"] * 4
    assert good not in "".join(world.texts())


@pytest.mark.parametrize(
    ("sent", "status", "word"),
    [
        ([], 401, None),
        ([("authorization", "Basic YTph")], 401, None),
        (bearer("abc"), 401, "malformed"),
        (bearer(token()[:-4] + "AAAA"), 401, "signature"),
        (bearer(token(exp=int(time.time()) - 120)), 401, "expired"),
        (bearer(token(iss="https://other.test")), 401, "issuer"),
        (bearer(token("ES384")), 401, "algorithm"),
        (bearer(token(number=1)), 401, "signature"),
        (bearer(token(aud="shop")), 403, "audience"),
        ([*bearer(token()), *bearer(token(sub="eve"))], 401, "malformed"),
    ],
)
async def test_who_has_none(
    world: World, sent: list[tuple[str, str]], status: int, word: str | None
) -> None:
    route = await prove(world, tokens())
    client = await route.client()
    answer = await client.ask(make_request(headers=sent))
    assert (answer.status, answer.body, route.seen) == (status, b"", [])
    challenge = answer.value("www-authenticate")
    if status == 401:
        error = ', error="invalid_token"' if word else ""
        assert challenge == f'Bearer realm="gateway"{error}'
    else:
        assert challenge is None
    (line,) = world.lines()
    told = word or "missing"
    assert (line["flags"], line["policy"], line["policy_rule"]) == ("DENY", JWT, told)
    assert "user" not in line


async def test_places(world: World) -> None:
    places = ir.CredentialExtractors(headers=(("x-token", ""),), cookies=("t",), params=("t",))
    route = await prove(world, tokens(provider(places=places)))
    client = await route.client()
    good = token()
    for path, headers in (
        ("/", [("x-token", good)]),
        ("/", [("cookie", f"t={good}")]),
        (f"/?t={good}", []),
        (f"/?t={good}", [("x-token", good)]),
    ):
        assert (await client.ask(make_request(path, headers=headers))).status == 200
    assert (await client.ask(make_request(headers=bearer(good)))).status == 401
    assert good not in "".join(world.texts())


async def test_no_span_shows_one(world: World) -> None:
    route = await prove(world, tokens(), tracing=ir.Tracing(endpoint="http://127.0.0.1:4318"))
    client = await route.client()
    good = token()
    assert (await client.ask(make_request(f"/a?access_token={good}"))).status == 200
    assert spans_since(world, 0)
    assert good.encode() not in b"".join(world.spans)


async def test_any_provider_will_do(world: World) -> None:
    other = ir.JwtProvider(
        name="b",
        issuer="https://other.test",
        keys=issuer.key_set(issuer.jwk("EdDSA")),
        places=ir.CredentialExtractors(headers=(("x-token", ""),)),
        claim_headers=(("x-other", "sub"),),
    )
    route = await prove(world, tokens(provider(), other))
    client = await route.client()
    theirs = token("EdDSA", iss="https://other.test", sub="bob")
    assert (await client.ask(make_request(headers=[("x-token", theirs)]))).status == 200
    assert route.seen[-1].values(b"x-other") == [b"bob"]
    both = [*bearer("nonsense"), ("x-token", theirs)]
    assert (await client.ask(make_request(headers=both))).status == 200
    assert (await client.ask(make_request(headers=bearer(theirs)))).status == 401
    wrong = [*bearer(token(aud="shop")), ("x-token", "nonsense")]
    assert (await client.ask(make_request(headers=wrong))).status == 403


@pytest.mark.parametrize(("name", "bad"), [("optional", 401), ("fail_open", 200)])
async def test_who_may_come_without(world: World, name: str, bad: int) -> None:
    lenient = {name: True}
    route = await prove(world, tokens(provider(claim_headers=(("x-sub", "sub"),)), **lenient))
    client = await route.client()
    assert (await client.ask(make_request(headers=[("x-sub", "root")]))).status == 200
    assert route.seen[-1].values(b"x-sub") == []
    wrong = [*bearer(token(number=1)), ("x-sub", "root")]
    assert (await client.ask(make_request(headers=wrong))).status == bad
    assert all(one.values(b"x-sub") == [] for one in route.seen)


async def test_rules_about_claims(world: World) -> None:
    route = await prove(
        world,
        rules(
            claim("sub", "eve", allow=False, name="eve"),
            claim("realm.roles", "admin", "root", array=True, allow=True),
            ir.AccessRule(
                allow=True, methods=("GET",), token=ir.AccessToken("a", ("read", "list"))
            ),
        ),
        tokens(),
    )
    client = await route.client()
    cases: list[tuple[dict[str, Any], str, int]] = [
        ({"realm": {"roles": ["x", "admin"]}}, "PUT", 200),
        ({"realm": {"roles": "admin"}}, "PUT", 403),
        ({"realm": {"roles": ["admin"]}, "sub": "eve"}, "PUT", 403),
        ({"scope": "list read more"}, "GET", 200),
        ({"scp": ["list", "read"]}, "GET", 200),
        ({"scope": "list read"}, "PUT", 403),
        ({"scope": "list"}, "GET", 403),
        ({}, "GET", 403),
    ]
    for claims, method, status in cases:
        asked = make_request(headers=bearer(token(**claims)), method=method)
        assert (await client.ask(asked)).status == status, claims
    assert (await client.ask(make_request())).status == 401
    assert [one.get("policy_rule") for one in world.lines()][2] == "eve"
    assert world.counters.policy("security/ns/p\tauthorization") == {"allowed": 3, "denied": 5}


async def test_a_rule_that_denies_holds_where_nobody_looks_for_its_tokens(world: World) -> None:
    route = await prove(world, rules(claim("sub", "eve", who="other", allow=False), allow=True))
    client = await route.client()
    assert (await client.ask(make_request())).status == 403
    unit = rules(claim("sub", "eve", who="a", allow=False), allow=True)
    assert world.send([make_resource("policy", unit.name, encode(unit))], [], "v") == []
    assert (await client.ask(make_request(headers=bearer(token())))).status == 403


async def test_rules_of_one_policy_are_about_its_own_tokens(world: World) -> None:
    def of(unit: str, allow: bool) -> ir.AccessRule:
        asked = (ir.AccessClaim("sub", ("ann",)),)
        return ir.AccessRule(allow=allow, token=ir.AccessToken("a", (), asked, unit))

    route = await prove(world, rules(of("security/ns/q#jwt", True)), tokens(optional=True))
    client = await route.client()
    assert (await client.ask(make_request(headers=bearer(token())))).status == 403
    for unit, status in (
        (rules(of(JWT, True)), 200),
        (rules(of("security/ns/q#jwt", False), allow=True), 403),
        (rules(of(JWT, False), allow=True), 403),
    ):
        assert world.send([make_resource("policy", unit.name, encode(unit))], [], "v") == []
        assert (await client.ask(make_request(headers=bearer(token())))).status == status
    assert (await client.ask(make_request())).status == 200  # nobody's token says anything


async def test_services_and_limits_come_between(world: World) -> None:
    service = await world.backend()
    route = await prove(
        world,
        rules(claim("sub", "ann", allow=True)),
        tokens(provider(claim_headers=(("x-sub", "sub"),))),
        rule={"ext_auth": make_auth(headers=("x-sub",))},
        more=(make_cluster(service.port, name=AUTH),),
    )
    client = await route.client()
    assert (await client.ask(make_request(headers=bearer("bad")))).status == 401
    assert service.count == 0
    await client.send(make_request(headers=[*bearer(token(sub="eve")), ("x-sub", "ann")]))
    question = await service.call()
    assert question.message.values(b"x-sub") == [b"eve"]
    question.reply()
    assert (await client.response()).status == 403
    await client.send(make_request(headers=bearer(token())))
    (await service.call()).reply()
    assert (await client.response()).status == 200
    assert len(route.seen) == 1


async def test_keys_that_change(world: World) -> None:
    route = await prove(world, tokens())
    client = await route.client()
    old, new = token(), token(number=1)
    assert (await client.ask(make_request(headers=bearer(old)))).status == 200
    assert (await client.ask(make_request(headers=bearer(new)))).status == 401
    both = issuer.key_set(issuer.jwk("ES256"), issuer.jwk("ES256", 1))
    only = issuer.key_set(issuer.jwk("ES256", 1))
    for keys, statuses in ((both, (200, 200)), (only, (401, 200))):
        unit = tokens(ir.JwtProvider(name="a", issuer=ISSUER, audiences=("web",), keys=keys))
        assert world.send([make_resource("policy", unit.name, encode(unit))], [], "v") == []
        found = [(await client.ask(make_request(headers=bearer(one)))).status for one in (old, new)]
        assert tuple(found) == statuses


async def test_keys_that_nobody_has_yet(world: World) -> None:
    remote = ir.RemoteKeys(uri="https://issuer.test/keys")
    named = ir.JwtProvider(name="a", issuer=ISSUER, audiences=("web",), remote=remote)
    route = await prove(world, tokens(named))
    client, other = await route.client(), await route.client()
    await client.send(make_request(headers=bearer(token())))
    await world.turns()
    token_verifier = world.engine.token_verifier_of()
    assert token_verifier.waiting == 1
    token_verifier.remote.use(
        ("https://issuer.test/keys", "", ""), issuer.key_set(issuer.jwk("ES256"))
    )
    assert (await client.response()).status == 200
    await client.send(make_request(headers=bearer(token("RS256"))))
    await world.turns()
    client.reset()
    await world.until(lambda: token_verifier.waiting == 0)
    token_verifier.remote.use(("https://issuer.test/keys", "", ""), b"")
    answer = await other.ask(make_request(headers=bearer(token())))  # after it has been waited for
    assert (answer.status, answer.value("retry-after")) == (503, "1")
    assert world.lines()[-1]["policy_rule"] == "keys"


async def test_slow_signatures_are_verified_beside_requests(world: World) -> None:
    keys = issuer.key_set(issuer.jwk("ES512"))
    named = ir.JwtProvider(name="a", issuer=ISSUER, audiences=("web",), keys=keys)
    route = await prove(world, tokens(named))
    client = await route.client()
    body = bytes(200_000)
    sent = make_request(headers=bearer(token("ES512")), method="PUT", body=body)
    assert (await client.ask(sent)).status == 200
    assert route.seen[0].body == body
    assert (await client.ask(make_request(headers=bearer(token("ES512", 1))))).status == 401


def test_keys_that_are_none_are_refused_with_the_unit() -> None:
    with pytest.raises(ValueError, match="invalid key set"):
        from edgefast.auth.jwt import key_set

        key_set.read(b"nonsense")
