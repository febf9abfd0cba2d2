"""FileSource: what is read when, and what stays when something is broken."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgefast.providers import files as module
from edgefast.providers.files import FileSource, Reading
from edgefast.providers.write_completion import Events


def route(name: str, path: str = "/", kind: str = "PathPrefix") -> str:
    return (
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"
        f"metadata: {{name: {name}}}\n"
        "spec:\n  parentRefs: [{name: edge}]\n  rules:\n"
        f"  - matches: [{{path: {{type: {kind}, value: {path}}}}}]\n"
        "    backendRefs: [{name: web, port: 80}]\n"
    )


def write(path: Path, text: str | bytes) -> None:
    """As a careful writer does it: the stamp always differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".tmp")
    beside.write_bytes(text.encode() if isinstance(text, str) else text)
    beside.rename(path)


def names(reading: Reading) -> set[str]:
    return {name for _, name in reading.snapshot.http_routes}


def texts(reading: Reading) -> str:
    return "\n".join(one.line() for one in reading.problems)


def path_of(reading: Reading, name: str) -> str:
    matches = reading.snapshot.http_routes["default", name].spec.rules[0].matches
    value = matches[0].path
    assert value is not None
    return value.value


def test_files_and_folders(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("a") + "---\n" + route("b"))
    write(tmp_path / "more" / "deep" / "c.yml", route("c"))
    write(tmp_path / "more" / "notes.txt", "no object")
    write(tmp_path / "more" / ".hidden" / "d.yaml", route("d"))
    source = FileSource([tmp_path / "a.yaml", tmp_path / "more"])
    reading = source.read()
    assert names(reading) == {"a", "b", "c"}
    assert (reading.files, reading.objects, reading.usable, reading.problems) == (2, 3, True, ())
    assert reading.changed
    assert not source.read().changed


def test_another_place_of_a_mistyped_object_is_a_change(tmp_path: Path) -> None:
    """Also of a file in which nothing else is, and whose mistake and its line stay."""

    def mistyped(hostname: str) -> str:
        return route("a").replace("spec:", f"spec:\n  hostnames: [{hostname}]\n  what: 1")

    write(tmp_path / "a.yaml", mistyped("a.test"))
    source = FileSource([tmp_path])

    def hostnames(reading: Reading) -> list[str]:
        return list(reading.snapshot.http_routes["default", "a"].spec.hostnames)

    first = source.read()
    assert hostnames(first) == ["a.test"]
    write(tmp_path / "a.yaml", mistyped("b.test"))
    second = source.read()
    assert second.problems == first.problems
    assert second.changed and hostnames(second) == ["b.test"]


def test_only_what_changed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        write(tmp_path / f"{number}.yaml", route(f"r{number}"))
    source = FileSource([tmp_path])
    before = source.read().snapshot
    decoded: list[str] = []
    decode = module.decode_documents

    def count(data: bytes, file: str, *more: Any, **named: Any) -> object:
        decoded.append(file)
        return decode(data, file, *more, **named)

    monkeypatch.setattr(module, "decode_documents", count)
    write(tmp_path / "7.yaml", route("r7", "/new"))
    reading = source.read()
    assert decoded == [str(tmp_path / "7.yaml")]
    changed = [
        name
        for (_, name), one in reading.snapshot.http_routes.items()
        if one is not before.http_routes["default", name]
    ]
    assert changed == ["r7"]
    # Written again with the same content: not even decoded.
    write(tmp_path / "7.yaml", route("r7", "/new"))
    assert not source.read().changed
    assert len(decoded) == 1


