"""Watching: every way in which editors and tools change files is noticed, and noise is not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from edgefast.providers import watch as module
from edgefast.providers.files import SUFFIXES, FileSource, Reading, watch_files
from edgefast.providers.watch import Watch
from providers.test_files import names, route, write
from proxy.living import until


@pytest.fixture(autouse=True)
def _no_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 1000.0)  # what is noticed is noticed by events


def watching(
    paths: list[Path],
    talk: Callable[[Callable[[], Awaitable[Reading]]], Any],
    settle: float | None = None,
) -> None:
    """Run a conversation that is given `following`: wait for the next change."""

    async def main() -> None:
        source = FileSource(paths, settle=settle)
        watch = Watch(SUFFIXES)
        try:
            watch.follow(source.folders())
            source.read()

            async def following() -> Reading:
                return await asyncio.wait_for(watch_files(source, watch), 20)

            await talk(following)
        finally:
            watch.close()

    uvloop.run(main())


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_rename(path: Path, text: str) -> None:
    write(path, text)


def by_unlink(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def in_pieces(path: Path, text: str) -> None:
    with open(path, "w") as file:
        for start in range(0, len(text), 40):
            file.write(text[start : start + 40])
            file.flush()


def by_backup(path: Path, text: str) -> None:
    """As vim does it."""
    path.rename(path.with_name(path.name + "~"))
    path.write_text(text)


@pytest.mark.parametrize("change", [in_place, by_rename, by_unlink, in_pieces, by_backup])
@pytest.mark.parametrize("named", ["file", "folder"])
def test_every_way_of_writing(
    tmp_path: Path, change: Callable[[Path, str], None], named: str
) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        for number in range(5):
            change(file, route(f"n{number}"))
            while True:
                reading = await following()
                if names(reading) == {f"n{number}"}:
                    break
                # Nothing in between is ever half a file.
                assert names(reading) in ({"a"}, {f"n{number - 1}"}, set())
            assert not [one for one in reading.problems if one.severity == "error"]

    watching([file if named == "file" else tmp_path], talk)


def test_new_folders_and_removed_files(tmp_path: Path) -> None:
    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        write(tmp_path / "new" / "sub" / "a.yaml", route("a"))
        while names(await following()) != {"a"}:
            pass
        write(tmp_path / "new" / "sub" / "b.yaml", route("b"))
        assert names(await following()) == {"a", "b"}
        (tmp_path / "new" / "sub" / "a.yaml").unlink()
        assert names(await following()) == {"b"}

    watching([tmp_path], talk)


def test_a_link_whose_target_changes(tmp_path: Path) -> None:
    write(tmp_path / "real" / "x.yaml", route("a"))
    link = tmp_path / "links" / "a.yaml"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "real" / "x.yaml")

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        for number in range(5):
            in_pieces(tmp_path / "real" / "x.yaml", route(f"n{number}"))
            reading = await following()
            assert names(reading) == {f"n{number}"}
            assert reading.problems == ()

    watching([link], talk)


@pytest.mark.parametrize("asked", ["cur", "cur/more", "cur/more/a.yaml"])
def test_a_link_on_the_way_that_is_swapped(tmp_path: Path, asked: str) -> None:
    """As git-sync and `ln -sfn` do it."""

    def swap(number: int) -> None:
        write(tmp_path / "versions" / str(number) / "more" / "a.yaml", route(f"n{number}"))
        fresh = tmp_path / "links" / "fresh"
        fresh.symlink_to(Path("..") / "versions" / str(number))
        fresh.rename(tmp_path / "links" / "cur")

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        for number in range(1, 4):
            swap(number)
            while names(await following()) != {f"n{number}"}:
                pass

    (tmp_path / "links").mkdir()
    swap(0)
    watching([tmp_path / "links" / asked], talk)


def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder / "a.yaml", route("a"))

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        folder.rename(tmp_path / "away")
        reading = await following()
        assert names(reading) == {"a"}
        assert len(reading.problems) == 1
        write(tmp_path / "new" / "a.yaml", route("b"))
        (tmp_path / "new").rename(folder)
        while names(reading := await following()) != {"b"}:
            pass
        assert reading.problems == ()

    watching([folder], talk)


def test_noise_beside_the_file_wakes_nobody(tmp_path: Path) -> None:
    async def talk(_: object) -> None:
        watch = Watch(SUFFIXES)
        watch.follow({tmp_path: frozenset({"a.yaml"})})
        (tmp_path / "b.yaml").write_text("x")
        (tmp_path / "log").write_text("x")
        for _ in range(5):
            await asyncio.sleep(0)
        assert not await watch._changed_within(0.05)
        (tmp_path / "a.yaml").write_text("x")
        assert await watch._changed_within(10)
        watch.close()

    write(tmp_path / "a.yaml", route("a"))
    watching([tmp_path / "a.yaml"], talk)


def test_an_open_file_is_busy_until_it_is_closed(tmp_path: Path) -> None:
    async def talk(_: object) -> None:
        watch = Watch(SUFFIXES)
        watch.follow({tmp_path: None})
        path = tmp_path / "a.yaml"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"x")
        await until(lambda: str(path) in watch.events().busy, "busy file")
        os.close(fd)
        await until(
            lambda: str(path) not in watch.events().busy, "closed file"
        )  # BUSY is 10 minutes
        watch.close()

    write(tmp_path / "b.yaml", route("b"))
    watching([tmp_path], talk)


def test_a_writer_that_goes_silent_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY", 0.1)
    monkeypatch.setattr(module, "CREATED", 0.1)

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        fd = os.open(tmp_path / "a.yaml", os.O_WRONLY | os.O_CREAT)
        os.write(fd, route("a").encode())
        while names(await following()) != {"a"}:  # the folder is no longer empty: a look of its own
            pass
        os.close(fd)

    watching([tmp_path], talk)


def test_without_inotify_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_WITHOUT_INOTIFY", 0.01)

    async def main() -> None:
        source = FileSource([tmp_path])
        watch = Watch(SUFFIXES)
        watch.close()
        watch._complete = False
        assert not watch.follow(source.folders())
        source.read()
        write(tmp_path / "a.yaml", route("b"))
        assert names(await asyncio.wait_for(watch_files(source, watch), 20)) == {"b"}

    write(tmp_path / "a.yaml", route("a"))
    asyncio.run(main())


@pytest.mark.parametrize("named", ["conf", "link", "./conf/../conf"])
def test_a_renamed_file_is_read_at_once_however_its_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (tmp_path / "link").symlink_to("conf")
    monkeypatch.chdir(tmp_path)

    async def talk(following: Callable[[], Awaitable[Reading]]) -> None:
        by_rename(folder / "a.yaml", route("a"))
        assert names(await following()) == {"a"}

    watching([Path(named)], talk, settle=1000.0)
