"""Bodies that are gathered before a backend is asked: when, how much of them, and when they go on."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import Call, make_response, say
from core.fleets import CLUSTER, make_cluster, make_fleet, make_listener, make_rule
from core.upstream.slow import HEAD, LATE, STREAM, give, held, open_site, post
from core.world import World
from edgefast import ir


async def test_where_many_are_slow_a_body_is_gathered_first(world: World) -> None:
    """Until it is complete, or large enough; then it goes out in one piece."""
    backend = await world.backend()
    port = await open_site(
        world, backend, 8, body_start=1000, body_start_timeout=LATE, body_share=50
    )
    crowd = [await post(world, port) for _ in range(2)]  # half of the share of four
    await world.until(lambda: len(backend.links) == 2)
    small = await post(world, port, HEAD % 5 + b"hel")
    large = await post(world, port, HEAD % 3000 + b"x" * 999)
    await world.turns()
    assert (held(world), len(backend.links)) == (2, 2)
    await small.send(b"lo")
    call = await backend.call()
    assert (call.message.body, held(world)) == (b"hello", 2)
    call.reply(b"small")
    assert (await small.response()).body == b"small"
    await large.send(b"x")
    await world.until(lambda: held(world) == 3, "a thousand bytes are enough")
    await world.until(lambda: any(link.received.endswith(b"x" * 1000) for link in backend.links))
    await large.send(b"x" * 2000)
    call = await backend.call()
    assert (len(call.message.body), held(world)) == (3000, 2)
    call.reply(b"large")
    assert (await large.response()).body == b"large"
    for client in crowd:
        client.close()


@apart(clock=True)
async def test_a_slow_body_is_passed_on_after_a_while_if_there_is_room(world: World) -> None:
    backend = await world.backend()
    port = await open_site(
        world, backend, 8, body_start=1000, body_start_timeout=10_000, body_share=50
    )
    first = [await post(world, port) for _ in range(3)]
    assert held(world) == 2
    shift(11)
    await world.until(lambda: held(world) == 3, "the third is late, and there is a fourth place")
    (await post(world, port)).close()
    await world.until(lambda: world.engine.active == 3)
    for client in first:
        client.close()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_can_be_gathered_whole_needs_no_place(
    world: World, chunked: bool
) -> None:
    """Where the share is used up it is read to its end, and goes out with the requests that are complete."""
    backend = await world.backend()
    port = await open_site(world, backend, 4, body_share=25, body_start_timeout=LATE)
    holder = await post(world, port, HEAD % 100_000 + b"x" * 20_000)
    assert held(world) == 1
    body = b"b" * 600_000
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    client = await post(world, port, (STREAM if chunked else HEAD % len(body)) + framed[:400_000])
    await give(world, client, framed[400_000:-1])
    assert world.cluster(CLUSTER)["bodies_waiting"] == 0
    assert world.engine.dump()["gathered"] > 500_000
    await client.send(framed[-1:])
    call = await backend.call()
    assert (call.message.body, held(world)) == (body, 1)
    call.reply(b"whole")
    assert (await client.response()).body == b"whole"
    assert world.counters["bodies_gave_way"] == 0
    assert world.engine.dump()["gathered"] == 0
    holder.close()


async def test_a_crowd_that_dissolves_is_noticed_at_once(world: World) -> None:
    """Whoever was gathered asks for a connection, without a byte and long before any time is over."""
    backend = await world.backend()
    port = await open_site(
        world, backend, 8, body_start=1000, body_share=50, body_start_timeout=LATE
    )
    crowd = [await post(world, port) for _ in range(2)]
    gathered = [await post(world, port, HEAD % 3 + b"x") for _ in range(5)]
    await world.until(lambda: len(backend.links) == 2)
    assert held(world) == 2
    for client in crowd:
        client.reset()
    await world.until(lambda: len(backend.links) == 4, "the first two of them")
    assert held(world) == 2, "they are a crowd of their own"
    gathered.pop().reset()  # was gathered, and is forgotten
    await world.until(lambda: world.engine.active == 4)
    for client in gathered:
        await client.send(b"xx")
        (await backend.call()).reply()
        assert (await client.response()).status == 200
    assert held(world) == 0


async def test_a_body_with_a_copy_is_not_gathered_whole(world: World) -> None:
    """A mirror takes it as it comes: at once it would be more than is kept for one."""
    copies: list[int] = []

    def keep(call: Call) -> bytes:
        copies.append(len(call.message.body))
        return make_response(b"ok")

    main, shadow = await world.backend(say("main")), await world.backend(keep)
    fleet = make_fleet(
        make_listener(body_share=25, body_start_timeout=LATE),
        make_rule("main", mirrors=(ir.Mirror(cluster="shadow"),)),
        make_cluster(main.port, name="main", max_connections=8),
        make_cluster(shadow.port, name="shadow"),
    )
    port = await world.serve(fleet)
    await (await world.client(port)).get()  # both have a connection
    await world.until(lambda: copies == [0])
    holders = [await post(world, port, HEAD % 100_000 + b"x" * 20_000) for _ in range(2)]
    await world.until(lambda: world.cluster("main")["bodies"] == 2, "no place is left")
    client = await post(world, port, HEAD % 100_000 + b"b" * 60_000)
    assert world.engine.dump()["gathered"] == 0
    for holder in holders:
        holder.close()
    # The copy has its connection before the rest comes: until then no more than MIRROR_LIMIT is kept for it.
    await world.until(lambda: any(b"bbb" in link.received for link in shadow.links))
    await client.send(b"b" * 40_000)
    assert (await client.response()).status == 200
    await world.until(lambda: copies == [0, 100_000], "all of it was copied")
    assert world.counters["mirrors_dropped"] == len(holders)  # theirs had no end
