"""The comparison of converters: what it counts, and the help that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ingress.assistance import join_gateways, resolve_ports
from ingress.comparison import Tally, make_tallies, render, run
from ingress.converters import (
    Objects,
    Refused,
    convert_most,
    find_ingress2gateway,
    ingress2gateway,
)
from ingress.standard_objects import standard_objects
from tests.convert.documents import ingress

pytestmark = pytest.mark.pure


def _changed(change: dict[str, str], made: Objects) -> Objects:
    """Rename Services in the routes of an output."""
    for one in made:
        for rule in one["spec"].get("rules", ()) if one["kind"] == "HTTPRoute" else ():
            for backend in rule.get("backendRefs", ()):
                backend["name"] = change.get(backend["name"], backend["name"])
    return made


def test_wrong_answers_are_counted_by_kind(tmp_path: Path) -> None:
    (ours,) = make_tallies("", tmp_path)
    moved = Tally("moved", ours.convert, after=lambda made: _changed({"two": "three"}, made))
    nothing = Tally("nothing", ours.convert, after=lambda made: [])
    run([ours, moved, nothing], [3, 5], 60)
    assert ours.requests == moved.requests == nothing.requests > 40
    assert (ours.total, ours.left_out) == (0, 0)
    assert moved.wrong["Service"] == moved.total > 0
    assert nothing.wrong["status"] == nothing.requests
    assert f"| wrong Service | 0 | {moved.total} | 0 |" in render([ours, moved, nothing])


def test_ingresses_that_stop_a_conversion_are_left_out() -> None:
    def convert(objects: Objects) -> Objects:
        names = [one["metadata"]["name"] for one in objects if one["kind"] == "Ingress"]
        if "bad" in names or ("canary" in names and "main" not in names):
            raise Refused("bad")
        return [{"kind": "HTTPRoute", "metadata": {"name": name}} for name in names]

    objects = [
        ingress("/", {"canary": "true"}, name="canary"),
        ingress("/", {}, name="bad"),
        ingress("/", {}, name="main"),
    ]
    found = convert_most(convert, objects)
    assert [one["metadata"]["name"] for one in found.documents] == ["main", "canary"]
    assert (found.left_out, found.errors) == (("shop/bad",), ("bad",))


def test_names_of_ports_become_numbers() -> None:
    one = ingress("/", {})
    backend = one["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    for name, number in (("http", 80), ("web", 81), ("none", None)):
        backend["port"] = {"name": name}
        *_, changed = resolve_ports([*standard_objects(), one])
        (path,) = changed["spec"]["rules"][0]["http"]["paths"]
        expected = {"name": name} if number is None else {"number": number}
        assert path["backend"]["service"]["port"] == expected


def test_gateways_become_one() -> None:
    def listener(hostname: str, secret: str | None = None) -> dict[str, Any]:
        if secret is None:
            return {"name": "x", "hostname": hostname, "port": 80, "protocol": "HTTP"}
        refs = {"certificateRefs": [{"name": secret}]}
        return {"name": "y", "hostname": hostname, "port": 443, "protocol": "HTTPS", "tls": refs}

    def gateway(space: str, *listeners: dict[str, Any]) -> dict[str, Any]:
        spec = {"gatewayClassName": "nginx", "listeners": [*listeners]}
        return {
            "kind": "Gateway",
            "metadata": {"namespace": space, "name": "nginx"},
            "spec": spec,
        }

    route = {
        "kind": "HTTPRoute",
        "metadata": {"namespace": "web", "name": "r"},
        "spec": {"parentRefs": [{"name": "nginx", "sectionName": "x"}]},
    }
    first = gateway("shop", listener("a.test"), listener("a.test", "exact"))
    second = gateway("web", listener("a.test"), listener("b.test", ""), listener("b.test", "www"))
    made, *others = join_gateways([first, second, route])
    listeners = made["spec"]["listeners"]
    assert [one["name"] for one in listeners] == ["l1", "l2", "l3"]
    refs = [one["tls"]["certificateRefs"] for one in listeners if "tls" in one]
    assert refs == [
        [{"name": "exact", "namespace": "shop"}],
        [{"name": "www", "namespace": "web"}],
    ]
    assert [one["kind"] for one in others] == ["ReferenceGrant", "ReferenceGrant", "HTTPRoute"]
    assert others[-1]["spec"]["parentRefs"] == [{"name": "nginx", "namespace": "ingress-nginx"}]
    assert join_gateways([route]) == [route]


def test_a_program_prints_documents_or_refuses(tmp_path: Path) -> None:
    program = tmp_path / "converter"
    program.write_text(
        "#!/bin/sh\n"
        'grep -q "name: bad" "$6" && { echo "cannot convert" >&2; exit 1; }\n'
        'printf "%s\\n---\\n" "kind: HTTPRoute"\n'
    )
    program.chmod(0o755)
    convert = ingress2gateway(find_ingress2gateway(str(program)), tmp_path)
    assert convert([ingress("/", {})]) == [{"kind": "HTTPRoute"}]
    with pytest.raises(Refused, match="cannot convert"):
        convert([ingress("/", {}, name="bad")])


def test_a_missing_program_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"install ingress2gateway 1\.1\.0"):
        find_ingress2gateway("")
