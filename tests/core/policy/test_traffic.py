"""Policies of traffic: the largest body, timeouts; which of several holds; what is edited reaches rules that are resolved."""

from __future__ import annotations

import pytest

from core.apart import apart, shift
from core.backend import say
from core.client import Gone, make_request
from core.fleets import encode, make_cluster, make_fleet, make_host, make_listener, make_rule
from core.policy.authorized import AUTH, make_auth, passing
from core.policy.policies import TRAFFIC, serve, traffic
from core.world import World
from edgefast import ir
from edgefast.table.shards import make_resource

SHORT = 60  # milliseconds
OTHER = "traffic/infra/t"
THIRD = "traffic/infra/u"
LINE = b"x-edge-expected-rq-timeout-ms"


async def posted(world: World, client: object, size: int) -> int:
    body = make_request(method="POST", body=b"x" * size)
    return (await client.ask(body)).status  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("units", "ceilings", "listener", "most"),
    [
        ({TRAFFIC: 10}, 0, 0, 10),
        ({TRAFFIC: 10}, 0, 5, 5),  # no more than the listener's
        ({TRAFFIC: 10}, 1, 5, 5),
        ({TRAFFIC: 10}, 0, 12, 10),
        ({TRAFFIC: 0}, 0, 5, 5),
        ({TRAFFIC: 0}, 0, 0, None),
        ({TRAFFIC: None}, 0, 5, 5),
        ({TRAFFIC: None, OTHER: 7}, 0, 5, 5),
        ({TRAFFIC: 9, OTHER: 7}, 0, 0, 9),
        ({TRAFFIC: 9, OTHER: 7}, 1, 0, 7),
        ({TRAFFIC: 7, OTHER: 9}, 1, 0, 7),
        ({TRAFFIC: 9}, 1, 0, 9),
        ({TRAFFIC: 9, OTHER: 7}, 2, 0, 7),
        ({TRAFFIC: None, OTHER: 7}, 1, 0, 7),
        ({TRAFFIC: 0, OTHER: 7}, 2, 0, 7),
        ({TRAFFIC: 9, OTHER: 0}, 2, 0, 9),
    ],
)
async def test_body_size(
    world: World, units: dict[str, int | None], ceilings: int, listener: int, most: int | None
) -> None:
    made = [
        traffic(name, **({} if size is None else {"body_size": size}))
        for name, size in units.items()
    ]
    rule = {"traffic": tuple(units), "ceilings": ceilings}
    client = await serve(world, *made, rule=rule, body_size=listener)
    assert await posted(world, client, 4 if most is None else most) == 200
    if most is not None:
        assert await posted(world, client, most + 1) == 413
        assert world.lines()[-1]["flags"] == "TL"
    else:
        assert await posted(world, client, 3000) == 200


async def test_a_body_without_a_length_is_counted(world: World) -> None:
    client = await serve(world, traffic(body_size=10), rule={"traffic": (TRAFFIC,)})
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    assert (await client.ask(head + b"a\r\n0123456789\r\n0\r\n\r\n")).status == 200
    assert (await client.ask(head + b"8\r\n01234567\r\n3\r\n890\r\n0\r\n\r\n")).status == 413


@pytest.mark.parametrize(
    ("own", "units", "ceilings", "told"),
    [
        (None, [40], 0, b"40"),
        (None, [None], 0, b"15000"),
        (None, [0], 0, None),
        (20, [40], 0, b"20"),
        (90, [40], 0, b"90"),
        (0, [40], 0, None),
        (90, [40], 1, b"40"),
        (20, [40], 1, b"20"),
        (0, [40], 1, b"40"),
        (None, [40, 20], 1, b"20"),
        (None, [20, 40], 1, b"20"),
        (None, [40], 1, b"40"),
        (None, [0], 1, None),
        (None, [40, 20], 2, b"20"),
        (None, [None, 20], 1, b"20"),
        (90, [None, 20], 1, b"90"),
        (None, [None, 40, 20], 1, b"40"),
        (None, [60, 40, 20], 2, b"20"),
        (None, [60, 40, 50], 2, b"40"),
    ],
)
async def test_whose_timeout_holds(
    world: World, own: int | None, units: list[int | None], ceilings: int, told: bytes | None
) -> None:
    """Minutes, so that none is over; the backend is told which it is."""
    names = [TRAFFIC, OTHER, THIRD][: len(units)]
    made = [
        traffic(name, **({} if one is None else {"request_timeout": one * 60_000}))
        for name, one in zip(names, units, strict=True)
    ]
    timeouts = ir.Timeouts(request=None if own is None else own * 60_000)
    rule = make_rule(traffic=tuple(names), ceilings=ceilings, timeouts=timeouts)
    backend = await world.backend()
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), *made))
    await client.send(make_request())
    call = await backend.call()
    if told is not None and told != b"15000":
        told += b"0000"
        told = b"%d" % (int(told) * 6)
    assert call.message.value(LINE) == told
    call.reply()
    assert (await client.response()).status == 200


