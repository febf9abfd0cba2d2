"""Sets of files that change while they are read: a swapped link, a slow writer, a file that is cut off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefast.providers import files as module
from edgefast.providers import settling
from edgefast.providers.files import FileSource, Reading
from edgefast.providers.settling import NO_EVENTS, Events
from providers.test_files import names, path_of, route, texts, write

pytestmark = pytest.mark.pure


def age(path: Path, seconds: float) -> int:
    """Let the last write of a file be this long ago; return that time."""
    at = time.time_ns() - int(seconds * 1e9)
    os.utime(path, ns=(at, at))
    return at


def when_read(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Call `act` with the path of each file after it was read."""
    read = module.read_file

    def also(path: str, *more: object, **named: object) -> object:
        result = read(path, *more, **named)  # type: ignore[arg-type]
        act(path)
        return result

    monkeypatch.setattr(module, "read_file", also)


class Mount:
    """A ConfigMap as the kubelet mounts it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._number = folder, 0

    def swap(self, *kinds: str, links: bool = True) -> None:
        """Let each file of the next version have its number in its path; `links`: create and remove the visible links, too."""
        self._number += 1
        target = self.folder / f"..{self._number}"
        for kind in kinds:
            write(target / f"{kind}.yaml", route(kind, f"/{self._number}"))
        (self.folder / "..tmp").symlink_to(target.name)
        (self.folder / "..tmp").rename(self.folder / "..data")
        if links:
            for old in self.folder.glob("*.yaml"):
                old.unlink()
            for kind in kinds:
                (self.folder / f"{kind}.yaml").symlink_to(f"..data/{kind}.yaml")


class Checkout:
    """A folder as git-sync publishes it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._number, self._parent = folder / "current", 0, folder

    def swap(self, *kinds: str, links: bool = True) -> None:
        self._number += 1
        target = self._parent / f".worktrees-{self._number}"
        for kind in kinds:
            write(target / f"{kind}.yaml", route(kind, f"/{self._number}"))
        (self._parent / "tmp").symlink_to(target.name)
        (self._parent / "tmp").rename(self.folder)


class Moved(Checkout):
    """A folder that is exchanged by `mv`."""

    def swap(self, *kinds: str, links: bool = True) -> None:
        self._number += 1
        target = self._parent / f"new-{self._number}"
        for kind in kinds:
            write(target / f"{kind}.yaml", route(kind, f"/{self._number}"))
        if self.folder.exists():
            self.folder.rename(self._parent / f"old-{self._number}")
        target.rename(self.folder)


@pytest.mark.parametrize("named", ["folder", "files"])
@pytest.mark.parametrize("way", [Mount, Checkout, Moved])
def test_a_set_is_never_mixed_of_two_versions(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: type[Mount] | type[Checkout],
    named: str,
) -> None:
    kinds = ("a", "b", "c")
    world = way(tmp_path)
    world.swap(*kinds)
    paths = [world.folder] if named == "folder" else [world.folder / f"{x}.yaml" for x in kinds]
    source = FileSource(paths, settle=0.0)
    assert {path_of(source.read(), kind) for kind in kinds} == {"/1"}
    swaps = iter(range(2))

    def swap(path: str) -> None:
        if path.endswith("b.yaml") and next(swaps, None) is not None:
            world.swap(*kinds)

    world.swap(*kinds)
    with monkeypatch.context() as patch:
        when_read(patch, swap)
        reading = source.read()
        assert ({path_of(reading, kind) for kind in kinds}, reading.problems) == ({"/4"}, ())
        # Nothing is taken from a folder that never holds still.
        swaps = iter(range(1000))
        world.swap(*kinds)
        reading = source.read()
        assert ({path_of(reading, kind) for kind in kinds}, reading.changed) == ({"/4"}, False)
        assert source.due is not None
        fresh = FileSource(paths, settle=0.0).read()
        assert (fresh.objects, fresh.usable) == (0, False)
        assert "moved during every read" in texts(fresh)
    reading = source.read()
    assert len({path_of(reading, kind) for kind in kinds} - {"/4"}) == 1
    assert source.due is None


def test_files_of_a_mount_come_and_go_with_its_swap(tmp_path: Path) -> None:
    """The kubelet creates visible links of new files, and removes those of old ones, after the swap."""
    mount = Mount(tmp_path)
    mount.swap("a", "old")
    source = FileSource([tmp_path])
    assert names(source.read()) == {"a", "old"}
    mount.swap("a", "policy", links=False)
    reading = source.read()
    assert (names(reading), reading.problems) == ({"a", "policy"}, ())
    assert reading.snapshot.loaded["HTTPRoute", "default", "policy"].file == str(
        tmp_path / "policy.yaml"
    )


def test_a_set_that_was_linked_after_its_last_write_does_not_wait(tmp_path: Path) -> None:
    mount = Mount(tmp_path)
    mount.swap("a")
    source = FileSource([tmp_path], settle=1000.0)
    assert names(source.read()) == {"a"}
    # Behind a link that stays, a file is edited as any other.
    write(tmp_path / "..1" / "a.yaml", route("b"))
    os.utime(tmp_path / "..1" / "a.yaml", ns=(at := time.time_ns() + 10_000_000, at))
    assert names(source.read()) == {"a"}
    assert source.due is not None


