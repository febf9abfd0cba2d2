"""XdsClient and responses that commit: one message and one answer for a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.table.shards import TYPES
from edgefast.xds.messages import COMMIT
from edgefast.xds.rejections import Refused
from proxy.pki import Authority
from xds.living import Taker, hasten, running, until, write_files
from xds.plain import PlainServer
from xds.tables import table

pytestmark = pytest.mark.wire


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


async def test_a_change_that_commits_is_one_message_and_one_answer(
    tmp_path: Path, authority: Authority
) -> None:
    taker = Taker()
    bad = Refused("cluster", "a", "no such address: 1")
    taker.refuses = lambda shards: (bad,) if ("cluster", "a") in shards.resources else ()
    async with PlainServer(authority) as server:
        server.joined = True
        server.publish(table(b="1"))
        async with running(server.target, write_files(tmp_path, authority), taker) as client:
            stream = server.streams
            await until(lambda: stream and server.last.commits, "an answer")
            assert [one.type for one in server.last.answers] == [*TYPES[:-1], COMMIT]
            server.publish(table(a="1", b="1"))
            await until(lambda: len(server.last.commits) == 2, "the second answer")
            server.publish(table(b="1"))
            await until(lambda: len(server.last.commits) == 3, "the third answer")
            assert [kind for kind, _ in server.last.sent[-2:]] == ["cluster", "cluster"]
            assert [one.refused for one in server.last.commits] == [(), (bad,), ()]
            assert len(server.last.answers) == len(server.last.sent)
            assert [one.version for one in taker.tables] == [
                table(b="1").version,
                table(a="1", b="1").version,
                table(b="1").version,
            ]
            # It does not make what it says: all of it is asked for again.
            server.lies = ["0" * 32]
            server.publish(table(c="1"))
            await until(lambda: taker.version == table(c="1").version, "a table after all")
            assert client.facts.mismatches == 1 and len(server.streams) == 2
