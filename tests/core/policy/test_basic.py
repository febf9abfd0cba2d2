"""Names and passwords: who gets in, how many may wait for slow hashes, what is known, what ends while it waits."""

from __future__ import annotations

from typing import Any

import bcrypt
import pytest

from core.client import make_request
from core.fleets import encode
from core.policy.authenticators import PASSWORDS, apr1, basic, make_passwords, prove, sha, slow
from core.policy.passwords_held import Held
from core.world import World
from edgefast import ir
from edgefast.auth.htpasswd import work_of
from edgefast.core.policy.passwords import AHEAD, QUEUE, SHARE
from edgefast.table.shards import make_resource

CELLS = "security/ns/p\tbasicAuth"
TRUST = {"client_address": ir.ClientAddress(trusted_hops=1)}


@pytest.mark.parametrize("make", [sha, slow, apr1])
async def test_passwords(world: World, make: Any) -> None:
    unit = make_passwords("x-user", alice=make("wonder:land"), bob=make("b"))
    route = await prove(world, unit)
    client = await route.client()
    for _ in range(2):
        sent = [basic("alice", "wonder:land"), ("x-user", "root")]
        assert (await client.ask(make_request(headers=sent))).status == 200
        assert route.seen[-1].values(b"x-user") == [b"alice"]
    for headers in (
        [],
        [basic("alice", "b")],
        [basic("eve", "b")],
        [basic("", "")],
        [("authorization", "Basic !!!")],
        [("authorization", "Basic YWJj")],  # no colon
        [("authorization", "Bearer b")],
        [("authorization", "Basic " + "YTph" * 1000)],
        [basic("bob", "b"), basic("alice", "wonder:land")],
    ):
        refused = await client.ask(make_request(headers=headers))
        assert refused.status == 401
        assert refused.value("www-authenticate") == 'Basic realm="gateway", charset="UTF-8"'
    assert world.counters.policy(CELLS) == {"allowed": 2, "denied": 9}
    assert [one.get("user") for one in world.lines()][:3] == ["alice", "alice", None]
    assert {one.get("policy") for one in world.lines()[2:]} == {PASSWORDS}
    assert [one["policy_rule"] for one in world.lines()[2:]] == [
        *("missing", "wrong", "wrong", "wrong", "malformed", "malformed", "missing", "malformed"),
        "several",
    ]


async def test_a_wrong_password_takes_the_same_time_for_every_user(world: World) -> None:
    """For every kind of hash, and for an unknown user, the same hashes are computed in the same order."""
    held = Held(world)
    held.let(1000)
    dear = bcrypt.hashpw(b"c", bcrypt.gensalt(5)).decode()
    unit = make_passwords(ann=sha("a"), bob=apr1("b"), cat=slow("c"), dan=dear, eve=slow("e"))
    route = await prove(world, unit)
    client = await route.client()
    for user in ("ann", "bob", "cat", "dan", "eve", "nobody"):
        held.tried.clear()
        assert (await client.ask(make_request(headers=[basic(user, "wrong")]))).status == 401
        assert [work_of(one) for one in held.tried] == [b"$apr1$", b"bcrypt 04", b"bcrypt 05"]
    # A decoy accepts no password: these are passwords of other users.
    for user, password in (("nobody", "b"), ("ann", "c"), ("bob", "e"), ("eve", "c")):
        assert (await client.ask(make_request(headers=[basic(user, password)]))).status == 401
    for user in ("ann", "bob", "cat", "eve"):
        assert (await client.ask(make_request(headers=[basic(user, user[0])]))).status == 200


async def test_two_threads_try_a_password(world: World) -> None:
    """$apr1$ on the engine's own, bcrypt behind it on Python's."""
    route = await prove(world, make_passwords(bob=apr1("b"), cat=slow("c")))
    client = await route.client()
    for user, password, status in (
        ("bob", "b", 200),
        ("cat", "c", 200),
        ("cat", "b", 401),
        ("x", "b", 401),
    ):
        assert (await client.ask(make_request(headers=[basic(user, password)]))).status == status


