"""Second tries: what may be repeated, how often, and the budget of all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.apart import apart, shift
from core.backend import Call, make_response, say
from core.client import Gone, make_request
from core.fleets import (
    CLUSTER,
    ROW,
    make_cluster,
    make_fleet,
    make_host,
    make_listener,
    make_rule,
)
from core.world import World
from edgefast import ir

RETRY = ir.Retry(codes=(503,), attempts=2, backoff=1)


def failing(times: int) -> Callable[[Call], bytes]:
    """Answers 503 so many times, then 200 with the number of the try."""
    seen = 0

    def answer(call: Call) -> bytes:
        nonlocal seen
        seen += 1
        return make_response(b"%d" % seen, 503 if seen <= times else 200)

    return answer


@pytest.mark.parametrize(
    ("failures", "status", "tries"), [(0, 200, 1), (1, 200, 2), (2, 200, 3), (3, 503, 3)]
)
async def test_retry_on_a_code(world: World, failures: int, status: int, tries: int) -> None:
    backend = await world.backend(failing(failures))
    port = await world.serve(make_fleet(make_rule(retry=RETRY), make_cluster(backend.port)))
    answer = await (await world.client(port)).get()
    assert (answer.status, answer.body) == (status, b"%d" % tries)
    assert world.counters["retries"] == world.counters.row(ROW)["retries"] == tries - 1
    assert world.counters["retries_over_budget"] == 0
    (line,) = world.lines()
    assert line["tries"] == tries
    assert ("RT" in line["flags"]) == (tries > 1)


async def test_other_codes_are_answers(world: World) -> None:
    backend = await world.backend(lambda call: make_response(status=500))
    port = await world.serve(make_fleet(make_rule(retry=RETRY), make_cluster(backend.port)))
    assert (await (await world.client(port)).get()).status == 500
    assert backend.count == 1


async def test_the_body_is_sent_again(world: World) -> None:
    backend = await world.backend(failing(1))
    bodies: list[bytes] = []
    inner = failing(1)

    def answer(call: Call) -> bytes:
        bodies.append(call.message.body)
        return inner(call)

    backend.answer = answer
    client = await world.client_of(make_fleet(make_rule(retry=RETRY), make_cluster(backend.port)))
    assert (await client.ask(make_request(method="POST", body=b"x" * 60_000))).status == 200
    assert bodies == [b"x" * 60_000] * 2
    bodies.clear()
    inner = failing(1)
    pieces = b"".join(b"5\r\n%05d\r\n" % i for i in range(100)) + b"0\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n"
    assert (await client.ask(head + pieces)).status == 200
    assert bodies == [b"".join(b"%05d" % i for i in range(100))] * 2


async def test_a_body_that_is_too_large_to_keep_is_sent_once(world: World) -> None:
    backend, client = await world.pair(failing(1), make_rule(retry=RETRY))
    await client.send(make_request(method="PUT", body=b"x" * 300_000))
    assert (await client.response()).status == 503
    assert backend.count == 1


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize(
    ("method", "size", "status"),
    [
        *[(method, 1, 200) for method in ("PUT", "DELETE")],
        *[(method, 0, 200) for method in ("GET", "HEAD", "OPTIONS")],
        *[(method, 1, 502) for method in ("POST", "PATCH")],
        ("PUT", 200_000, 502),  # more than is kept for a second try
    ],
)
async def test_a_pooled_connection_that_broke(
    world: World, method: str, size: int, status: int, closes: bool
) -> None:
    """The reuse race: only what is idempotent is sent again, without any retry in the route."""
    backend, client = await world.pair(say("x"))
    assert (await client.get()).status == 200

    def cut(call: Call) -> bytes | None:
        backend.answer = say("again")
        (call.link.close if closes else call.link.abort)()
        return None

    backend.answer = cut
    request = make_request(method=method, body=b"1" * size)
    assert (await client.ask(request, head=method == "HEAD")).status == status
    assert backend.count == (3 if status == 200 else 2)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_zero_attempts_are_no_second_try_of_anything(world: World, method: str) -> None:
    """`attempts: 0` also turns off the retries that are safe without a setting."""
    rule = make_rule(retry=ir.Retry(codes=(503,), attempts=0))
    backend, client = await world.pair(say("x"), rule)
    assert (await client.get()).status == 200
    backend.answer = lambda call: make_response(status=503)
    assert (await client.ask(make_request(method=method))).status == 503
    assert backend.count == 2
    backend.answer = lambda call: call.link.abort()
    assert (await client.ask(make_request(method=method))).status in (502, 503)
    assert backend.count == 3
    mixed = await world.serve(make_fleet(rule, make_cluster(world.refusing_port(), backend.port)))
    backend.answer = say("x")
    client = await world.client(mixed)
    # each endpoint is asked first in turn, and the one that refuses is the only one that is asked
    assert 503 in {(await client.ask(make_request(method=method))).status for _ in range(20)}


async def test_a_fresh_connection_that_breaks_is_not_tried_again(world: World) -> None:
    backend, client = await world.pair()
    await client.send(make_request())
    (await backend.call()).link.abort()
    assert (await client.response()).status == 502
    assert backend.count == 1


async def test_a_route_that_retries_answers_503_when_every_connection_breaks(world: World) -> None:
    def cut(call: Call) -> None:
        call.link.close()

    backend = await world.backend(cut)
    rule = make_rule(retry=ir.Retry(attempts=2, backoff=1))
    client = await world.client_of(make_fleet(rule, make_cluster(backend.port)))
    assert (await client.get()).status == 503
    assert backend.count == 3
    assert (await client.ask(make_request(method="POST", body=b"x"))).status in (502, 503)
    assert backend.count == 4, "a POST is not repeated"


async def test_refused_connections_move_on_to_other_endpoints(world: World) -> None:
    """Nothing was sent, so even a POST may go elsewhere; each endpoint is asked once."""
    bad = [world.refusing_port(), world.refusing_port()]
    good = await world.backend(say("good"))
    client = await world.client_of(make_fleet(make_cluster(*bad, good.port)))
    for _ in range(12):
        answer = await client.ask(make_request(method="POST", body=b"once"))
        assert (answer.status, answer.body) == (200, b"good")
    assert good.count == 12


async def test_every_endpoint_is_asked_once_at_most(world: World) -> None:
    bad = [world.refusing_port(), world.refusing_port()]
    port = await world.serve(make_fleet(make_cluster(*bad)))
    answer = await (await world.client(port)).get()
    assert (answer.status, answer.body) == (503, b"the backend could not be reached\n")
    assert world.counters["upstream_connects"] == 2


async def test_nothing_is_repeated_once_a_byte_is_out(world: World) -> None:
    backend, client = await world.pair(None, make_rule(retry=RETRY))
    await client.send(make_request())
    call = await backend.call()
    call.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345")
    await world.until(lambda: world.counters["downstream_bytes_sent"] > 0)
    call.link.abort()
    with pytest.raises(Gone):
        await client.response()
    assert backend.count == 1


@pytest.mark.parametrize(("active", "budget"), [(30, 6), (19, 3), (10, 3), (3, 3)])
async def test_the_budget_is_a_fifth_of_active_requests(
    world: World, active: int, budget: int
) -> None:
    backend = await world.backend()
    port = await world.serve(make_fleet(make_rule(retry=RETRY), make_cluster(backend.port)))
    clients = [await world.client(port) for _ in range(active)]
    for client in clients:
        await client.send(make_request())
    calls = await backend.calls(active)
    for call in calls:
        call.reply(status=503)
    again = await backend.calls(budget)
    await world.until(lambda: world.engine.active == budget, "the others have their 503")
    assert backend.count == active + budget
    assert world.counters["retries"] == budget
    assert world.counters["retries_over_budget"] == active - budget
    for call in again:
        call.reply(b"ok")
    statuses = sorted([(await client.response()).status for client in clients])
    assert statuses == [200] * budget + [503] * (active - budget)
    # the budget is free again
    await clients[0].send(make_request())
    (await backend.call()).reply(status=503)
    (await backend.call()).reply(b"ok")
    assert (await clients[0].response()).status == 200


async def test_the_client_may_leave_between_two_tries(world: World) -> None:
    backend = await world.backend()
    slow = ir.Retry(codes=(503,), attempts=5, backoff=5_000)
    client = await world.client_of(make_fleet(make_rule(retry=slow), make_cluster(backend.port)))
    await client.send(make_request())
    (await backend.call()).reply(status=503)
    await world.until(lambda: world.counters["retries"] == 1)
    client.reset()
    await world.until(lambda: world.engine.active == 0)
    assert backend.count == 1
    assert world.counters.row(ROW)["requests_aborted"] == 1


@apart(clock=True)
async def test_waits_double_up_to_ten_times_the_base(world: World) -> None:
    """HTTPRouteRetry.backoff is a minimum; it doubles with each try, to ten times the base at most."""
    backend = await world.backend()
    retry = ir.Retry(codes=(503,), attempts=6, backoff=25_000)
    rule = make_rule(retry=retry, timeouts=ir.Timeouts(request=0))
    listener = make_listener(stream_idle_timeout=24 * 3_600_000)
    client = await world.client_of(make_fleet(listener, rule, make_cluster(backend.port)))
    await client.send(make_request())
    for tries, longest in enumerate((35, 50, 100, 200, 250, 250), start=1):
        (await backend.call()).reply(status=503)
        await world.until(lambda: world.engine.dump()["clusters"][0]["connections"] == 0)
        shift(22)
        await world.turns()
        assert backend.count == tries
        shift(longest - 22)
    (await backend.call()).reply(b"at last")
    assert (await client.response()).body == b"at last"


async def test_retries_use_the_cluster_of_the_first_try(world: World) -> None:
    one, two = await world.backend(failing(1)), await world.backend(say("two"))
    rule = make_rule("one", retry=RETRY)
    clusters = make_cluster(one.port, name="one"), make_cluster(two.port, name="two")
    port = await world.serve(make_fleet(rule, *clusters))
    assert (await (await world.client(port)).get()).body == b"2"
    assert world.cluster("one")["connections"] == 1
    assert CLUSTER not in [one["name"] for one in world.engine.dump()["clusters"]]


async def test_a_cluster_whose_requests_fail_leaves_others_their_budget(world: World) -> None:
    """Repeats that hang at one backend are counted against it alone."""
    broken, sound = await world.backend(), await world.backend()
    retry = ir.Retry(codes=(503,), attempts=1, backoff=1)
    fleet = make_fleet(
        make_host(("/broken", make_rule("broken", retry=retry)), make_rule("sound", retry=retry)),
        make_cluster(broken.port, name="broken"),
        make_cluster(sound.port, name="sound"),
    )
    port = await world.serve(fleet)
    lost = [await world.client(port) for _ in range(4)]
    for client in lost:
        await client.send(make_request("/broken"))
    for call in await broken.calls(4):
        call.reply(status=503)
    hanging = await broken.calls(3)
    await world.until(lambda: world.counters["retries_over_budget"] == 1)
    client = await world.client(port)
    await client.send(make_request())
    (await sound.call()).reply(status=503)
    (await sound.call()).reply(b"second")
    assert (await client.response()).body == b"second"
    assert world.counters["retries_over_budget"] == 1
    for call in hanging:
        call.reply()
    assert sorted([(await client.response()).status for client in lost]) == [200] * 3 + [503]
