"""Two objects of one name in files: the first is served, and what only the other one was for goes to nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgefast.explain.explain import explain
from edgefast.explain.request_spec import RequestSpec
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, translate
from tests.support.manifest import manifest
from tests.translate.test_reserved_hostnames import (
    WIDE,
    Object,
    _ask,
    _gateway,
    _listener,
    _read,
    _route,
    _serve,
    _set,
)

pytestmark = pytest.mark.pure


def _matches(name: str, *paths: str, **spec: Any) -> Object:
    made = _route(name, "edge")
    made["spec"]["rules"][0]["matches"] = [{"path": {"value": path}} for path in paths]
    made["spec"] |= spec
    return made


def _paths(table: Any, *targets: str) -> list[str]:
    found = [
        explain(table, RequestSpec(scheme="http", host="a.test", port=80, target=one))
        for one in targets
    ]
    answers = [one.answers[0] for one in found]
    return [
        one.location.split("/")[2].split(".")[0] if one.location else str(one.status)
        for one in answers
    ]


def test_the_matches_of_a_second_route_of_a_name_are_closed(tmp_path: Path) -> None:
    objects = [WIDE, _matches("twice", "/a", "/b"), _matches("twice", "/b", "/admin")]
    reading = _read(tmp_path, objects)
    (error,) = reading.problems
    assert error.reason == "Duplicate" and error.severity == "error"
    assert error.source is not None and error.source.file.endswith("world.yaml")
    assert "first defined at" in error.message and "world.yaml:" in error.message
    served, table = _serve(reading)
    # All that the first one says is served, a path of both as well.
    assert _paths(table, "/a", "/b", "/admin", "/admin/x", "/") == [
        "twice",
        "twice",
        "500",
        "500",
        "wide",
    ]
    (said,) = [one for one in served.problems if "another object has its name" in one.message]
    assert "requests to /admin and paths below it get 500" in said.message
    assert said.source == error.source
    # The served one is as it would be alone.
    alone, _ = _serve(_read(tmp_path, objects[:2]))
    key = ("default", "twice")
    assert served.statuses.http_routes[key] == alone.statuses.http_routes[key]


@pytest.mark.parametrize("first", ["sound", "mistyped"])
def test_a_second_route_of_a_name_that_cannot_be_read_is_closed_too(
    tmp_path: Path, first: str
) -> None:
    """Whatever the first one is; a last good version of its own would go on instead."""
    sound, broken = _matches("twice", "/a"), _matches("twice", "/admin", parents=1)
    other = sound if first == "sound" else {**sound, "spec": {**sound["spec"], "parents": 1}}
    served, table = _serve(_read(tmp_path, [WIDE, other, broken]))
    assert _paths(table, "/a", "/admin", "/") == [
        "twice" if first == "sound" else "500",
        "500",
        "wide",
    ]
    assert ("default", "twice?2") in served.statuses.http_routes


def test_a_copy_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    route, gateway = _matches("twice", "/a"), _gateway("two", _listener("near", "a.test", 80))
    alone, _ = _serve(_read(tmp_path, [WIDE, route, gateway]))
    reading = _read(tmp_path, [WIDE, route, gateway, route, gateway])
    assert [one.reason for one in reading.problems] == ["Duplicate", "Duplicate"]
    both, _ = _serve(reading)
    assert both.ir == alone.ir and both.problems == alone.problems


@pytest.mark.parametrize("make", [_gateway, _set])
def test_hostnames_of_a_second_gateway_or_set_of_a_name_are_held(tmp_path: Path, make: Any) -> None:
    first = make("two", _listener("near", "b.test", 80))
    second = make("two", _listener("near", "b.test", 80), _listener("other", "a.test", 80))
    reading = _read(tmp_path, [WIDE, first, second])
    assert [one.reason for one in reading.problems] == ["Duplicate"]
    _, table = _serve(reading)
    assert _ask(table, "http", "a.test") == "404"
    assert _ask(table, "http", "c.test") == "wide"
    (held,) = [one.name for one in table.fleet.listeners if one.hostname == "a.test"]
    assert "world.yaml" in table.origin.listener(held).source


def test_what_comes_later_is_closed_and_opened_again(tmp_path: Path) -> None:
    """The first in the order of files is served; the same as at a start, whatever was before."""
    source = FileSource([tmp_path])
    first, _ = _serve(_read(tmp_path, [WIDE, _matches("twice", "/a")], source))
    later = tmp_path / "zz.yaml"
    later.write_text(str(_matches("twice", "/admin")).replace("'", '"'))
    second = source.read()
    assert "world.yaml" in second.problems[0].message
    assert second.problems[0].source is not None and second.problems[0].source.file == str(later)
    closed, table = _serve(second)
    assert _paths(table, "/a", "/admin") == ["twice", "500"]
    again = translate(second.snapshot, Settings(standalone=True), first)
    assert again.ir == closed.ir and again.work.routes == 1
    later.unlink()
    third = source.read()
    assert third.problems == ()
    assert translate(third.snapshot, Settings(standalone=True), again).ir == first.ir


@pytest.mark.parametrize("mistake", [{}, {"option": 1}])
def test_a_second_policy_of_a_name_keeps_its_services_from_plain_text(
    tmp_path: Path, mistake: Object
) -> None:
    """Also one that cannot be read."""

    def policy(service: str) -> Object:
        return manifest(
            "BackendTLSPolicy tls",
            {
                "targetRefs": [{"group": "", "kind": "Service", "name": service}],
                "validation": {"hostname": "a.test", "wellKnownCACertificates": "System"},
            },
        )

    def service(name: str) -> Object:
        return manifest(f"Service {name}", {"ports": [{"name": "http", "port": 80}]})

    to = _matches("to", "/one")
    to["spec"]["rules"] = [
        {"matches": [{"path": {"value": f"/{name}"}}], "backendRefs": [{"name": name, "port": 80}]}
        for name in ("one", "two")
    ]
    broken = policy("two")
    broken["spec"] |= mistake
    objects = [WIDE, to, service("one"), service("two"), policy("one"), broken]
    _, table = _serve(_read(tmp_path, objects))
    assert [(one.name, one.tls is not None) for one in table.fleet.clusters] == [
        ("service/default/one/80", True)
    ]
    assert _paths(table, "/two") == ["500"]
