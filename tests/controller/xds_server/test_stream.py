"""Streams over real gRPC and TLS: tables arrive, answers are heard, the slow hold nobody, and everything has an end."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from controller.xds_server import transport
from controller.xds_server.stream import Deadlines
from edgefast.table.shards import make_resource
from edgefast.xds.messages import COMMIT, METHOD, Request, encode_request
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import Refused
from tests.controller.waiting import until
from tests.controller.xds_server.loopback import (
    FLEET,
    ONE,
    POD,
    SYSTEM,
    TWO,
    Ended,
    Loopback,
    Proxy,
    client_pair,
    ended,
    pod,
    shards,
)

pytestmark = pytest.mark.wire


async def test_a_quiet_stream_outlives_its_keepalive_pings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream of a server that allows its pings is open when gRPC has ended that of a server that does not."""
    often = [("grpc.keepalive_time_ms", 100), ("grpc.http2.max_pings_without_data", 0)]

    async def read(loopback: Loopback, proxy: Proxy) -> asyncio.Future[Any]:
        await proxy.answer(await proxy.batch())
        await until(lambda: loopback.fleets.acks(FLEET)[POD].version == ONE.version)
        return asyncio.ensure_future(proxy.next())

    monkeypatch.setattr(transport, "KEEPALIVE_MINIMUM", 60)
    async with Loopback(tmp_path / "strict") as strict:
        monkeypatch.setattr(transport, "KEEPALIVE_MINIMUM", 0.05)
        async with Loopback(tmp_path / "lenient") as lenient, contextlib.AsyncExitStack() as sides:
            for loopback in (strict, lenient):
                loopback.fleets.publish(FLEET, ONE)
            one = await sides.enter_async_context(strict.proxy(options=often))
            other = await sides.enter_async_context(lenient.proxy(options=often))
            open_still, pinged_out = await read(lenient, other), await read(strict, one)
            with pytest.raises(Ended, match="Too many pings"):
                await pinged_out
            assert not open_still.done()
            open_still.cancel()


async def test_acks_are_heard_and_end_with_the_stream(loopback: Loopback) -> None:
    fleets = loopback.fleets
    heard: list[str] = []
    fleets.on_ack = heard.append
    fleets.publish(FLEET, ONE)
    assert fleets.acks(FLEET) == {}
    async with loopback.proxy() as proxy:
        batch = await proxy.batch()
        await until(lambda: POD in fleets.acks(FLEET))
        assert fleets.acks(FLEET)[POD].version == ""  # nothing is served yet
        await proxy.answer(batch)
        await until(lambda: fleets.acks(FLEET)[POD].version == ONE.version)
        ack = fleets.acks(FLEET)[POD]
        assert ack.connected and not ack.refused and ack.via == fleets.identity
        fleets.publish(FLEET, TWO)
        bad = Refused("virtual_host", "a", "a reason")
        await proxy.answer(await proxy.batch(), (bad,))
        await until(lambda: fleets.acks(FLEET)[POD].version == TWO.version)
        assert fleets.acks(FLEET)[POD].refused == (bad,)
    await until(lambda: not fleets.acks(FLEET)[POD].connected)
    assert fleets.acks(FLEET)[POD].version == TWO.version
    counts = loopback.server.counts
    assert (counts.acks, counts.nacks, counts.refused_resources) == (1, 1, 1)
    assert counts.streams == 0
    assert set(heard) == {FLEET} and len(heard) == 4