def test_one_document_of_a_large_file_keeps_the_identity_of_the_others(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    write(file, "---\n".join(route(f"r{number}") for number in range(50)))
    source = FileSource([file])
    before = source.read().snapshot.http_routes
    write(file, "---\n".join(route(f"r{n}", "/x" if n == 25 else "/") for n in range(50)))
    after = source.read().snapshot.http_routes
    assert [name for (ns, name), one in after.items() if one is not before[ns, name]] == ["r25"]


def test_added_and_removed(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("a"))
    source = FileSource([tmp_path])
    assert names(source.read()) == {"a"}
    write(tmp_path / "sub" / "b.yaml", route("b"))
    assert names(source.read()) == {"a", "b"}
    (tmp_path / "a.yaml").unlink()
    reading = source.read()
    assert names(reading) == {"b"}
    assert reading.problems == ()


@pytest.mark.parametrize(
    "broken", [route("a") + "---\n" + route("b")[:70], "a: [1, 2", b"\xff\xfe rubbish", "\tx: 1"]
)
def test_a_half_written_file_keeps_its_last_good_content(
    tmp_path: Path, broken: str | bytes
) -> None:
    write(tmp_path / "a.yaml", route("a") + "---\n" + route("b"))
    write(tmp_path / "c.yaml", route("c"))
    source = FileSource([tmp_path])
    before = source.read().snapshot.http_routes
    write(tmp_path / "a.yaml", broken)
    reading = source.read()
    assert dict(reading.snapshot.http_routes) == dict(before)
    assert "a.yaml:" in texts(reading)
    assert "last good content stays" in texts(reading)
    assert reading.changed
    write(tmp_path / "a.yaml", route("a", "/fixed"))
    reading = source.read()
    assert (names(reading), reading.problems) == ({"a", "c"}, ())
    assert path_of(reading, "a") == "/fixed"


def test_an_unreadable_file_keeps_its_last_good_content(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    source = FileSource([file])
    source.read()
    file.unlink()
    for why in ("No such file", "symbolic links"):
        reading = source.read()
        assert names(reading) == {"a"}
        assert "cannot be read" in texts(reading)
        assert why in texts(reading)
        assert reading.usable
        file.symlink_to(file.name) if why == "No such file" else file.unlink()
    write(file, route("a2"))
    reading = source.read()
    assert (names(reading), reading.problems) == ({"a2"}, ())


def test_an_invalid_object_keeps_its_last_good_version(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a", "/one") + "---\n" + route("b"))
    source = FileSource([file])
    source.read()
    write(file, route("a", "/two", kind="Prefx") + "---\n" + route("b", "/two"))
    reading = source.read()
    assert path_of(reading, "a") == "/one"
    assert path_of(reading, "b") == "/two"
    assert "did you mean" in texts(reading)
    assert "its last good version stays" in texts(reading)
    # It stays over further changes, until it is valid or gone.
    write(file, route("a", "/three", kind="Prefx") + "---\n" + route("b", "/three"))
    reading = source.read()
    assert (path_of(reading, "a"), path_of(reading, "b")) == ("/one", "/three")
    write(file, route("b", "/four"))
    reading = source.read()
    assert (names(reading), reading.problems) == ({"b"}, ())


def test_an_invalid_object_at_start_is_left_out_and_the_rest_is_there(tmp_path: Path) -> None:
    """Of a route there is what keeps its place closed; it counts for nothing."""
    write(tmp_path / "a.yaml", route("a", kind="Prefx") + "---\n" + route("b"))
    reading = FileSource([tmp_path]).read()
    closed = {name for (_, name), one in reading.snapshot.http_routes.items() if one.closed}
    assert (names(reading), closed, reading.objects) == ({"a", "b"}, {"a"}, 1)
    write(tmp_path / "a.yaml", route("a", kind="Prefx"))
    assert not FileSource([tmp_path]).read().usable
    assert "a.yaml:7 " in texts(reading)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO])
@pytest.mark.parametrize("named", ["file", "folder"])
def test_what_the_file_system_will_not_say_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: str
) -> None:
    """A parent that lost its rights, a network file system whose server went away."""
    folder = tmp_path / "folder"
    write(folder / "a.yaml", route("a"))
    write(folder / "sub" / "b.yaml", route("b"))
    paths = [folder] if named == "folder" else [folder / "a.yaml", folder / "sub" / "b.yaml"]
    source = FileSource(paths)
    before = source.read().snapshot.http_routes

    def refusing(real: Callable[..., object]) -> Callable[..., object]:
        def refuse(path: object, *more: object, **options: object) -> object:
            if str(path).startswith(str(tmp_path)):
                raise OSError(number, os.strerror(number))
            return real(path, *more, **options)

        return refuse

    with monkeypatch.context() as patch:
        for name in ("stat", "open"):
            patch.setattr(os, name, refusing(getattr(os, name)))
        source.folders()
        reading = source.read()
        assert dict(reading.snapshot.http_routes) == dict(before)
        assert f"cannot be read: {os.strerror(number)}" in texts(reading)
        assert reading.usable
        assert not FileSource(paths).read().usable
    reading = source.read()
    assert (names(reading), reading.problems) == ({"a", "b"}, ())


