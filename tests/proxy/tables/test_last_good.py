"""The last good table on disk: whole, private, and never in the way of service."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from edgefast.proxy.agent.agent import Agent
from edgefast.proxy.tables import last_good as module
from edgefast.proxy.tables.last_good import LastGood, LastGoodError
from edgefast.proxy.tables.last_good_keeper import LastGoodKeeper
from edgefast.table import Shards, diff
from edgefast.table.format import digest_records, table_format
from proxy.living import agent_test, mark_of, until, with_agent
from proxy.shards import make_fleet, make_shards
from wire.harness.ports import free_port


@pytest.mark.parametrize("hosts", [1, 20, 300])  # in one part, and in several
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, hosts: int) -> None:
    kept = LastGood(tmp_path / "state")
    shards = make_fleet(8080, hosts=hosts)
    assert kept.save(shards)
    loaded = LastGood(tmp_path / "state").load()
    assert loaded.version == shards.version
    assert dict(loaded.resources) == dict(shards.resources)
    assert diff(shards, loaded).put == diff(shards, loaded).remove == ()
    assert kept.path.stat().st_mode & 0o777 == 0o600
    assert kept.path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(kept.path.parent) == [kept.path.name]


@pytest.mark.parametrize("cut", [0, 10, 40, 60, -1])
def test_half_a_file_is_no_table(tmp_path: Path, cut: int) -> None:
    kept = LastGood(tmp_path)
    kept.save(make_fleet(8080))
    kept.path.write_bytes(kept.path.read_bytes()[:cut])
    with pytest.raises(LastGoodError):
        kept.load()


def test_a_changed_bit_is_seen(tmp_path: Path) -> None:
    kept = LastGood(tmp_path)
    kept.save(make_fleet(8080))
    data = bytearray(kept.path.read_bytes())
    data[len(data) // 2] ^= 1
    kept.path.write_bytes(data)
    with pytest.raises(LastGoodError, match="an incomplete table"):
        kept.load()


def test_a_table_of_another_release_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = LastGood(tmp_path)
    kept.save(make_fleet(8080))
    monkeypatch.setattr(module, "table_format", lambda: "0123456789abcdef")
    with pytest.raises(LastGoodError, match="another release, in another format"):
        kept.load()
    kept.path.write_bytes(b"edgefast table 1\n" + b"x" * 100)
    with pytest.raises(LastGoodError, match="another release"):
        kept.load()


@pytest.mark.parametrize(
    ("key", "data", "part"),
    [
        (("widget", "a"), b"x", "of no known type"),
        (("listener", "a"), b"\x81\xa4name\xa1a", "missing required field"),
        (("cluster", "a"), b"\x81\xa4name\x01", "Expected `str`"),
        (("virtual_host", "a/*"), b"\0" * 64, "not a usable blob"),
        (("fragment", "a/*#0"), b"", "not a usable blob"),
    ],
)
def test_what_no_worker_would_take_is_no_table(
    tmp_path: Path, key: tuple[str, str], data: bytes, part: str
) -> None:
    kept = LastGood(tmp_path)
    kept.save(make_shards({key: data}))
    with pytest.raises(LastGoodError, match=part):
        kept.load()


def test_the_one_before_is_there_when_the_newest_is_not_whole(tmp_path: Path) -> None:
    kept = LastGood(tmp_path)
    first, second = make_fleet(8080), make_fleet(8081)
    kept.save(first)
    kept.save(second)
    assert kept.load().version == second.version
    kept.path.write_bytes(b"half")
    assert kept.load().version == first.version
    kept.path.unlink()
    assert kept.load().version == first.version


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    for name in ("last-good.new", "last-good.4711.new"):
        (tmp_path / name).write_bytes(b"keys")
    kept = LastGood(tmp_path)
    kept.tidy()
    assert os.listdir(tmp_path) == []
    (tmp_path / "last-good.new").symlink_to(tmp_path / "elsewhere")  # nobody's file is written to
    assert kept.save(make_fleet(8080))
    assert os.listdir(tmp_path) == [kept.path.name]
    LastGood(tmp_path / "missing").tidy()


class Settled:
    """What all workers hold, as a test says."""

    def __init__(self) -> None:
        self.shards: Shards | None = None

    def __call__(self) -> Shards | None:
        return self.shards


async def test_only_a_table_that_somebody_vouches_for_is_kept(tmp_path: Path) -> None:
    """Nor one without listener, whoever vouches; and the end writes what is due."""
    kept = LastGood(tmp_path)
    whole, half, empty = make_fleet(8080), make_fleet(8081), make_shards({})
    settled = Settled()
    keeper = LastGoodKeeper(kept, settled)

    running = asyncio.ensure_future(keeper.run())
    for shards in (half, whole, empty):
        settled.shards = shards
        keeper.look()
        if shards is not half:
            keeper.approve(shards.version)
    await until(kept.path.exists, "file")
    settled.shards = later = make_fleet(8082)
    keeper.approve(later.version)
    await asyncio.sleep(0)
    running.cancel()  # within the second after the first one
    await asyncio.wait([running])
    assert kept.load().version == later.version
    assert LastGood(tmp_path)._load(kept.path.with_name(module._BEFORE)).version == (whole.version)


def test_a_table_is_kept_as_soon_as_the_disk_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without another table, and without a word for every try."""
    monkeypatch.setattr("edgefast.proxy.tables.last_good_keeper._AGAIN", 0.01)
    folder = tmp_path / "state"
    folder.write_text("in the way")
    kept, settled = LastGood(folder), Settled()
    keeper = LastGoodKeeper(kept, settled)
    settled.shards = shards = make_fleet(8080)

    async def main() -> None:
        running = asyncio.ensure_future(keeper.run())
        keeper.approve(shards.version)
        await until(lambda: kept.failures > 2, "tries")
        folder.unlink()
        await until(lambda: kept.saved_at, "file")
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(main())
    assert kept.load().version == shards.version
    assert [one.getMessage().endswith(" again") for one in caplog.records] == [False, True]