def test_a_file_is_not_read_while_a_process_has_it_open_for_writing(tmp_path: Path) -> None:
    """However long it pauses; at the start nothing is served before."""
    file = tmp_path / "a.yaml"
    source = FileSource([tmp_path], settle=1.0)
    with open(file, "w") as writer:
        writer.write(route("a"))
        writer.flush()
        age(file, 100)
        reading = source.read()
        assert (names(reading), reading.usable) == (set(), False)
        assert "Pending a process has the file open for writing" in texts(reading)
        assert source.due
        writer.write("---\n" + route("policy"))
    assert names(source.read()) == set()  # it was written a moment ago
    age(file, 1.1)
    reading = source.read()
    assert (names(reading), reading.problems, source.due) == ({"a", "policy"}, (), None)
    with open(file, "a") as writer:
        writer.write("---\n" + route("c"))
        writer.flush()
        age(file, 100)
        assert names(source.read()) == {"a", "policy"}
        age(file, settling.WRITER_AT_MOST + 1)
        assert names(source.read()) == {"a", "policy", "c"}


@pytest.mark.parametrize(
    ("writer", "quiet", "seen", "taken"),
    [
        (False, 0.5, "", False),
        (False, 1.5, "", True),
        (False, 0.0, "renamed", True),
        (False, 0.5, "closed", False),
        (False, 1.5, "busy", True),  # a hard link: the kernel knows better
        (None, 1.5, "", False),
        (None, 10.5, "", True),
        (None, 1.5, "closed", True),
        (None, 0.0, "renamed", True),
        (None, 100.0, "busy", False),
        (True, 100.0, "renamed", False),
    ],
)
def test_when_a_file_is_complete(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    writer: bool | None,
    quiet: float,
    seen: str,
    taken: bool,
) -> None:
    monkeypatch.setattr(settling, "has_writer", lambda fd: writer)
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    at = age(file, quiet)
    when = {str(file): at}
    events = {
        "": NO_EVENTS,
        "busy": Events(busy=frozenset(when)),
        "closed": Events(closed=when),
        "renamed": Events(renamed=when),
    }[seen]
    source = FileSource([tmp_path], settle=1.0)
    assert (names(source.read(events)) == {"a"}) is taken
    assert (source.due is None) is taken


def test_a_time_stamp_in_the_future_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.yaml", route("a"))
    age(tmp_path / "a.yaml", -3600)
    source = FileSource([tmp_path], settle=1.0)
    assert names(source.read()) == set()
    now = time.monotonic()
    monkeypatch.setattr(settling.time, "monotonic", lambda: now + 1.1)
    assert names(source.read()) == {"a"}


def test_changes_beside_a_file_that_is_being_written_wait_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.yaml", route(name, "/1"))
        age(tmp_path / f"{name}.yaml", 100)
    source = FileSource([tmp_path], settle=1.0)
    source.read()
    with open(tmp_path / "b.yaml", "w") as writer:
        writer.write(route("b", "/2"))
        writer.flush()
        write(tmp_path / "a.yaml", route("a", "/2"))
        age(tmp_path / "a.yaml", 100)

        def paths(reading: Reading) -> list[str]:
            return [path_of(reading, name) for name in ("a", "b")]

        reading = source.read()
        assert (paths(reading), reading.changed) == (["/1", "/1"], False)
        # Not for ever: one writer does not keep everybody's changes out.
        monkeypatch.setattr(module, "HOLD", 0.0)
        reading = source.read()
        assert (paths(reading), reading.changed) == (["/2", "/1"], True)
        assert "b.yaml:1 Pending a process has the file open" in texts(reading)
    age(tmp_path / "b.yaml", 1.1)
    reading = source.read()
    assert (paths(reading), reading.problems) == (["/2", "/2"], ())


POLICY = (
    "apiVersion: gateway.edge.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: p}\nspec:\n"
    "  targetRefs:\n  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}\n"
)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (POLICY + "  basicAuth:\n", '"basicAuth:" has no value'),
        ("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n", "is missing"),
        (route("b").replace("80}]", "808080}]").rstrip("\n"), "has no end"),
        (route("b")[:-2].rstrip("\n"), ""),  # no YAML
    ],
)
def test_a_file_that_is_cut_off_keeps_its_last_good_content(
    tmp_path: Path, last: str, why: str
) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a", "/1") + "---\n" + POLICY + "  basicAuth: {users: {name: u}}\n")
    source = FileSource([file])
    source.read()
    write(file, route("a", "/2") + "---\n" + last)
    reading = source.read()
    assert path_of(reading, "a") == "/1"
    assert ("HTTPRoute" in texts(reading)) or why in texts(reading)
    assert why in texts(reading)
    assert "last good content stays" in texts(reading)
    # Without one nothing of it is a table to rely on, and what a policy applies to is closed.
    fresh = FileSource([file]).read()
    assert not fresh.usable
    if last.startswith(POLICY):
        assert [one.lost for one in fresh.snapshot.foreign_policies] == [True]


def test_a_mistake_is_not_taken_for_a_cut(tmp_path: Path) -> None:
    """In a document before the last, or in one that is complete."""
    file = tmp_path / "a.yaml"
    write(file, route("a", "/1") + "---\n" + route("b", "/1"))
    source = FileSource([file])
    source.read()
    bad = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\n"
    for text in (bad + "spec: 1\n---\n" + route("b", "/2"), route("a", kind="Prefx")):
        write(file, text)
        assert "cut off" not in texts(source.read())
    script = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  x: |\n    if a:\n"
    write(file, script)
    reading = source.read()
    assert (names(reading), reading.problems) == (set(), ())