def test_a_folder_that_is_gone_for_a_moment_keeps_all_that_was_under_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder / "a.yaml", route("a"))
    write(folder / "sub" / "b.yaml", route("b"))
    write(tmp_path / "c.yaml", route("c"))
    source = FileSource([folder, tmp_path / "c.yaml"])
    source.read()
    folder.rename(tmp_path / "away")
    reading = source.read()
    assert names(reading) == {"a", "b", "c"}
    assert [one.line() for one in reading.problems] == [
        f"{folder}:1 Invalid cannot be read: No such file or directory"
    ]
    write(tmp_path / "c.yaml", route("c2"))  # the others go on
    assert names(source.read()) == {"a", "b", "c2"}
    write(folder / "a.yaml", route("a"))
    reading = source.read()
    assert (names(reading), reading.problems) == ({"a", "c2"}, ())


def test_a_file_that_became_empty_keeps_its_last_good_content(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    source = FileSource([tmp_path])
    source.read()
    for _ in range(2):
        write(file, "")
        reading = source.read()
        assert names(reading) == {"a"}
        assert "the file is empty; its last good content stays in use" in texts(reading)
    write(file, "# nothing, and meant so\n")
    reading = source.read()
    assert (names(reading), reading.problems) == (set(), ())
    write(file, route("b"))
    assert names(source.read()) == {"b"}
    file.unlink()
    assert names(source.read()) == set()


_BROKEN = [
    "a: [1, 2",
    route("b") + "---\n" + route("x")[:70],
    b"\xff\xfe kind: a",
    "kind:\n\tname: 1",
]


@pytest.mark.parametrize("broken", _BROKEN)
def test_all_changes_wait_for_a_file_that_cannot_be_parsed(
    tmp_path: Path, broken: str | bytes
) -> None:
    """It may contain policies for the other files; without an earlier reading nothing is served."""
    write(tmp_path / "a.yaml", route("a"))
    write(tmp_path / "b.yaml", broken)
    source = FileSource([tmp_path], settle=0.0)
    for _ in range(2):
        reading = source.read()
        assert (names(reading), reading.usable, len(source.unparsed)) == (set(), False, 1)
        assert "b.yaml:1 Invalid the file is incomplete; changes of all files wait" in texts(
            reading
        )
    write(tmp_path / "b.yaml", route("b"))
    reading = source.read()
    assert (names(reading), reading.usable, source.unparsed) == ({"a", "b"}, True, ())
    # Of a file that was read whole the last good content stays, and others change.
    write(tmp_path / "b.yaml", broken)
    write(tmp_path / "a.yaml", route("a", "/2"))
    reading = source.read()
    assert (path_of(reading, "a"), names(reading), source.unparsed) == ("/2", {"a", "b"}, ())
    # A new one holds all changes, also removals, and is reported once.
    write(tmp_path / "c.yaml", broken)
    write(tmp_path / "a.yaml", route("a", "/3"))
    reading = source.read()
    assert (path_of(reading, "a"), reading.changed, reading.usable) == ("/2", True, True)
    assert "c.yaml:1 Invalid the file is incomplete" in texts(reading)
    assert not source.read().changed
    (tmp_path / "b.yaml").unlink()
    assert names(source.read()) == {"a", "b"}
    write(tmp_path / "c.yaml", route("c"))
    reading = source.read()
    assert (names(reading), path_of(reading, "a"), reading.problems) == ({"a", "c"}, "/3", ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("values.yaml", "replicas: 3\n"),
        ("log.json", '{"level": "info"}\n{"level": "warning"}\n'),
        ("notes.yaml", "x: [\n" * 1000),
    ],
)
def test_a_file_without_objects_does_not_hold_the_others(
    tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path / "a.yaml", route("a"))
    source = FileSource([tmp_path], settle=0.0)
    source.read()
    write(tmp_path / name, text)
    write(tmp_path / "a.yaml", route("a", "/2"))
    reading = source.read()
    assert (path_of(reading, "a"), reading.usable, source.unparsed) == ("/2", False, ())
    assert names(FileSource([tmp_path], settle=0.0).read()) == {"a"}