async def test_troubles_end_with_the_stream_and_are_no_answers_to_a_table(
    loopback: Loopback,
) -> None:
    trouble = ProxyProblem("EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "it is down")
    fleets = loopback.fleets
    fleets.publish(FLEET, ONE)
    async with loopback.proxy() as proxy:
        commit = (await proxy.take())[-1].nonce
        for troubles in ((trouble,), (), (trouble,)):
            again = Request(type=COMMIT, nonce=commit, node=proxy.node, troubles=troubles)
            await proxy.call.write(encode_request(again))
            await until(lambda told=troubles: fleets.acks(FLEET)[POD].troubles == told)
        assert fleets.acks(FLEET)[POD].version == ONE.version
    await until(lambda: not fleets.acks(FLEET)[POD].connected)
    assert not fleets.acks(FLEET)[POD].troubles
    assert (loopback.server.counts.acks, loopback.server.counts.nacks) == (1, 0)


async def test_a_table_is_sent_when_its_last_message_is(loopback: Loopback) -> None:
    fleets, counts = loopback.fleets, loopback.server.counts
    fleets.publish(FLEET, ONE)
    async with loopback.proxy() as proxy:
        await proxy.take()
        await until(lambda: fleets.acks(FLEET)[POD].version == ONE.version)
        before = counts.batches, counts.messages
        fleets.publish(FLEET, TWO)
        await fleets.sent(20)
        assert (counts.batches, counts.messages) == (before[0] + 1, before[1] + 1)
        fleets.publish(FLEET, ONE)
        await fleets.sent(
            20
        )  # the batch before is not answered: there is nothing that could be sent
        assert counts.batches == before[0] + 1
        await proxy.take()
        await until(lambda: counts.batches == before[0] + 2)


async def test_a_slow_proxy_holds_nobody_and_costs_one_message(loopback: Loopback) -> None:
    """Forty proxies read nothing of a table of 20 MiB while another one gets all of it, and every change."""
    big = shards(make_resource("cluster", f"c{i:03}", bytes(100_000)) for i in range(200))
    loopback.fleets.publish(FLEET, big)
    pair = client_pair(loopback.ring)
    slow = []
    async with asyncio.timeout(50):
        for number in range(40):
            slow.append(stuck := loopback.proxy(pair, node=pod(number)))
            await stuck.__aenter__()
        async with loopback.proxy(pair) as proxy:
            await proxy.take()
            assert proxy.version == big.version
            for i in range(20):
                changed = {**big.resources}
                changed["cluster", "c000"] = make_resource("cluster", "c000", b"%d" % i)
                table = shards(changed.values())
                loopback.fleets.publish(FLEET, table)
                batch = await proxy.take()
                assert [len(one.puts) for one in batch] == [1]
                assert proxy.version == table.version
        # The bytes of a resource were made once, whoever has read them.
        assert loopback.fleets.find(FLEET).history.encoded <= 200 + 20
        for one in slow:
            await one.__aexit__(None, None, None)


async def test_a_proxy_that_does_not_read_is_let_go(tmp_path: Path) -> None:
    big = shards(make_resource("cluster", f"c{i:03}", bytes(900_000)) for i in range(60))
    async with Loopback(tmp_path / "keys", deadlines=Deadlines(write=0.5)) as loopback:
        loopback.fleets.publish(FLEET, big)
        async with loopback.proxy() as proxy:
            await until(lambda: loopback.server.refusals.counts["slow"] == 1, 20)
            await until(lambda: loopback.server.counts.streams == 0)
            assert loopback.server.counts.batches == 0
            assert (await proxy.end()).code == "DEADLINE_EXCEEDED"


async def test_a_commit_that_is_not_answered_ends_the_stream(tmp_path: Path) -> None:
    async with Loopback(tmp_path / "keys", deadlines=Deadlines(answer=0.3)) as loopback:
        loopback.fleets.publish(FLEET, ONE)
        async with loopback.proxy() as proxy:
            await proxy.batch()
            # Whatever is published meanwhile does not make the proxy quicker.
            loopback.fleets.publish(FLEET, TWO)
            said = await proxy.end()
        assert said.code == "DEADLINE_EXCEEDED" and "answer" in said.details
        assert loopback.server.refusals.counts["slow"] == 1


async def test_an_answered_proxy_may_be_quiet_for_any_time(tmp_path: Path) -> None:
    async with Loopback(tmp_path / "keys", deadlines=Deadlines(answer=1.5)) as loopback:
        loopback.fleets.publish(FLEET, ONE)
        async with loopback.proxy() as proxy:
            await proxy.take()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.5):
                    await proxy.call.read()


async def test_an_opening_that_does_not_end_is_ended(tmp_path: Path) -> None:
    async with Loopback(tmp_path / "keys", deadlines=Deadlines(opening=0.2)) as loopback:
        loopback.fleets.publish(FLEET, ONE)
        async with loopback.channel(client_pair(loopback.ring)) as channel:
            said = await ended(channel.stream_stream(METHOD)())
        assert said.code == "DEADLINE_EXCEEDED" and "opening" in said.details


async def test_the_newer_stream_of_a_node_ends_the_older(loopback: Loopback) -> None:
    loopback.fleets.publish(FLEET, ONE)
    async with loopback.proxy() as older:
        await older.take()
        async with loopback.proxy() as newer:
            await newer.take()
            said = await older.end()
            assert said.code == "ABORTED"
            # The end of the older one is not the node's end.
            await until(lambda: loopback.server.counts.streams == 1)
            assert loopback.fleets.acks(FLEET)[POD].connected
            loopback.fleets.publish(FLEET, TWO)
            await newer.take()


async def test_a_removed_fleet_ends_its_streams_and_no_other(loopback: Loopback) -> None:
    other = f"{SYSTEM}/edge-other-12345678"
    loopback.fleets.publish(FLEET, ONE)
    loopback.fleets.publish(other, ONE)
    pair = client_pair(loopback.ring, other)
    async with loopback.proxy() as gone, loopback.proxy(pair, node="edge-other-12345678-a") as kept:
        await gone.take()
        await kept.take()
        loopback.fleets.remove(FLEET)
        assert (await gone.end()).code == "UNAVAILABLE"
        assert loopback.fleets.acks(FLEET) == {}
        loopback.fleets.publish(other, TWO)
        await kept.take()
    loopback.fleets.publish(FLEET, TWO)
    async with loopback.proxy() as proxy:
        await proxy.take()
        assert proxy.version == TWO.version


async def test_shutdown_ends_streams_in_good_order(loopback: Loopback) -> None:
    loopback.fleets.publish(FLEET, ONE)
    async with loopback.proxy() as proxy:
        await proxy.take()
        await loopback.server.stop(0.05)
        assert (await proxy.end()).code in ("UNAVAILABLE", "CANCELLED")
    await until(lambda: loopback.server.counts.streams == 0)


async def test_a_port_that_is_taken_is_said(loopback: Loopback) -> None:
    with pytest.raises(OSError, match="cannot listen on 127.0.0.1:"):
        await loopback.server.serve_certificates(loopback.certificates)


async def test_an_error_of_ours_ends_one_stream_and_says_nothing_of_it(
    loopback: Loopback, caplog: Any
) -> None:
    def fail(fleet: str) -> None:
        raise RuntimeError("of the listener")

    loopback.fleets.publish(FLEET, ONE)
    loopback.fleets.on_ack = fail
    async with loopback.proxy() as proxy:
        said = await proxy.end()
    assert said.code == "INTERNAL" and "listener" not in said.details
    assert loopback.server.refusals.counts["bug"] == 1
    assert [one for one in caplog.records if one.exc_info]
    loopback.fleets.on_ack = str
    async with loopback.proxy() as proxy:
        await proxy.take()
