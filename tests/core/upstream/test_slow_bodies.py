"""Bodies that come slowly: what they may hold of a cluster's connections, and who gives way."""

from __future__ import annotations

import gc

from core.apart import apart, shift
from core.backend import Call, make_response, say
from core.client import make_request
from core.fleets import CLUSTER, ROW, make_cluster, make_fleet, make_rule
from core.upstream.slow import HEAD, LATE, STREAM, give, held, open_site, post
from core.world import World
from edgefast import ir


async def test_slow_posters_leave_room_for_others(world: World) -> None:
    """However many there are, a request that is complete gets a connection at once."""
    backend = await world.backend(say("x"))
    port = await open_site(world, backend, 8, body_start_timeout=LATE)
    slow = [await post(world, port) for _ in range(40)]
    assert held(world) < 8
    for number in range(20):
        client = await world.client(port)
        body = None if number % 2 else b"all of it"
        answer = await client.ask(make_request(method="POST" if body else "GET", body=body))
        assert answer.status == 200
    cluster = world.cluster(CLUSTER)
    assert (cluster["pending"], world.counters["pending_refused"]) == (0, 0)
    assert world.engine.active == len(slow)
    assert world.counters["bodies_gave_way"] == 0


async def test_without_slow_ones_a_backend_is_asked_at_once(world: World) -> None:
    """A stream that sends rarely is passed on as it comes, and its answer may begin before its end."""
    backend = await world.backend()
    port = await open_site(world, backend, 8, body_start_timeout=LATE)
    client = await post(world, port, STREAM)
    await world.until(
        lambda: backend.links and b"\r\n\r\n" in backend.links[0].received, "the head alone"
    )
    for piece in (b"one", b"two"):
        await client.send(b"3\r\n" + piece + b"\r\n")
        await world.until(lambda p=piece: backend.links[0].received.endswith(p + b"\r\n"))  # type: ignore[misc]
    assert held(world) == 1
    await client.send(b"0\r\n\r\n")
    (await backend.call()).reply(b"done")
    assert (await client.response()).body == b"done"
    assert held(world) == 0


async def test_a_small_body_that_comes_with_its_head_is_one_piece_and_needs_no_place(
    world: World,
) -> None:
    links: list[int] = []

    def answer(call: Call) -> bytes:
        links.append(held(world))
        return make_response(call.message.body)

    backend = await world.backend(answer)
    port = await open_site(world, backend, 8)
    client = await world.client(port)
    assert (await client.ask(make_request(method="POST", body=b"hello"))).body == b"hello"
    chunked = STREAM + b"5\r\nthere\r\n0\r\n\r\n"
    assert (await client.ask(chunked)).body == b"there"
    assert (await client.ask(STREAM + b"0\r\n\r\n")).body == b""
    assert links == [0, 0, 0]


@apart(clock=True)
async def test_the_slowest_gives_way_when_others_wait(world: World) -> None:
    """It is told 408; who keeps the rate, or whose answer has begun, stays."""
    backend = await world.backend()
    port = await open_site(world, backend, 4, body_start=10, body_share=75, body_rate=1000)
    answered = await post(world, port, HEAD % 100_000 + b"x" * 10)
    await world.until(lambda: len(backend.links) == 1)
    backend.links[0].transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    silent = await post(world, port, HEAD % 100_000 + b"x" * 10)
    steady = await post(world, port, HEAD % 100_000 + b"x" * 10)
    await world.until(lambda: len(backend.links) == 3)
    assert held(world) == 3
    for _ in range(3):
        shift(2)
        before = world.counters["upstream_bytes_sent"]
        await steady.send(b"x" * 4000)
        await world.until(lambda b=before: world.counters["upstream_bytes_sent"] >= b + 4000)  # type: ignore[misc]
    assert world.counters["bodies_gave_way"] == 0, "nobody waits"
    waiting = await post(world, port, HEAD % 20 + b"x" * 19)
    answer = await silent.response()
    assert (answer.status, answer.value("connection")) == (408, "close")
    assert answer.body == b"the request body came too slowly\n"
    await world.until(lambda: held(world) == 3, "its place is taken")
    await waiting.send(b"x")
    call = await backend.call()
    call.reply(b"served")
    assert (await waiting.response()).body == b"served"
    assert world.counters["bodies_gave_way"] == 1
    assert world.counters.row(ROW)["timeouts"] == 1
    assert [(line["status"], line["flags"]) for line in world.lines()] == [(408, "UT"), (200, "")]
    for client in (answered, steady):
        client.close()