async def test_what_was_right_waits_for_nothing(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b"), ann=slow("a")))
    client = await route.client()
    held.let(1)
    assert (await client.ask(make_request(headers=[basic("bob", "b")]))).status == 200
    other = await route.client()
    await other.send(make_request(headers=[basic("ann", "wrong")]))
    await world.until(lambda: held.begun == 2)
    assert (await client.ask(make_request(headers=[basic("bob", "b")]))).status == 200
    held.let(1)
    assert (await other.response()).status == 401


async def test_a_new_hash_is_a_new_question(world: World) -> None:
    route = await prove(world, make_passwords(bob=slow("b")))
    client = await route.client()
    sent = make_request(headers=[basic("bob", "b")])
    assert (await client.ask(sent)).status == 200
    unit = make_passwords(bob=slow("other"))
    assert world.send([make_resource("policy", unit.name, encode(unit))], [], "v") == []
    assert (await client.ask(sent)).status == 401


async def test_one_client_leaves_room_for_others(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")), **TRUST)
    crowd = [await route.client() for _ in range(SHARE + 1)]
    for client in crowd[:-1]:
        sent = [basic("bob", "guess"), ("x-forwarded-for", "10.0.0.1")]
        await client.send(make_request(headers=sent))
    await world.until(lambda: held.waiting == SHARE)
    refused = await crowd[-1].ask(make_request(headers=sent))
    assert (refused.status, refused.value("retry-after")) == (503, "1")
    other = await route.client()
    right = [basic("bob", "b"), ("x-forwarded-for", "10.0.0.2")]
    await other.send(make_request(headers=right))
    held.let(SHARE + 1)
    assert (await other.response()).status == 200
    assert [(await one.response()).status for one in crowd[:-1]] == [401] * SHARE


async def test_a_few_addresses_keep_no_other_out(world: World) -> None:
    """Eight clients fill the queue: one of their jobs is refused, and the other client's job runs after one of each."""
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")), **TRUST)
    crowd = []
    for number in range(QUEUE):
        crowd.append(await route.client())
        sent = [basic("eve", "guess"), ("x-forwarded-for", f"10.0.0.{number % (QUEUE // SHARE)}")]
        await crowd[-1].send(make_request(headers=sent))
        await world.until(lambda number=number: held.waiting == number + 1)
    other = await route.client()
    right = [basic("bob", "b"), ("x-forwarded-for", "10.0.9.9")]
    await other.send(make_request(headers=right))
    await world.until(lambda: world.counters.policy(CELLS).get("error") == 1)
    assert held.waiting == QUEUE
    held.let(AHEAD + QUEUE // SHARE + 1)
    assert (await other.response()).status == 200
    held.let(QUEUE)
    answers = [(await one.response()).status for one in crowd]
    assert sorted(answers) == [401] * (QUEUE - 1) + [503]


async def test_a_full_queue_refuses(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")), **TRUST)
    crowd = [await route.client() for _ in range(QUEUE + 1)]
    for number, client in enumerate(crowd[:-1]):
        sent = [basic("eve", "guess"), ("x-forwarded-for", f"10.0.{number}.1")]
        await client.send(make_request(headers=sent))
    await world.until(lambda: held.waiting == QUEUE)
    assert (await crowd[-1].ask(make_request(headers=[basic("bob", "b")]))).status == 503
    held.let(QUEUE)
    assert [(await one.response()).status for one in crowd[:-1]] == [401] * QUEUE
    held.let(1)
    assert (await crowd[-1].ask(make_request(headers=[basic("bob", "b")]))).status == 200
    assert world.counters.policy(CELLS) == {"allowed": 1, "denied": QUEUE, "error": 1}


async def test_many_guesses_at_a_hash_that_holds_nobody_up(world: World) -> None:
    """More than are tried at a time, of clients that stay and of clients that leave."""
    route = await prove(world, make_passwords(bob=apr1("b")), **TRUST)
    crowd = [await route.client() for _ in range(2 * QUEUE)]
    for number, client in enumerate(crowd):
        sent = [basic("bob", "guess"), ("x-forwarded-for", f"10.0.{number}.1")]
        await client.send(make_request(headers=sent))
        if number % 3 == 0:
            client.reset()
    answers = [(await one.response()).status for at, one in enumerate(crowd) if at % 3]
    assert set(answers) <= {401, 503} and answers.count(401) > 0
    client = await route.client()
    assert (await client.ask(make_request(headers=[basic("bob", "b")]))).status == 200
    assert len(route.seen) == 1
    await world.until(lambda: world.engine.active == 0)


async def test_who_leaves_is_not_hashed_for(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")))
    first, second, third = [await route.client() for _ in range(3)]
    sent = make_request(headers=[basic("bob", "b")])
    await first.send(sent)
    await world.until(lambda: held.begun == 1)
    await second.send(sent)
    await world.until(lambda: held.waiting == 2)
    second.reset()
    await world.until(lambda: world.engine.active == 1)
    held.let(1)
    assert (await first.response()).status == 200
    await world.until(lambda: held.waiting == 0)
    assert held.begun == 1 and len(route.seen) == 1
    assert (await third.ask(sent)).status == 200


async def test_a_body_that_came_meanwhile_goes_on(world: World) -> None:
    held = Held(world)
    route = await prove(world, make_passwords(bob=slow("b")))
    client = await route.client()
    body = bytes(range(256)) * 1024
    sent = make_request(headers=[basic("bob", "b")], method="PUT", body=body)
    await client.send(sent[:100_000])
    await world.until(lambda: held.begun == 1)
    held.let(1)
    await client.send(sent[100_000:])
    assert (await client.response()).status == 200
    assert route.seen[0].body == body


async def test_a_unit_that_changes_meanwhile_is_judged_as_it_was(world: World) -> None:
    held = Held(world)
    unit = make_passwords(bob=slow("b"))
    route = await prove(world, unit)
    client = await route.client()
    await client.send(make_request(headers=[basic("bob", "b")]))
    await world.until(lambda: held.begun == 1)
    assert world.send([], [("policy", unit.name)], "v") == []
    held.let(1)
    assert (await client.response()).status == 200
    assert (await client.ask(make_request(headers=[basic("bob", "b")]))).status == 500
