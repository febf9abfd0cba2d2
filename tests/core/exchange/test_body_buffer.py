"""Memory that is lent to bodies while they are gathered whole: how much, to which clusters, and who gives it back for others."""

from __future__ import annotations

import asyncio

from core.apart import apart, shift
from core.backend import Backend
from core.client import Client, make_request
from core.fleets import make_cluster, make_fleet, make_host, make_listener, make_rule
from core.upstream.slow import HEAD, give
from core.world import World

LIMIT = 64 << 20  # bytes a worker lends (consts.pxi BODY_GATHER_LIMIT)
START = 16384  # bytes that are not counted (bodyStart)
BUFFER = 40_000_000  # bodyBuffer here: few clients are enough


class Site:
    """Clusters of few connections, `/a` and `/b`: in each one place for bodies, whose holder has its answer and stays."""

    def __init__(self, world: World, port: int, backend: Backend) -> None:
        self.world, self.port, self.backend = world, port, backend

    @staticmethod
    async def open(world: World, *names: str, most: int = 4, **http: object) -> Site:
        backend = await world.backend()
        http = {"body_share": 25, "body_buffer": BUFFER, "route_timeout": 0, **http}
        rules = [(f"/{name}", make_rule(name)) for name in names]
        clusters = [make_cluster(backend.port, name=name, max_connections=most) for name in names]
        fleet = make_fleet(make_listener(**http), make_host(*rules), *clusters)
        site = Site(world, await world.serve(fleet), backend)
        for number, name in enumerate(names, 1):
            await site.post(name, 100_000, 20_000)
            await world.until(lambda n=number: len(backend.links) == n)  # type: ignore[misc]
            await world.until(lambda: backend.links[-1].received)
            before = world.counters["downstream_bytes_sent"]
            backend.links[-1].transport.write(
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            await world.until(lambda b=before: world.counters["downstream_bytes_sent"] > b)  # type: ignore[misc]
        return site

    def head(self, name: str, length: int) -> bytes:
        return (HEAD % length).replace(b"/slow", b"/" + name.encode())

    async def post(self, name: str, length: int, sent: int) -> Client:
        """Begin a request; returns when so much of its body was read."""
        client = await self.world.client(self.port)
        await give(self.world, client, self.head(name, length) + b"x" * sent)
        return client

    async def denied(self, name: str, sent: int) -> asyncio.Future[None]:
        """Begin a request whose body is read no further: it waits for a place. Returns what goes on sending it."""
        waiting = self.world.cluster(name)["bodies_waiting"]
        client = await self.world.client(self.port)
        push = asyncio.ensure_future(client.send(self.head(name, BUFFER) + b"x" * sent))
        await self.world.until(
            lambda: self.world.cluster(name)["bodies_waiting"] == waiting + 1, "it does not fit"
        )
        return push

    @property
    def gathered(self) -> int:
        return int(self.world.engine.dump()["gathered"])

    @property
    def gave_way(self) -> int:
        return self.world.counters["bodies_gave_way"]

    @property
    def not_gathered(self) -> int:
        return self.world.counters["bodies_not_gathered"]


async def test_a_cluster_gets_as_much_as_is_left_for_others(world: World) -> None:
    """Past that its bodies wait for the share and are read no further; another cluster has room, and so would a third."""
    site = await Site.open(world, "a", "b", body_rate=0)
    await site.post("a", BUFFER, 33_000_000)
    first = 33_000_000 - START
    assert site.gathered == first
    push = await site.denied("a", 2_000_000)
    assert (site.not_gathered, site.gathered <= LIMIT // 2) == (1, True)
    push.cancel()
    before = site.gathered
    await site.post("b", BUFFER, 15_000_000)
    assert site.gathered == before + 15_000_000 - START
    push = await site.denied("b", 3_000_000)
    assert (site.not_gathered, site.gathered <= LIMIT * 3 // 4) == (2, True)
    assert site.gave_way == 0, "there is no rate"
    push.cancel()


@apart(clock=True)
async def test_who_stopped_coming_gives_way_before_anybody_is_denied(world: World) -> None:
    site = await Site.open(world, "a")
    stopped = [await site.post("a", BUFFER, 11_000_000) for _ in range(3)]
    shift(6)
    comes = await site.post("a", 12_000_000, 11_999_999)
    refused = await stopped[0].response()
    assert (refused.status, refused.body) == (408, b"the request body came too slowly\n")
    second = await stopped[1].response()
    assert second.status == 408, "half of what one cluster gives back is for itself"
    assert (site.gave_way, site.not_gathered) == (2, 0)
    assert site.gathered == 11_000_000 + 11_999_999 - 2 * START
    await comes.send(b"x")
    (await site.backend.call()).reply(b"whole")
    assert (await comes.response()).body == b"whole"
    assert site.gathered == 11_000_000 - START
    assert [(line["status"], line["flags"]) for line in world.lines()] == [
        (408, "UT"),
        (408, "UT"),
        (200, ""),
    ]


@apart(clock=True)
async def test_to_one_that_comes_they_give_way_after_a_second(world: World) -> None:
    site = await Site.open(world, "a")
    stopped = await site.post("a", BUFFER, 30_000_000)
    shift(1.2)
    await site.post("a", 12_000_000, 11_999_999)
    assert (await stopped.response()).status == 408
    assert (site.gave_way, site.not_gathered) == (1, 0)


@apart(clock=True)
async def test_nobody_gives_way_to_a_cluster_that_holds_more(world: World) -> None:
    site = await Site.open(world, "a", "b")
    little = await site.post("b", BUFFER, 1_000_000)
    much = await site.post("a", BUFFER, 33_000_000)
    shift(6)
    wants = await site.post("b", BUFFER, 18_000_000)
    assert (await much.response()).status == 408, "of another cluster, that had more"
    assert (site.gave_way, site.not_gathered) == (1, 0)
    shift(6)
    grows = await site.post("a", BUFFER, 22_000_000)
    assert (site.gave_way, site.not_gathered) == (1, 0), "there was room"
    push = asyncio.ensure_future(grows.send(b"x" * 12_000_000))
    await world.until(lambda: world.cluster("a")["bodies_waiting"] == 1, "it does not fit")
    assert (site.gave_way, site.not_gathered) == (1, 1)
    push.cancel()
    for client in (little, wants):
        client.reset()


@apart(clock=True)
async def test_who_waits_for_the_backend_does_not_give_way(world: World) -> None:
    """A body that is complete holds what it holds: its client has done what it could."""
    site = await Site.open(world, "a", most=2)
    busy = await world.client(site.port)
    await busy.send(make_request("/a"))
    call = await site.backend.call()
    whole = await site.post("a", 30_000_000, 30_000_000)
    assert world.cluster("a")["pending"] == 1
    shift(6)
    push = await site.denied("a", 12_000_000)
    assert (site.gave_way, site.not_gathered) == (0, 1)
    push.cancel()
    call.reply()
    call = await site.backend.call()
    assert len(call.message.body) == 30_000_000
    call.reply()
    assert (await whole.response()).status == 200
    assert (await busy.response()).status == 200


async def test_who_left_is_noticed_although_its_whole_body_came(world: World) -> None:
    """What it sent is not held until the backend would have taken it."""
    site = await Site.open(world, "a", most=2)
    busy = await world.client(site.port)
    await busy.send(make_request("/a"))
    call = await site.backend.call()
    whole = await site.post("a", 1_000_000, 1_000_000)
    assert (world.cluster("a")["pending"], world.engine.active) == (1, 3)
    whole.reset()
    await world.until(lambda: world.engine.active == 2)
    assert site.gathered == 0
    call.reply()
    assert (await busy.response()).status == 200


@apart(clock=True)
async def test_many_that_stopped_are_ended_in_pieces(world: World) -> None:
    """One read ends so many of them at most: nobody else waits for thousands of ends."""
    site = await Site.open(world, "a")
    tiny = [await site.post("a", BUFFER, START + 1) for _ in range(300)]
    big = await site.post("a", BUFFER, LIMIT // 2 + START - 1000)
    shift(6)
    push = asyncio.ensure_future(big.send(b"x" * 4000))
    await world.until(lambda: site.not_gathered, "so little is not enough for it")
    assert site.gave_way == 256
    push.cancel()
    for client in tiny:
        client.close()


@apart(clock=True)
async def test_who_asks_for_room_is_not_who_gives_way_for_it(world: World) -> None:
    """It would borrow for a request that has ended, and nobody would give that back."""
    site = await Site.open(world, "a")
    only = await site.post("a", BUFFER, LIMIT // 2 + START)
    assert site.gathered == LIMIT // 2, "all that one cluster gets"
    shift(6)
    await only.send(b"x")  # at the rate that is asked for it pays for no time
    await world.until(lambda: world.cluster("a")["bodies_waiting"] == 1, "it does not fit")
    assert (site.gave_way, site.not_gathered) == (0, 1)
    only.reset()
    await world.until(lambda: site.gathered == 0, "all of it is given back")
