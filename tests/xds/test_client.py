"""The client against a real server: tables and answers, over gRPC, TLS and loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

from edgefast.collections.sorted_map import find_unlike
from edgefast.table import Shards
from edgefast.table.shards import TYPES, make_resource
from edgefast.xds import client as clients
from edgefast.xds.messages import COMMIT, TABLE, encode_commit, encode_item, encode_response
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import MISMATCH, Refused
from proxy.pki import Authority
from xds.living import NODE, Taker, hasten, play, running, until, write_files
from xds.plain import PlainServer
from xds.tables import table
from xds.wire import Wire

pytestmark = pytest.mark.wire


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


async def test_tables_come_in_whole_in_order_and_are_answered(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    async with PlainServer(authority, mutual=True) as server:
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: server.streams and server.last.commits, "an answer")
            first = server.last
            assert [one.type for one in first.opening] == [*TYPES, COMMIT]
            assert first.opening[0].node == NODE
            assert [type_ for type_, _ in first.sent] == [*TYPES, COMMIT]
            assert taker.tables[0].resources == table(a="1").resources
            assert [one.type for one in first.answers] == [*TYPES, COMMIT]
            assert not any(one.refused for one in first.answers)
            # Only what differs, removals last and backwards.
            server.publish(table(a="2", b="1"))
            await until(lambda: len(first.commits) == 2, "the second answer")
            server.publish(table(b="1"))
            await until(lambda: len(first.commits) == 3, "the third answer")
            assert [t for t, _ in first.sent[len(TYPES) + 1 :]] == [
                "cluster",
                COMMIT,
                "cluster",
                COMMIT,
            ]
            assert [one.version for one in taker.tables] == [
                table(a="1").version,
                table(a="2", b="1").version,
                table(b="1").version,
            ]
            gone, come = find_unlike(taker.tables[1].resources, taker.tables[2].resources)
            assert (gone.keys(), come) == ({("cluster", "a")}, {})
            facts = client.facts
            assert (facts.connected, facts.streams, facts.commits) == (True, 1, 3)
            assert (facts.nacks, facts.mismatches, facts.failures) == (0, 0, 0)
            assert facts.received > 0 and facts.committed_at > 0
        await until(lambda: first.ended, "the stream's end")


async def test_nothing_that_is_held_is_sent_again(tmp_path: Path, authority: Authority) -> None:
    taker = Taker()
    files = write_files(tmp_path, authority)
    server = PlainServer(authority)
    async with server:
        server.publish(table(a="1", b="1"))
        async with running(server.target, files, taker) as client:
            await until(lambda: client.facts.commits == 1, "a table")
            await server.stop()
            await until(lambda: not client.facts.connected, "the end of the stream")
            assert "UNAVAILABLE" in client.facts.failed or client.facts.failed
            async with PlainServer(authority, port=server.port) as again:
                again.publish(table(a="1", b="2"))
                await until(lambda: client.facts.commits == 2, "a table of the next stream")
                assert again.last.held == {
                    **{key: one.version for key, one in taker.tables[0].resources.items()},
                    (COMMIT, TABLE): taker.tables[0].version,
                }
                assert [type_ for type_, _ in again.last.sent] == ["cluster", COMMIT]
                assert taker.tables[1].resources == table(a="1", b="2").resources


async def test_a_start_with_the_last_good_table_asks_for_the_difference(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    files = write_files(tmp_path, authority)
    async with PlainServer(authority) as server:
        server.publish(table(a="1"))
        async with running(server.target, files, taker, held=table(a="1")) as client:
            await until(lambda: client.facts.commits == 1, "a table")
            assert [type_ for type_, _ in server.last.sent] == [COMMIT]
            assert taker.version == table(a="1").version


async def test_only_what_is_refused_is_refused(tmp_path: Path, authority: Authority) -> None:
    taker = Taker()
    bad = Refused("cluster", "a", "no such address: 1")
    taker.refuses = lambda shards: (bad,) if ("cluster", "a") in shards.resources else ()
    files = write_files(tmp_path, authority)
    server = PlainServer(authority)
    async with server:
        server.publish(table(a="1"))
        async with running(server.target, files, taker) as client:
            await until(lambda: server.streams and server.last.commits, "an answer")
            refused = {one.type: one.refused for one in server.last.answers if one.refused}
            assert refused == {"cluster": (bad,), COMMIT: (bad,)}
            assert not server.last.commits[0].whole
            assert client.facts.nacks == 2
            # It is told again when something has changed, by the same nonce; and once.
            client.restate((bad,))
            client.restate(())
            await until(lambda: len(server.last.commits) == 2, "the second answer")
            assert server.last.commits[1].nonce == server.last.commits[0].nonce
            assert not server.last.commits[1].refused
            # After another table the word before is of no account.
            server.publish(table(a="1", b="1"))
            await until(lambda: len(server.last.commits) == 3, "the third answer")
            assert server.last.commits[2].refused == (bad,)
            await server.stop()
            async with PlainServer(authority, port=server.port) as again:
                again.publish(table(a="1", b="1"))
                await until(lambda: client.facts.commits == 3, "the next stream's table")
                # What is not in force is asked for, so that whoever serves now hears of it.
                assert ("cluster", "a") not in again.last.held
                assert (COMMIT, TABLE) not in again.last.held
                assert [type_ for type_, _ in again.last.sent] == ["cluster", COMMIT]
                await until(lambda: again.last.commits, "its answer")
                assert again.last.commits[0].refused == (bad,)


async def test_what_else_is_wrong_is_told_as_it_changes(
    tmp_path: Path, authority: Authority
) -> None:
    """Beside the answers to tables, and with those of the next one and the next stream."""
    trouble = ProxyProblem("EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "down")

    files = write_files(tmp_path, authority)
    server = PlainServer(authority)
    async with server:
        server.publish(table(a="1"))
        async with running(server.target, files, Taker()) as client:
            await until(lambda: server.streams and server.last.commits, "an answer")
            assert not server.last.commits[0].troubles
            client.tell((trouble,))
            await until(lambda: len(server.last.commits) == 2, "the second answer")
            assert server.last.commits[1].troubles == (trouble,)
            assert not server.last.commits[1].refused and client.facts.nacks == 0
            server.publish(table(a="1", b="1"))
            await until(lambda: len(server.last.commits) == 3, "the third answer")
            assert server.last.commits[2].troubles == (trouble,)
            await server.stop()
            async with PlainServer(authority, port=server.port) as again:
                again.publish(table(a="1", b="1"))
                await until(lambda: again.streams and again.last.commits, "an answer")
                assert again.last.commits[0].troubles == (trouble,)
                client.tell(())
                await until(lambda: len(again.last.commits) == 2, "the end of it")
                assert not again.last.commits[1].troubles


async def test_changes_meanwhile_are_one_batch(tmp_path: Path, authority: Authority) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.publish(table(a="0"))
        async with running(server.target, write_files(tmp_path, authority), taker):
            await until(lambda: taker.tables, "a table")
            taker.free.clear()
            for number in range(1, 21):
                server.publish(table(a=str(number)))
                await asyncio.sleep(0)
            await until(lambda: server.last.sent[-1][0] == COMMIT, "a batch")
            taker.free.set()
            await until(lambda: taker.version == table(a="20").version, "the newest table")
            assert len(taker.tables) <= 3


async def test_another_digest_is_told_and_all_is_asked_for_again(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.lies = ["0" * 32]
        server.silent = True
        server.publish(table(a="1"))
        files = write_files(tmp_path, authority)
        async with running(server.target, files, taker, held=table(z="1")) as client:
            await until(lambda: server.streams and taker.tables, "a table after all")
            first, second = server.streams[0], server.streams[-1]
            assert first is not second
            assert first.commits[0].whole == MISMATCH
            assert second.held == {}
            assert taker.version == table(a="1").version
            assert len(taker.tables) == 1
            assert client.facts.mismatches == 1


async def test_a_table_that_is_whole_is_taken_in_before_its_commit_and_answered_after_it(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.commits.clear()
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: taker.version == table(a="1").version, "the table")
            assert not server.last.answers and client.facts.commits == 0
            client.restate((Refused("cluster", "a", "late"),))  # for the answer that is to come
            server.commits.set()
            await until(lambda: server.last.commits, "an answer")
            assert len(taker.tables) == 1 and client.facts.commits == 1
            assert [one.reason for one in server.last.commits[-1].refused] == ["late"]


async def test_a_commit_that_contradicts_what_was_taken_in_is_a_mismatch(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.lies = ["0" * 32]
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: client.facts.commits == 1, "a commit in order")
            first, second = server.streams
            assert first.commits[0].whole == MISMATCH
            assert second.held == {}
            assert {one.version for one in taker.tables} == {table(a="1").version}
            assert client.facts.mismatches == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff\xff",
        encode_response("cluster", [], [], "1", ""),
        encode_response("cluster", [], ["x"], "", ""),
        encode_commit("", ""),
    ],
)
async def test_nonsense_ends_the_stream_and_nothing_else(
    tmp_path: Path, authority: Authority, nonsense: bytes
) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: taker.tables, "a table")
            server.spoil = lambda type_, data: nonsense
            server.publish(table(a="2"))
            await until(lambda: client.facts.failures > 2, "several streams")
            assert taker.version == table(a="1").version
            server.spoil = lambda type_, data: data
            await until(lambda: taker.version == table(a="2").version, "the next table")


async def test_half_a_batch_has_a_deadline(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_BATCH_DEADLINE", 1.0)

    taker = Taker()
    async with PlainServer(authority) as server:
        item = encode_item(make_resource("cluster", "a", b"2"))
        part = encode_response("cluster", [item], [], "1", "")
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: taker.tables, "a table")
            # Silence between batches ends nothing.
            await asyncio.sleep(1.3)
            assert client.facts.connected and len(server.streams) == 1
            await server.last.context.write(part)
            await until(lambda: len(server.streams) > 1, "another stream")
            await until(lambda: len(taker.tables) > 1, "another table")
            assert {one.version for one in taker.tables} == {table(a="1").version}


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    ],
)
async def test_a_refused_stream_is_tried_again(
    tmp_path: Path, authority: Authority, code: grpc.StatusCode
) -> None:
    taker = Taker()
    async with PlainServer(authority) as server:
        server.refuse = (code, "not you")
        server.publish(table(a="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            await until(lambda: len(server.streams) > 2, "several tries")
            assert not client.facts.connected
            await until(lambda: client.facts.failed, "a reason")
            if code is not grpc.StatusCode.CANCELLED:
                assert f"{code.name}: not you" in client.facts.failed
            server.refuse = None
            await until(lambda: taker.tables, "a table")
            assert client.facts.connected and not client.facts.failed


def test_an_error_in_taking_a_table_in_ends_the_stream_only(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk() -> None:
        taker = Taker()
        broken = [1]

        def refuses(_: Shards) -> tuple[Refused, ...]:
            if broken:
                raise ZeroDivisionError
            return ()

        taker.refuses = refuses
        async with PlainServer(authority) as server:
            server.publish(table(a="1"))
            async with running(server.target, write_files(tmp_path, authority), taker) as client:
                await until(lambda: client.facts.failures > 1, "two failures")
                broken.clear()
                await until(lambda: client.facts.commits, "a table")

    play(talk())
    assert "ZeroDivisionError" in caplog.text


async def test_a_server_that_is_there_no_more_without_a_word_is_given_up(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "KEEPALIVE_TIME", 0.3)
    monkeypatch.setattr(clients, "KEEPALIVE_TIMEOUT", 0.3)

    taker = Taker()
    files = write_files(tmp_path, authority)
    async with PlainServer(authority) as server, Wire(server.port) as wire:
        server.publish(table(a="1"))
        async with running(f"ipv4:127.0.0.1:{wire.port}", files, taker) as client:
            await until(lambda: server.streams and server.last.commits, "an answer")
            wire.cut.set()  # nothing comes through any more, and nobody says so
            await until(lambda: not client.facts.connected, "the end of the stream")
            wire.cut.clear()
            await until(lambda: client.facts.connected, "another stream")


# --- credentials ------------------------------------------------------------------------------------
