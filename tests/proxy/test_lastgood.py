"""The last good table on disk: whole, private, and never in the way of service."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgefast.proxy.agent import Agent
from edgefast.proxy.lastgood import LastGood, LastGoodError
from edgefast.table import diff
from proxy.living import mark_of, until, with_agent
from proxy.tables import make_fleet, make_shards
from wire.harness.ports import free_port


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    kept = LastGood(tmp_path / "state")
    shards = make_fleet(8080, hosts=20)
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
    with pytest.raises(LastGoodError, match="not a whole table"):
        kept.load()


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
        agent.keeper.vouch(shards.version)
        await until(kept.path.exists, "file")
        assert kept.load().version == shards.version
        assert await mark_of(port) == "v1"

    with_agent(talk, state_dir=tmp_path)


@pytest.mark.wire
def test_the_agent_serves_on_when_nothing_can_be_kept() -> None:
    port = free_port()

    async def talk(agent: Agent) -> None:
        kept = agent.last_good
        assert kept is not None
        shards = make_fleet(port)
        agent.keeper.vouch(shards.version)  # before anybody holds it, as good as after
        await agent.publish(shards)
        await until(lambda: kept.failures, "failure")
        assert await mark_of(port) == "v1"
        assert agent.ready

    with_agent(talk, state_dir=Path("/proc/self/fdinfo"))
