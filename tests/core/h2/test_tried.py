"""A request that goes again asks another endpoint than those that it has asked, wherever it waited meanwhile."""

from __future__ import annotations

from core.client import make_request
from core.fleets import make_cluster, make_fleet
from core.h2.backend import Ask, H2Backend
from core.world import World


async def test_who_finds_a_new_connection_full_asks_no_endpoint_again(world: World) -> None:
    """Each of many is refused by the first; the second takes one request on a connection."""

    def refuse(ask: Ask) -> None:
        ask.refuse(7)

    refuses, takes = H2Backend(refuse), H2Backend(streams=1)
    world.keep(await refuses.start())
    world.keep(await takes.start())
    port = await world.serve(make_fleet(make_cluster(refuses.port, takes.port, protocol="h2")))
    clients = [await world.client(port) for _ in range(24)]
    for number, client in enumerate(clients):
        await client.send(make_request(f"/{number}", method="POST", body=b"x"))
    for _ in clients:
        (await takes.ask()).reply(b"x")
    for client in clients:
        assert (await client.response()).status == 200
    asked = [ask.value(":path") for ask in refuses.asks]
    assert len(asked) == len(set(asked))


async def test_numbers_of_endpoints_that_are_gone_say_nothing(world: World) -> None:
    """Both were tried when others took their places: these are new to it, also when one of them cannot be reached."""
    old, new = [H2Backend(), H2Backend()], H2Backend()
    for one in (*old, new):
        world.keep(await one.start())
    client = await world.client_of(
        make_fleet(make_cluster(*(one.port for one in old), protocol="h2"))
    )
    await client.send(make_request(method="POST", body=b"x"))
    await world.until(lambda: any(one.asks for one in old))
    first = next(one for one in old if one.asks)
    other = next(one for one in old if one is not first)
    first.asks[0].refuse(7)
    ask = await other.ask()
    world.apply(make_fleet(make_cluster(world.refusing_port(), new.port, protocol="h2")))
    ask.refuse(7)
    (await new.ask()).reply(b"x")
    assert (await client.response()).status == 200
