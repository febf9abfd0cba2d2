"""Edits with a slip in them: what was served stays, whichever key the slip hits, and a deletion is one all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.providers.files import FileSource, Reading

pytestmark = pytest.mark.pure

QUICKSTART = (Path(__file__).parents[2] / "examples/quickstart.yaml").read_text()
ROUTE = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"
STAYS = "its last good version stays in use"


def write(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text)
    beside.rename(path)


def keys(reading: Reading) -> set[tuple[str, str, str]]:
    return set(reading.snapshot.loaded)


def texts(reading: Reading) -> list[str]:
    return [one.text() for one in reading.problems]


class Edited:
    """A file that is edited again and again."""

    def __init__(self, folder: Path, text: str = QUICKSTART) -> None:
        self.file = folder / "a.yaml"
        self.text = text
        write(self.file, text)
        self.source = FileSource([folder])
        self.good = keys(self.source.read())

    def edit(self, old: str, new: str) -> Reading:
        assert self.text.count(old) >= 1, old
        return self.save(self.text.replace(old, new, 1))

    def save(self, text: str) -> Reading:
        write(self.file, text)
        return self.source.read()


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    return Edited(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("kind: HTTPRoute", "kind: HTTPRout", "HTTPRoute default/quickstart"),
        ("name: quickstart,", "name: Quick_start,", "HTTPRoute default/quickstart"),
        ("metadata: {name: quickstart", "metadat: {name: quickstart", "HTTPRoute default/quickst"),
        ("type: PathPrefix", "type: PathPrefx", "HTTPRoute default/quickstart"),
        (ROUTE, ROUTE.replace("/v1", "/v11"), "HTTPRoute default/quickstart"),
        (ROUTE, ROUTE.replace("gateway.networking", "networking"), "HTTPRoute default/quickstart"),
        ("---\n" + ROUTE, ROUTE, "Gateway default/edge"),
        ("kind: Gateway\n", "kind: Gatway\n", "Gateway default/edge"),
        ("kind: Service\n", "kind: Servce\n", "Service default/web"),
        ("kind: EndpointSlice\n", "kind: EndpointSlic\n", "EndpointSlice default/web-1"),
    ],
)
def test_a_slip_takes_nothing_out_of_service(
    edited: Edited, old: str, new: str, stale: str
) -> None:
    reading = edited.edit(old, new)
    assert keys(reading) == edited.good
    assert any(one.startswith(stale) and one.endswith(STAYS) for one in texts(reading)), texts(
        reading
    )
    # Over a further edit elsewhere in the file too, and then the slip is mended.
    again = edited.save(edited.text.replace(old, new, 1) + "---\n# a comment\n")
    assert keys(again) == edited.good
    mended = edited.save(edited.text)
    assert (keys(mended), mended.problems) == (edited.good, ())


def test_a_note_has_the_line_of_the_slip(edited: Edited) -> None:
    reading = edited.edit("type: PathPrefix", "type: PathPrefx")
    line = 1 + edited.text[: edited.text.index("type: PathPrefix")].count("\n")
    assert [one.line() for one in reading.problems][1] == (
        f"{edited.file}:{line} HTTPRoute default/quickstart: Invalid, {STAYS}"
    )


def test_a_missing_kind_keeps_the_whole_file(edited: Edited) -> None:
    reading = edited.edit("kind: HTTPRoute\n", "")
    assert keys(reading) == edited.good
    assert "last good content stays" in texts(reading)[-1]


def test_what_is_deleted_is_gone(edited: Edited) -> None:
    """Also beside an error that was there before; beside a new one once that is gone."""
    at = edited.text.index("---\n" + ROUTE)
    end = edited.text.index("---", at + 4)
    without = edited.text[:at] + edited.text[end:]
    route = ("HTTPRoute", "default", "quickstart")
    assert keys(edited.save(without)) == edited.good - {route}
    old_slip = "---\nkind: Gatway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: x}\n"
    slip = {("Gateway", "default", "x")}  # only keeps its places closed
    assert keys(edited.save(edited.text + old_slip)) == edited.good | slip
    assert keys(edited.save(without + old_slip)) == (edited.good | slip) - {route}
    edited.save(edited.text)
    reading = edited.save(without.replace("port: 8080}", "port: many}"))
    assert keys(reading) == edited.good, "perhaps the file was cut off behind the mistake"
    assert keys(edited.save(without)) == edited.good - {route}


def test_a_file_that_is_cut_off_loses_nothing(edited: Edited) -> None:
    """Still good YAML, with a mistake in its last object, and the objects behind it not there yet."""
    cut = edited.text.index("value: /")
    reading = edited.save(edited.text[:cut] + "value:\n")
    assert keys(reading) == edited.good


def test_a_rename_is_a_rename(edited: Edited) -> None:
    reading = edited.edit("name: quickstart,", "name: slowstart,")
    assert ("HTTPRoute", "default", "slowstart") in keys(reading)
    assert ("HTTPRoute", "default", "quickstart") not in keys(reading)
    assert reading.problems == ()


def test_a_new_object_of_another_kind_keeps_nothing(edited: Edited) -> None:
    at = edited.text.index("---\n" + ROUTE)
    end = edited.text.index("---", at + 4)
    deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: quickstart}\n"
    reading = edited.save(edited.text[:at] + edited.text[end:] + deployment)
    assert ("HTTPRoute", "default", "quickstart") not in keys(reading)
    assert STAYS not in str(texts(reading))


def test_an_object_that_moved_to_another_file_is_served_from_there(edited: Edited) -> None:
    at = edited.text.index(ROUTE)
    end = edited.text.index("---", at)
    moved = edited.text[at:end].replace("value: /api", "value: /moved")
    write(edited.file.with_name("b.yaml"), moved)
    slip = "---\nkind: Gatway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: x}\n"
    reading = edited.save(edited.text[:at] + edited.text[end + 4 :] + slip)
    route = reading.snapshot.http_routes["default", "quickstart"]
    assert route.spec.rules[0].matches[0].path.value == "/moved"
    assert "Duplicate" not in str(texts(reading))
