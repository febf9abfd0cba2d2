"""SecurityPolicy satisfy: Any: one unit of a policy suffices; the others are not asked. Units of other policies decide as always."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from core.backend import Answer, make_response, say
from core.client import Response, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authenticators import basic, make_keys, make_passwords, sha
from core.policy.authorized import AUTH, make_auth
from core.world import World
from edgefast import ir

POLICY = "security/ns/p"
HERE = ir.PolicyUnit(
    name=f"{POLICY}#authorization",
    authorization=ir.Authorization((ir.AccessRule(allow=True, sources=("127.0.0.0/8",)),)),
)
ELSEWHERE = msgspec.structs.replace(HERE, authorization=ir.Authorization(()))
USERS = msgspec.structs.replace(make_passwords(user=sha("good")), name=f"{POLICY}#basicAuth")
GOOD, BAD = [basic("user", "good")], [basic("user", "bad")]
CHALLENGE = ("www-authenticate", "Cookie")


class Route:
    """A rule with units, a service and a backend."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked = 0

    async def open(self, *units: ir.PolicyUnit, said: Answer | int = 200, **check: Any) -> Route:
        def judge(call: Any) -> bytes:
            self.asked += 1
            return make_response(b"", said, (CHALLENGE,)) if isinstance(said, int) else said(call)

        service, backend = await self.world.backend(judge), await self.world.backend(say("x"))
        ask = ir.PolicyUnit(name=f"{POLICY}#extAuth", any=True, ext_auth=make_auth(**check))
        every = [msgspec.structs.replace(one, any=one.name.startswith(POLICY)) for one in units]
        every += [ask] if said else []
        self.backend = backend
        fleet = make_fleet(
            make_listener(),
            make_host(make_rule(policies=tuple(one.name for one in every))),
            make_cluster(backend.port),
            make_cluster(service.port, name=AUTH),
        )
        self.port = await self.world.serve(msgspec.structs.replace(fleet, policies=tuple(every)))
        return self

    async def ask(self, headers: list[tuple[str, str]]) -> Response:
        """One request."""
        client = await self.world.client(self.port)
        return await client.ask(make_request(headers=headers))


@pytest.mark.parametrize("headers", [[], BAD])
async def test_an_address_suffices(world: World, headers: list[tuple[str, str]]) -> None:
    route = await Route(world).open(HERE, USERS, said=401)
    assert (await route.ask(headers)).status == 200
    assert route.asked == 0


async def test_a_password_suffices(world: World) -> None:
    route = await Route(world).open(ELSEWHERE, USERS, said=403)
    assert (await route.ask(GOOD)).status == 200
    assert route.asked == 0


@pytest.mark.parametrize("headers", [[], BAD])
async def test_a_service_suffices(world: World, headers: list[tuple[str, str]]) -> None:
    route = await Route(world).open(ELSEWHERE, USERS, said=200)
    assert (await route.ask(headers)).status == 200
    assert route.asked == 1


@pytest.mark.parametrize(("said", "status"), [(401, 401), (403, 401), (0, 401)])
async def test_401_comes_before_403(world: World, said: int, status: int) -> None:
    route = await Route(world).open(ELSEWHERE, USERS, said=said)
    answer = await route.ask(BAD)
    assert answer.status == status
    asked = [value for name, value in answer.headers if name.lower() == "www-authenticate"]
    assert asked[-1].startswith("Basic") and len(asked) == (2 if said == 401 else 1)
    assert route.backend.count == 0


@pytest.mark.parametrize("said", [401, 403])
async def test_a_service_alone_decides_the_status(world: World, said: int) -> None:
    route = await Route(world).open(ELSEWHERE, said=said)
    assert (await route.ask([])).status == said


async def test_a_service_that_fails_ends_the_check(world: World) -> None:
    route = await Route(world).open(ELSEWHERE, USERS, said=500, status_on_error=500)
    assert (await route.ask(BAD)).status == 500
    route = await Route(world).open(ELSEWHERE, USERS, said=500, fail_open=True)
    assert (await route.ask(BAD)).status == 200


async def test_addresses_without_another_unit_decide(world: World) -> None:
    route = await Route(world).open(ELSEWHERE, said=0)
    assert (await route.ask(GOOD)).status == 403


async def test_an_address_needs_no_other_unit(world: World) -> None:
    route = await Route(world).open(HERE, USERS, said=0)
    assert (await route.ask([])).status == 200


async def test_units_of_other_policies_decide_as_always(world: World) -> None:
    """Neither replaces the other."""
    other = msgspec.structs.replace(ELSEWHERE, name="security/ns/q#authorization")
    route = await Route(world).open(HERE, USERS, other, said=0)
    assert (await route.ask(GOOD)).status == 403
    keys = msgspec.structs.replace(make_keys("header:x-key"), name="security/ns/q#apiKeyAuth")
    route = await Route(world).open(HERE, USERS, keys, said=0)
    assert (await route.ask(GOOD)).status == 401


async def test_a_broken_unit_ends_the_check(world: World) -> None:
    broken = ir.PolicyUnit(name=f"{POLICY}#basicAuth", status=500, reason="broken")
    route = await Route(world).open(HERE, broken, said=0)
    assert (await route.ask(GOOD)).status == 500


async def test_the_sign_in_page_is_the_answer_of_all(world: World) -> None:
    for said in (401, 403):
        route = await Route(world).open(ELSEWHERE, USERS, said=said, sign_in="https://in.test/")
        answer = await route.ask(BAD)
        assert (answer.status, answer.value("location")) == (302, "https://in.test/")
