"""Sets of files that change while they are read: a swapped link, a slow writer, a file that is cut off."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefast.providers import files as module
from edgefast.providers import publish_gate, write_completion
from edgefast.providers.files import FileSource, Reading
from edgefast.providers.write_completion import NO_EVENTS, Events
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: type[Mount] | type[Checkout], named: str
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
        # A folder with constant changes gives no objects.
        swaps = iter(range(1000))
        world.swap(*kinds)
        reading = source.read()
        assert ({path_of(reading, kind) for kind in kinds}, reading.changed) == ({"/4"}, False)
        assert source.due is not None
        fresh = FileSource(paths, settle=0.0).read()
        assert (fresh.objects, fresh.usable) == (0, False)
        assert "changed during every read" in texts(fresh)
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
    """Pauses of any length do not matter; at the start nothing is served before."""
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
        age(file, write_completion.WRITER_AT_MOST + 1)
        assert names(source.read()) == {"a", "policy", "c"}


@pytest.mark.parametrize(
    ("writer", "quiet", "seen", "taken"),
    [
        (False, 0.5, "", False),
        (False, 1.5, "", True),
        (False, 0.0, "renamed", True),
        (False, 0.5, "closed", False),
        (False, 1.5, "busy", True),  # a hard link: the kernel reports no writer
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
    monkeypatch.setattr(write_completion, "has_writer", lambda fd: writer)
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
    monkeypatch.setattr(write_completion.time, "monotonic", lambda: now + 1.1)
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
        # Not for ever: one writer does not block all other changes.
        monkeypatch.setattr(publish_gate, "HOLD", 0.0)
        reading = source.read()
        assert (paths(reading), reading.changed) == (["/2", "/1"], True)
        assert "b.yaml:1 Pending a process has the file open" in texts(reading)
    age(tmp_path / "b.yaml", 1.1)
    reading = source.read()
    assert (paths(reading), reading.problems) == (["/2", "/2"], ())


def test_changes_wait_for_each_new_file_until_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may contain their policies. A log with constant writes holds for a limited time, and does not end the hold of other files."""
    write(tmp_path / "a.yaml", route("a"))
    age(tmp_path / "a.yaml", 100)
    source = FileSource([tmp_path], settle=1.0)
    source.read()
    write(tmp_path / "b.yaml", route("b"))
    age(tmp_path / "b.yaml", 100)
    now = time.monotonic()
    monkeypatch.setattr(publish_gate.time, "monotonic", lambda: now)
    with open(tmp_path / "log.json", "w") as log, open(tmp_path / "policies.yaml", "w") as writer:
        log.write('{"level": "info"}\n')
        log.flush()
        assert not source.read().changed
        for written in ("", POLICY):
            writer.write(written)
            writer.flush()
            now += publish_gate.HOLD + 1
            reading = source.read()
            assert (names(reading), reading.changed, reading.usable) == ({"a"}, not written, True)
        assert "policies.yaml:1 Pending a process has the file open" in texts(reading)
        assert "changes of all files wait until it is complete" in texts(reading)
        writer.write("  basicAuth: {users: {name: u}}\n")
        writer.close()
        age(tmp_path / "policies.yaml", 1.1)
        reading = source.read()
        assert (names(reading), reading.changed, reading.usable) == ({"a", "b"}, True, True)
        assert len(reading.snapshot.security_policies) == 1
        assert "log.json:1 Pending" in texts(reading)
        assert "it contains no Kubernetes object yet and is ignored" in texts(reading)
        assert "policies.yaml" not in texts(reading)
        # The log does not end the hold for what comes later.
        write(tmp_path / "c.yaml", route("c"))
        age(tmp_path / "c.yaml", 100)
        with open(tmp_path / "more.yaml", "w"):
            assert (names(source.read()), source.held is None) == ({"a", "b"}, False)
        age(tmp_path / "more.yaml", 1.1)
        assert names(source.read()) == {"a", "b", "c"}
    # At the start as well: it does not wait for the log.
    with open(tmp_path / "log.json", "a"):
        fresh = FileSource([tmp_path], settle=1.0)
        assert not fresh.read().usable
        now += publish_gate.HOLD + 1
        reading = fresh.read()
        assert (names(reading), reading.usable) == ({"a", "b", "c"}, True)
        assert fresh.held is None


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (b"", False),
        (b"# policies\n---\n", False),
        (b'{"time": 1}\n', True),
        (b'{"time": 1', False),
        (b"[1]\n", True),
        (b"x: 1\n" * 1000, True),
        (b"x: 1\n" * 1000 + b"apiVersion: v1\n", False),
        (b"# x: 1\n" * 1000, False),
        (b'{"apiVersion": "v1", "kind": "Secret"}\n', False),
        (b'{"items": [], "apiVersion":"v1"}\n', False),
        (b"metadata:\n  name: a\n", False),
    ],
)
def test_what_is_no_kubernetes_object(text: bytes, other: bool) -> None:
    assert publish_gate.is_other_content(text) is other