async def test_a_request_timeout_is_504(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(request_timeout=SHORT)
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), unit))
    answer = await client.get()
    assert answer.status == 504
    assert (await backend.call()).message.value(LINE) == b"%d" % SHORT
    assert world.lines()[0]["flags"] == "UT"
    edited = make_resource("policy", TRAFFIC, encode(traffic(request_timeout=600_000)))
    assert world.send([edited], [], "v") == []  # the rule was resolved long ago
    await client.send(make_request())
    call = await backend.call()
    assert call.message.value(LINE) == b"600000"
    call.reply()
    assert (await client.response()).status == 200


async def test_it_bounds_the_whole_answer(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(request_timeout=SHORT)
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), unit))
    await client.send(make_request())
    (await backend.call()).send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
    with pytest.raises(Gone):
        await client.response()
    assert world.lines()[0]["flags"] == "UT"


async def test_idle_timeout(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(idle_timeout=SHORT)
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), unit))
    assert (await client.get()).status == 504
    assert world.lines()[0]["flags"] == "SI"


async def test_who_waits_to_be_let_in_is_idle_for_as_long_as_the_listener_says(
    world: World,
) -> None:
    """A rule's owner does not say how long strangers may keep a place."""
    service, backend = await world.backend(), await world.backend()
    rule = make_rule(traffic=(TRAFFIC,), ext_auth=make_auth(body=100, timeout=60_000))
    fleet = make_fleet(
        make_listener(stream_idle_timeout=SHORT),
        make_host(rule),
        make_cluster(backend.port),
        make_cluster(service.port, name=AUTH),
        traffic(idle_timeout=0),
    )
    client = await world.client_of(fleet)
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 9\r\n\r\nhalf")
    assert (await client.response()).status in (408, 504)
    assert world.lines()[0]["flags"] == "SI"


@apart(clock=True)
async def test_who_was_let_in_is_idle_for_as_long_as_the_policy_says(world: World) -> None:
    service, backend = await world.backend(passing()), await world.backend()
    rule = make_rule(traffic=(TRAFFIC,), ext_auth=make_auth(), timeouts=ir.Timeouts(request=0))
    fleet = make_fleet(
        make_listener(stream_idle_timeout=5_000),
        make_host(rule),
        make_cluster(backend.port),
        make_cluster(service.port, name=AUTH),
        traffic(idle_timeout=0),
    )
    client = await world.client_of(fleet)
    await client.send(make_request())
    call = await backend.call()
    shift(3600)
    await world.turns()
    call.reply(b"late")
    assert (await client.response()).body == b"late"


@apart(clock=True)
async def test_an_idle_timeout_of_zero_is_none(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(idle_timeout=0, request_timeout=0)
    listener = make_listener(stream_idle_timeout=5_000)
    client = await world.client_of(
        make_fleet(listener, make_host(rule), make_cluster(backend.port), unit)
    )
    await client.send(make_request())
    call = await backend.call()
    shift(3600)
    await world.turns()
    call.reply(b"late")
    assert (await client.response()).body == b"late"


async def test_a_backend_that_takes_nothing_is_504(world: World) -> None:
    backend = await world.backend()
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(send_timeout=SHORT)
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), unit))
    size = 64 << 20
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: %d\r\n\r\n" % size)
    await world.until(lambda: backend.links)
    backend.links[0].pause()

    async def pour() -> None:
        try:
            for _ in range(size >> 16):
                await client.send(b"x" * 65536)
        except OSError:
            pass

    task = world.loop.create_task(pour())
    assert (await client.response()).status == 504
    task.cancel()
    (line,) = world.lines()
    assert line["flags"] == "UT"
    assert world.counters.row("ns/web\t0")["timeouts"] == 1


async def test_a_backend_that_takes_a_little_now_and_then_has_time(world: World) -> None:
    backend = await world.backend(say("done"))
    rule = make_rule(traffic=(TRAFFIC,))
    unit = traffic(send_timeout=400)
    client = await world.client_of(make_fleet(make_host(rule), make_cluster(backend.port), unit))
    size = 16 << 20
    await client.send(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: %d\r\n\r\n" % size)
    await world.until(lambda: backend.links)
    for _ in range(size >> 16):
        await client.send(b"x" * 65536)
    assert (await client.response()).status == 200