@apart(clock=True)
async def test_the_backend_may_be_slow(world: World) -> None:
    """A body that the backend does not read is nobody's fault who sends it."""
    backend = await world.backend()
    backend.on_link = lambda link: link.pause()
    port = await open_site(world, backend, 2, body_start=10)
    blocked = await post(world, port, HEAD % 50_000_000 + b"x" * 10)
    filler = b"x" * 1_000_000
    loop = world.loop

    async def fill() -> None:
        for _ in range(40):
            await loop.sock_sendall(blocked.sock, filler)

    filling = loop.create_task(fill())
    seen = -1

    def stands() -> bool:
        nonlocal seen
        now, before = world.counters["downstream_bytes_received"], seen
        seen = now
        return now == before and now > 0

    await world.until(stands, "reading has stopped")
    shift(60)
    other = await post(world, port, HEAD % 20 + b"x" * 15)
    await world.turns()
    assert world.counters["bodies_gave_way"] == 0
    filling.cancel()
    blocked.reset()
    await other.send(b"xxxxx")
    backend.on_link = None
    for link in backend.links:
        link.transport.resume_reading()
    (await backend.call()).reply()
    assert (await other.response()).status == 200


async def test_a_cluster_that_goes_is_gone_without_a_collection(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await open_site(world, backend, 4, body_start=10, body_buffer=0, body_share=25)
    before = count_shares()
    holder = await post(world, port, HEAD % 20 + b"x" * 10)
    waiting = await post(world, port, HEAD % 20 + b"x" * 10)
    assert count_shares() == before + 1
    for client in (holder, waiting):
        await client.send(b"x" * 10)
        assert (await client.response()).status == 200
    await world.until(lambda: world.engine.active == 0)
    assert count_shares() == before


def count_shares() -> int:
    return sum(type(one).__name__ == "BodyShare" for one in gc.get_objects())


async def test_who_waits_and_becomes_complete_needs_no_place(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await open_site(world, backend, 4, body_start=10, body_buffer=0, body_share=25)
    holder = await post(world, port, HEAD % 100 + b"x" * 10)
    waiting = await post(world, port, HEAD % 20 + b"x" * 10)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    await waiting.send(b"x" * 10)
    assert (await waiting.response()).status == 200
    assert held(world) == 1
    holder.close()


async def test_the_queue_has_a_bound_and_those_that_left_make_room(world: World) -> None:
    backend = await world.backend(say("x"))
    port = await open_site(world, backend, 4, body_start=10, body_buffer=0, body_share=25)
    data = HEAD % 20 + b"x" * 10
    holder = await post(world, port, data)
    queue = [await post(world, port, data) for _ in range(4)]
    refused = await world.client(port)
    assert (await refused.ask(data)).status == 503
    assert world.counters["pending_refused"] == 1
    queue.pop(0).reset()
    await world.until(lambda: world.engine.active == 4)
    queue.append(await post(world, port, data))
    assert world.engine.active == 5
    for client in (holder, *queue):
        await client.send(b"x" * 10)
        assert (await client.response()).status == 200


@apart(clock=True)
async def test_those_that_left_hold_nobody_up(world: World) -> None:
    backend = await world.backend()
    port = await open_site(
        world,
        backend,
        4,
        body_start=10,
        body_start_timeout=5_000,
        body_buffer=0,
        body_share=50,
        body_rate=0,
    )
    holders = [await post(world, port, HEAD % 20 + b"x" * 10) for _ in range(2)]
    left = await post(world, port, HEAD % 20 + b"x" * 10)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    slow = await post(world, port)
    left.reset()
    await world.until(lambda: world.engine.active == 3)
    shift(6)
    await world.until(lambda: world.cluster(CLUSTER)["bodies_waiting"] == 0)
    assert held(world) == 2
    holders[0].reset()
    await world.until(lambda: held(world) == 2 and world.engine.active == 2, "the slow one is in")
    for client in (holders[1], slow):
        client.close()


async def test_places_are_handed_on_in_turn(world: World) -> None:
    backend = await world.backend()
    port = await open_site(world, backend, 4, body_start=10, body_buffer=0, body_share=25)
    clients = [
        await post(world, port, (HEAD % 20).replace(b"/slow", b"/%d" % n) + b"x" * 10)
        for n in range(4)
    ]
    for number, client in enumerate(clients):
        await world.until(
            lambda n=number: any(b"POST /%d " % n in link.received for link in backend.links)  # type: ignore[misc]
        )
        assert held(world) == 1
        if number % 2:
            client.reset()
        else:
            await client.send(b"x" * 10)
            (await backend.call()).reply()
            assert (await client.response()).status == 200


async def test_copies_hold_no_more_than_the_share(world: World) -> None:
    """A mirror's cluster has a share, too; beyond it a copy is dropped, and never the request."""
    main, shadow = await world.backend(), await world.backend(say("x"))
    copies = make_cluster(shadow.port, name="shadow", max_connections=2)
    rule = make_rule("main", mirrors=(ir.Mirror(cluster="shadow"),))
    port = await world.serve(make_fleet(rule, make_cluster(main.port, name="main"), copies))
    clients = [await post(world, port, STREAM + b"1\r\nx\r\n") for _ in range(3)]
    assert world.cluster("main")["bodies"] == 3
    assert world.cluster("shadow")["bodies"] == 1
    assert (world.counters["mirrored"], world.counters["mirrors_dropped"]) == (3, 2)
    for client in clients:
        await client.send(b"0\r\n\r\n")
        (await main.call()).reply()
        assert (await client.response()).status == 200
    await world.until(lambda: shadow.count == 1, "the copy that had a place")
    assert world.cluster("shadow")["bodies"] == 0


@apart(clock=True)
async def test_who_got_a_place_asks_no_second_time(world: World) -> None:
    """The look at the queue ends with the wait: a second connection would carry the request twice."""
    backend = await world.backend()
    port = await open_site(world, backend, 4, body_start=10, body_buffer=0, body_share=25)
    holder = await post(world, port, HEAD % 20 + b"x" * 10)
    waiting = await post(world, port, HEAD % 20 + b"y" * 10)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    holder.reset()
    await world.until(lambda: any(b"y" in link.received for link in backend.links))
    shift(2)
    await world.turns()
    await waiting.send(b"y" * 10)
    (await backend.call()).reply(b"once")
    assert (await waiting.response()).body == b"once"
    assert len(backend.links) == 2, "one for each of them"
    assert held(world) == 0


@apart(clock=True)
async def test_a_large_body_that_comes_takes_the_place_of_one_that_does_not(world: World) -> None:
    """After a second; who has shown since it got its place that it comes keeps it for five."""
    backend = await world.backend()
    port = await open_site(
        world, backend, 4, body_start=1000, body_share=75, body_rate=1000, body_buffer=0
    )
    steady = await post(world, port, HEAD % 100_000 + b"x" * 5000)
    silent = await post(world, port, HEAD % 100_000 + b"x" * 5000)
    drips = await post(world, port, HEAD % 100_000 + b"x" * 5000)
    await world.until(lambda: len(backend.links) == 3)
    await world.until(lambda: world.counters["upstream_bytes_sent"] > 15_000)
    await give(world, steady, b"x" * 5000)
    early = await post(world, port, HEAD % 50_000 + b"x" * 5000)
    assert world.cluster(CLUSTER)["bodies_waiting"] == 1
    early.reset()
    await world.until(lambda: world.engine.active == 3)
    assert world.counters["bodies_gave_way"] == 0
    shift(1.2)
    await give(world, drips, b"x" * 100)
    waiting = await post(world, port, HEAD % 50_000 + b"x" * 5000)
    assert (await silent.response()).status == 408
    await world.until(lambda: held(world) == 3, "its place is taken")
    shift(1.2)
    another = await post(world, port, HEAD % 50_000 + b"x" * 5000)
    assert (await drips.response()).status == 408
    shift(1.2)
    last = await post(world, port, HEAD % 50_000 + b"x" * 5000)
    assert (await waiting.response()).status == 408
    await world.until(lambda: held(world) == 3, "four seconds after its last bytes")
    assert world.counters["bodies_gave_way"] == 3
    for client in (steady, another, last):
        client.close()


@apart(clock=True)
async def test_who_stopped_coming_stands_behind_those_that_come(world: World) -> None:
    """In the queue of the share, and when it is full: then it is told 503, and who comes has its turn."""
    backend = await world.backend()
    port = await open_site(
        world, backend, 4, body_start=1000, body_share=25, body_rate=1000, body_buffer=0
    )
    holder = await post(world, port, HEAD % 100_000 + b"x" * 5000)
    await world.until(lambda: len(backend.links) == 1)
    await give(world, holder, b"x" * 5000)
    stopped = [await post(world, port, HEAD % 6000 + b"x" * 5000) for _ in range(4)]
    shift(1.2)
    await give(world, holder, b"x" * 5000)
    comes = await post(world, port, (HEAD % 6000).replace(b"slow", b"come") + b"x" * 5000)
    assert (await stopped.pop(0).response()).status == 503
    assert world.counters["pending_refused"] == 1
    assert world.cluster(CLUSTER)["bodies_waiting"] == 4
    holder.reset()
    await world.until(lambda: any(b"POST /come " in link.received for link in backend.links))
    for client in (comes, *stopped):
        await client.send(b"x" * 1000)
        (await backend.call()).reply()
        assert (await client.response()).status == 200