def test_nothing_at_all_makes_no_table_to_rely_on(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.yaml", route(name))
    source = FileSource([tmp_path])
    assert source.read().usable
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "b.yaml").unlink()
    (tmp_path / "c.yaml").unlink()
    assert not source.read().usable  # nothing at all: the table before may be worth more


def test_nothing_readable_at_start(tmp_path: Path) -> None:
    reading = FileSource([tmp_path / "missing.yaml"]).read()
    assert not reading.usable
    assert "missing.yaml:1 " in texts(reading)
    empty = FileSource([tmp_path]).read()
    assert not empty.usable
    assert "no file ends in .yaml, .yml, .json" in texts(empty)


def test_a_file_that_is_being_written_is_taken_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    source = FileSource([tmp_path])
    source.read()
    write(file, "")
    write(tmp_path / "b.yaml", route("b"))
    busy = Events(busy=frozenset({str(file), str(tmp_path / "c.yaml")}))
    write(tmp_path / "c.yaml", route("c")[:40])
    reading = source.read(busy)
    assert (names(reading), reading.problems) == ({"a", "b"}, ())
    write(file, route("a2"))
    write(tmp_path / "c.yaml", route("c"))
    assert names(source.read()) == {"a2", "b", "c"}


def test_duplicates_over_files(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("same", "/first"))
    write(tmp_path / "b.yaml", route("same", "/second"))
    source = FileSource([tmp_path])
    reading = source.read()
    assert path_of(reading, "same") == "/first"
    assert "Duplicate" in texts(reading)
    (tmp_path / "a.yaml").unlink()
    reading = source.read()
    assert (path_of(reading, "same"), reading.problems) == ("/second", ())


def test_a_mounted_config_map(tmp_path: Path) -> None:
    """The kubelet swaps a link to a folder; the files themselves are links through it."""
    first, second = tmp_path / "..2026_1", tmp_path / "..2026_2"
    write(first / "a.yaml", route("a", "/one"))
    (tmp_path / "..data").symlink_to(first.name)
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    source = FileSource([tmp_path])
    reading = source.read()
    assert (reading.files, path_of(reading, "a")) == (1, "/one")
    write(second / "a.yaml", route("a", "/two"))
    (tmp_path / "..tmp").symlink_to(second.name)
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert path_of(source.read(), "a") == "/two"


def test_moved_lines_are_said_as_they_are_now(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    write(file, route("a"))
    source = FileSource([file])
    source.read()
    write(file, "# a comment\n# another\n---\n" + route("a"))
    ref = next(iter(source.read().snapshot.loaded.values()))
    assert ref.source.line > 1


def test_a_pipe_is_read_once() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, route("piped").encode())
    os.close(write_end)
    source = FileSource([Path(f"/dev/fd/{read_end}")])
    assert names(source.read()) == {"piped"}
    reading = source.read()
    assert (names(reading), reading.changed) == ({"piped"}, False)
    os.close(read_end)


def test_the_problem_of_a_folder_goes_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.yaml", route("a"))
    source = FileSource([tmp_path])
    assert source.read().problems == ()

    def fail(*_: object, **__: object) -> object:
        raise OSError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("edgefast.providers.files.list_files", fail)
        reading = source.read()
        assert (reading.changed, len(reading.problems)) == (True, 1)
        assert "Permission denied" in texts(reading)
        assert not source.read().changed
    reading = source.read()
    assert (reading.changed, reading.problems) == (True, ())
    assert not source.read().changed


def test_hidden_files_are_read_by_nobody(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("a"))
    hidden = tmp_path / ".git"
    hidden.mkdir()
    write(hidden / "b.yaml", "not an object")
    write(tmp_path / ".c.yaml", "not an object")
    reading = FileSource([tmp_path]).read()
    assert (reading.files, reading.problems) == (1, ())


def test_refused_objects_are_known(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", route("a").replace("spec:", "spec: {}\nspc:"))
    source = FileSource([tmp_path])
    first = source.read().snapshot
    assert list(first.refused) == [("HTTPRoute", "default", "a")]
    write(tmp_path / "a.yaml", route("a"))
    assert not source.read().snapshot.refused
