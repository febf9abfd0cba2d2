"""Whatever happens to a service, nobody enters whom it does not know: a real one that is stopped and killed, and one that is hostile."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from core.backend import Call, make_response
from core.client import Client, Gone, make_request
from core.fleets import make_cluster
from core.policy.authorized import AUTH, fleet_of, guarded, make_auth
from core.policy.test_auth_failures import FAULTS
from core.world import World
from edgefast.ir.policy import AuthCache

METHODS = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH")

# HEAD is answered by a head alone: what would have been wrong about a body is nothing.
OF_HEADS = [name for name in FAULTS if "body" not in name and "chunk" not in name]


def check(call: Call) -> bytes:
    """What a backend finds: who is known, and only what the service said of them."""
    message = call.message
    token = message.value(b"authorization")
    assert token is not None and token.startswith(b"Bearer good-"), message.raw
    assert message.values(b"x-user") == [token.removeprefix(b"Bearer good-")], message.raw
    assert b"evil" not in message.raw
    return make_response(b"" if message.method == b"HEAD" else b"behind")


async def knock(client: Client, rng: random.Random, good: bool) -> int:
    """One request, of somebody who is known or not; its status."""
    method = rng.choice(METHODS)
    token = (
        f"Bearer good-{rng.randrange(3)}"
        if good
        else rng.choice(["Bearer bad", "Bearer good", "", "evil"])
    )
    headers = [("authorization", token), (rng.choice(["x-user", "X-User", "x-USER"]), "evil")]
    rng.shuffle(headers)
    body = b"x" * rng.randrange(3000) if method in ("POST", "PUT", "PATCH") else None
    await client.send(
        make_request(f"/{rng.randrange(3)}", method=method, headers=headers, body=body)
    )
    return (await client.response(head=method == "HEAD")).status


async def crowd(world: World, port: int, seed: int, count: int) -> dict[bool, set[int]]:
    """Many of both kinds at once."""
    found: dict[bool, set[int]] = {True: set(), False: set()}

    async def one(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        client = await world.client(port)
        for _ in range(count):
            good = rng.random() < 0.5
            try:
                found[good].add(await knock(client, rng, good))
            except Gone:
                client = await world.client(port)

    await asyncio.gather(*(one(number) for number in range(8)))
    return found


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("body", [0, 4000])
async def test_a_hostile_service(world: World, cached: bool, body: int) -> None:
    rng = random.Random(7)

    def act(call: Call) -> bytes | None:
        token = call.message.value(b"authorization") or b""
        if rng.random() < 0.4:
            faults = [*FAULTS] if call.message.method != b"HEAD" else OF_HEADS
            FAULTS[rng.choice(faults)](call)
            return None
        if token.startswith(b"Bearer good-"):
            return make_response(
                headers=(
                    ("x-user", token.decode().removeprefix("Bearer good-")),
                    ("x-evil", "evil"),
                )
            )
        return make_response(status=rng.choice([401, 403, 302, 404]))

    cache = AuthCache(ttl=60_000) if cached else None
    route = await guarded(
        world,
        act,
        to_backend=("x-user",),
        cache=cache,
        body=body,
        timeout=2_000,
        http={"response_head": 65536},
    )
    wrong: list[BaseException] = []

    def behind(call: Call) -> bytes:
        try:
            return check(call)
        except AssertionError as error:
            wrong.append(error)
            raise

    route.backend.answer = behind
    found = await crowd(world, route.port, 1, 40)
    assert not wrong
    assert found[True] >= {200, 403}
    assert 200 not in found[False] and found[False] <= {401, 403, 302, 404}


async def start(port: int = 0) -> tuple[asyncio.subprocess.Process, int]:
    server = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name("authserver.py")), str(port), stdout=PIPE
    )
    assert server.stdout is not None
    return server, int(await server.stdout.readline())


def state(pid: int) -> str:
    """Of a process, as its kernel has it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def test_a_server_that_is_stopped_and_killed(world: World) -> None:
    server, port = await start()
    backend = await world.backend(check)
    spec = make_auth(to_backend=("x-user",), timeout=30_000, status_on_error=503)
    hasty = make_auth(to_backend=("x-user",), timeout=100, status_on_error=503)
    cluster = make_cluster(port, name=AUTH)
    front = await world.serve(fleet_of(spec, backend.port, cluster))
    try:
        found = await crowd(world, front, 1, 20)
        assert found == {True: {200}, False: {401}}
        server.send_signal(signal.SIGSTOP)
        await world.until(lambda: state(server.pid) == "T", "it is stopped")
        world.apply(fleet_of(hasty, backend.port, cluster))
        found = await crowd(world, front, 2, 2)
        assert found == {True: {503}, False: {503}}
        server.send_signal(signal.SIGCONT)
        world.apply(fleet_of(spec, backend.port, cluster))
        before = world.counters["auth_calls"]
        crowding = asyncio.ensure_future(crowd(world, front, 3, 20))
        await world.until(lambda: world.counters["auth_calls"] > before + 50)
        server.kill()
        await server.wait()
        found = await crowding
        assert found[True] <= {200, 503} and found[False] <= {401, 503}
        found = await crowd(world, front, 4, 3)
        assert found == {True: {503}, False: {503}}
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
