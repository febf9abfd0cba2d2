"""Watching: every way in which editors and tools change files is noticed, and noise is not."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

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


@pytest.fixture
def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    return uvloop.new_event_loop


pytestmark = pytest.mark.usefixtures("loop_factory")


@contextlib.asynccontextmanager
async def watching(
    paths: list[Path], settle: float | None = None
) -> AsyncIterator[Callable[[], Awaitable[Reading]]]:
    """Read files; yields a function that waits for the next change."""
    source = FileSource(paths, settle=settle)
    with contextlib.closing(Watch(SUFFIXES)) as watch:
        watch.follow(source.folders())
        source.read()

        async def following() -> Reading:
            return await asyncio.wait_for(watch_files(source, watch), 20)

        yield following


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
async def test_every_way_of_writing(
    tmp_path: Path, change: Callable[[Path, str], None], named: str
) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    async with watching([file if named == "file" else tmp_path]) as following:
        for number in range(5):
            change(file, route(f"n{number}"))
            while True:
                reading = await following()
                if names(reading) == {f"n{number}"}:
                    break
                # Nothing in between is ever half a file.
                assert names(reading) in ({"a"}, {f"n{number - 1}"}, set())
            assert not [one for one in reading.problems if one.severity == "error"]


async def test_new_folders_and_removed_files(tmp_path: Path) -> None:
    async with watching([tmp_path]) as following:
        write(tmp_path / "new" / "sub" / "a.yaml", route("a"))
        while names(await following()) != {"a"}:
            pass
        write(tmp_path / "new" / "sub" / "b.yaml", route("b"))
        assert names(await following()) == {"a", "b"}
        (tmp_path / "new" / "sub" / "a.yaml").unlink()
        assert names(await following()) == {"b"}


async def test_a_link_whose_target_changes(tmp_path: Path) -> None:
    write(tmp_path / "real" / "x.yaml", route("a"))
    link = tmp_path / "links" / "a.yaml"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "real" / "x.yaml")
    async with watching([link]) as following:
        for number in range(5):
            in_pieces(tmp_path / "real" / "x.yaml", route(f"n{number}"))
            reading = await following()
            assert names(reading) == {f"n{number}"}
            assert reading.problems == ()


@pytest.mark.parametrize("asked", ["cur", "cur/more", "cur/more/a.yaml"])
async def test_a_link_on_the_way_that_is_swapped(tmp_path: Path, asked: str) -> None:
    """As git-sync and `ln -sfn` do it."""

    def swap(number: int) -> None:
        write(tmp_path / "versions" / str(number) / "more" / "a.yaml", route(f"n{number}"))
        fresh = tmp_path / "links" / "fresh"
        fresh.symlink_to(Path("..") / "versions" / str(number))
        fresh.rename(tmp_path / "links" / "cur")

    (tmp_path / "links").mkdir()
    swap(0)
    async with watching([tmp_path / "links" / asked]) as following:
        for number in range(1, 4):
            swap(number)
            while names(await following()) != {f"n{number}"}:
                pass


async def test_a_folder_that_goes_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder / "a.yaml", route("a"))
    async with watching([folder]) as following:
        folder.rename(tmp_path / "away")
        reading = await following()
        assert names(reading) == {"a"}
        assert len(reading.problems) == 1
        write(tmp_path / "new" / "a.yaml", route("b"))
        (tmp_path / "new").rename(folder)
        while names(reading := await following()) != {"b"}:
            pass
        assert reading.problems == ()


async def test_noise_beside_the_file_wakes_nobody(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("a"))
    async with watching([tmp_path / "a.yaml"]) as _:
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


async def test_an_open_file_is_busy_until_it_is_closed(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", route("b"))
    async with watching([tmp_path]) as _:
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


async def test_a_writer_that_goes_silent_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY", 0.1)
    monkeypatch.setattr(module, "CREATED", 0.1)
    async with watching([tmp_path]) as following:
        fd = os.open(tmp_path / "a.yaml", os.O_WRONLY | os.O_CREAT)
        os.write(fd, route("a").encode())
        while names(await following()) != {"a"}:  # the folder is no longer empty: a look of its own
            pass
        os.close(fd)


async def test_without_inotify_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_WITHOUT_INOTIFY", 0.01)
    write(tmp_path / "a.yaml", route("a"))
    source = FileSource([tmp_path])
    watch = Watch(SUFFIXES)
    watch.close()
    watch._complete = False
    assert not watch.follow(source.folders())
    source.read()
    write(tmp_path / "a.yaml", route("b"))
    assert names(await asyncio.wait_for(watch_files(source, watch), 20)) == {"b"}


@pytest.mark.parametrize("named", ["conf", "link", "./conf/../conf"])
async def test_a_renamed_file_is_read_at_once_however_its_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (tmp_path / "link").symlink_to("conf")
    monkeypatch.chdir(tmp_path)
    async with watching([Path(named)], settle=1000.0) as following:
        by_rename(folder / "a.yaml", route("a"))
        assert names(await following()) == {"a"}