def test_a_lease_says_nothing_of_other_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.yaml", route("a"))
    with open(tmp_path / "a.yaml") as file:
        known = write_completion._file_system(file.fileno())
        assert known is not None
        monkeypatch.setattr(write_completion, "_REMOTE", frozenset({known}))
        assert write_completion.has_writer(file.fileno()) is None
        with open(tmp_path / "a.yaml", "a"):
            assert write_completion.has_writer(file.fileno()) is True


def test_nothing_is_remembered_of_files_that_are_gone(tmp_path: Path) -> None:
    source = FileSource([tmp_path], settle=0.0)
    for number in range(3):
        write(tmp_path / f"{number}.yaml", route("a"))
        source.read()
        assert source._settling is not None
        assert set(source._settling._seen) == {str(tmp_path / f"{number}.yaml")}
        (tmp_path / f"{number}.yaml").unlink()


POLICY = (
    "apiVersion: gateway.edge.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: p}\nspec:\n"
    "  targetRefs:\n  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}\n"
)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (POLICY + "  basicAuth:\n", '"basicAuth:" has no value'),
        ("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n", "is missing"),
        (route("b").replace("80}]", "808080}]").rstrip("\n"), "has no newline"),
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
    # Without such content nothing is served.
    fresh = FileSource([file], settle=0.0)
    assert (names(fresh.read()), len(fresh.unparsed)) == (set(), 1)


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


@pytest.mark.parametrize(
    "last",
    [
        "apiVersion: gateway.edge.io/v1alpha1\n",
        "apiVersion: gateway.edge.io/v1alpha1\nkind: Sec",
        "apiVersion: gateway.edge.io/v1alpha1\nkind:\n",
        "apiVersion: gateway.edge.io/v1alpha1\nkind: SecurityPolicy\nmetadata:\n",
        POLICY + "  basicAuth:\n",
        "apiVersion: [",
    ],
)
def test_a_new_file_that_is_cut_off_holds_all_changes(tmp_path: Path, last: str) -> None:
    write(tmp_path / "a.yaml", route("a"))
    source = FileSource([tmp_path])
    assert source.read().usable
    sound = POLICY.replace("name: p", "name: sound") + "  basicAuth: {users: {name: u}}\n"
    whole = f"{route('b')}---\n{sound}"
    write(tmp_path / "c.yaml", f"{whole}---\n{last}")
    write(tmp_path / "d.yaml", route("d"))
    for _ in range(2):
        reading = source.read()
        assert (names(reading), reading.usable) == ({"a"}, True)
        assert not reading.snapshot.security_policies
        assert "c.yaml:1 Invalid the file is incomplete; changes of all files wait" in texts(
            reading
        )
    (tmp_path / "d.yaml").unlink()
    write(tmp_path / "c.yaml", whole)
    reading = source.read()
    assert (names(reading), reading.usable, reading.problems) == ({"a", "b"}, True, ())
    # A gateway that starts with such a file does not serve it, either.
    write(tmp_path / "c.yaml", f"{whole}---\n{last}")
    reading = FileSource([tmp_path], settle=0.0).read()
    assert (names(reading), reading.usable) == (set(), False)