def test_a_table_that_could_not_be_kept_is_tried_once_more_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.write_text("in the way")
    kept, settled = LastGood(folder), Settled()
    keeper = LastGoodKeeper(kept, settled)
    settled.shards = shards = make_fleet(8080)

    async def main() -> None:
        running = asyncio.ensure_future(keeper.run())
        keeper.approve(shards.version)
        await until(lambda: kept.failures, "the first try")
        folder.unlink()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(main())
    assert kept.load().version == shards.version


def test_the_format_follows_the_fields_and_not_the_words() -> None:
    class Record(msgspec.Struct):
        """One text."""

        name: str = ""

    class Same(msgspec.Struct):
        """Another text."""

        name: str = ""

    Same.__name__ = "Record"

    class Default(msgspec.Struct):
        name: str = "x"

    class Renamed(msgspec.Struct):
        names: str = ""

    class Retyped(msgspec.Struct):
        name: int = 0

    for one in (Default, Renamed, Retyped):
        one.__name__ = "Record"
        assert digest_records((one,)) != digest_records((Record,))
    assert digest_records((Same,)) == digest_records((Record,))
    assert table_format() == table_format()
    assert len(table_format()) == 16


def test_no_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(LastGoodError, match="No such file"):
        LastGood(tmp_path).load()


def test_a_full_disk_is_counted_and_leaves_the_old_file() -> None:
    """/dev/full is a disk that is always full; a link in it cannot be made at all."""
    kept = LastGood(Path("/proc/self/fdinfo"))
    assert not kept.save(make_shards({("cluster", "a"): b"1"}))
    assert kept.failures == 1
    assert kept.saved_at is None


def test_a_disk_that_fills_up_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = LastGood(tmp_path)
    kept.save(make_shards({("cluster", "a"): b"1"}))
    before = kept.path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert not kept.save(make_shards({("cluster", "a"): b"2"}))
    assert kept.path.read_bytes() == before
    assert os.listdir(tmp_path) == [kept.path.name]


@pytest.mark.wire
def test_the_agent_keeps_what_all_workers_took(tmp_path: Path) -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        kept = agent.last_good
        assert kept is not None
        shards = make_fleet(port)
        await agent.publish(shards)
        agent.keeper.approve(shards.version)
        await until(kept.path.exists, "file")
        assert kept.load().version == shards.version
        assert await mark_of(port) == "v1"

    with_agent(talk, state_dir=tmp_path)


@pytest.mark.wire
@agent_test(state_dir=Path("/proc/self/fdinfo"))
async def test_the_agent_serves_on_when_nothing_can_be_kept(agent: Agent) -> None:
    port = free_port()

    kept = agent.last_good
    assert kept is not None
    shards = make_fleet(port)
    agent.keeper.approve(shards.version)  # before anybody holds it, as good as after
    await agent.publish(shards)
    await until(lambda: kept.failures, "failure")
    assert await mark_of(port) == "v1"
    assert agent.ready
