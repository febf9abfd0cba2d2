"""One client's slow exchanges hold all connections of a cluster, each of them within the rates: others wait a moment, and it gives way."""

from __future__ import annotations

from core.apart import apart, shift
from core.backend import Backend, Call
from core.client import Client, make_request
from core.fleets import CLUSTER
from core.upstream.slow import HEAD, give, held, post
from core.upstream.test_slow_readers import begin, open_site, serve, slow, take
from core.world import World

OTHER = "127.0.0.2"
MOST = 0.5  # seconds that whoever holds little waits at most: EVICTION_GRACE_MS and SHARE_LOOK_MS
RATE = 1000  # bytes a second


def answer(call: Call) -> bytes | None:
    return None if call.path == "/wait" else serve(call)


async def ask(world: World, port: int, path: str, source: str = OTHER) -> Client:
    """A request that is not answered yet."""
    client = await world.client(port, source=source)
    before = world.counters["downstream_bytes_received"]
    await client.send(make_request(path))
    await world.until(lambda: world.counters["downstream_bytes_received"] > before)
    return client


async def pass_time(world: World, seconds: float) -> None:
    """A tenth of a second at a time, so that what is due in between is done then."""
    for _ in range(round(seconds * 10)):
        shift(0.1)
        await world.turns(50)


def gone(world: World) -> tuple[int, int]:
    return world.counters["answers_gave_way"], world.counters["bodies_gave_way"]


async def fill(
    world: World, backend: Backend, port: int, source: str = "127.0.0.1"
) -> list[Client]:
    """Two requests that the backend keeps waiting: nobody's fault."""
    clients = [await ask(world, port, "/wait", source) for _ in range(2)]
    await backend.calls(2)
    return clients


@apart(clock=True)
async def test_a_crowd_of_steady_readers_gives_way_to_another_client(world: World) -> None:
    """The slowest of them, though each reads faster than `answerRate`; one of its own address waits as ever."""
    backend = await world.backend(answer)
    port = await open_site(world, backend, 8, answer_rate=RATE)
    readers = [await begin(world, port) for _ in range(6)]
    busy = await fill(world, backend, port)
    for _ in range(3):
        shift(1)
        for number, client in enumerate(readers):
            await take(client, 2000 if number == 3 else 4000)
    own = await ask(world, port, "/small", "127.0.0.1")
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await pass_time(world, MOST)
    assert (gone(world), slow(world)) == ((0, 0), 6)
    other = await ask(world, port, "/small")
    await pass_time(world, MOST)
    assert (await other.response()).body == b"small"
    assert (await own.response()).body == b"small", (
        "with the connection that the other one has left"
    )
    assert gone(world) == (1, 0)
    assert [line["flags"] for line in world.lines() if line["path"] == "/large"] == ["SR"]
    for client in (readers[0], readers[5]):
        await take(client, 1)
    for client in (*readers, *busy):
        client.reset()


@apart(clock=True)
async def test_who_progresses_well_stays(world: World) -> None:
    """And an exchange whose backend is slow: others wait for these as ever."""
    backend = await world.backend(answer)
    port = await open_site(world, backend, 8, answer_rate=RATE)
    readers = [await begin(world, port) for _ in range(6)]
    busy = await fill(world, backend, port)
    shift(1)
    for client in readers:
        await take(client, 30_000)
    other = await ask(world, port, "/small")
    await world.until(lambda: world.cluster(CLUSTER)["pending"] == 1)
    await world.turns(50)
    assert gone(world) == (0, 0)
    for client in (*readers, *busy, other):
        client.reset()


@apart(clock=True)
async def test_a_crowd_of_steady_posters_gives_way_to_another_client(world: World) -> None:
    backend = await world.backend(answer)
    port = await open_site(world, backend, 8, body_rate=RATE, body_start=10, body_client_share=100)
    posters = [await post(world, port, HEAD % 100_000 + b"x" * 10) for _ in range(6)]
    await world.until(lambda: held(world) == 6)
    busy = await fill(world, backend, port)
    for _ in range(3):
        shift(1)
        for number, client in enumerate(posters):
            await give(world, client, b"x" * (2000 if number == 3 else 4000))
    other = await ask(world, port, "/small")
    await pass_time(world, MOST)
    assert (await other.response()).body == b"small"
    assert (await posters[3].response()).status == 408
    assert gone(world) == (0, 1)
    for client in (*posters, *busy):
        client.reset()
