"""Listeners that are not served: their hostnames stay theirs, and no broader listener of the port takes the requests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.snapshot import Snapshot
from edgefast.explain.explain import explain
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.explain.source_location import Origin
from edgefast.providers.files import FileSource, Reading
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest
from tests.translate.golden import BASES

pytestmark = pytest.mark.pure

API = "gateway.networking.k8s.io/v1"
CERTIFICATE = {"certificateRefs": [{"name": "ecdsa"}]}
Object = dict[str, Any]


def _object(kind: str, name: str, spec: Object, **meta: Any) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def _listener(name: str, hostname: str = "", port: int = 443, **more: Any) -> Object:
    made = {"name": name, "port": port, "protocol": "HTTPS" if port == 443 else "HTTP", **more}
    if port == 443:
        made = {"tls": CERTIFICATE, **made}
    return {**made, "hostname": hostname} if hostname else made


def _gateway(name: str, *listeners: Object, age: str = "", **spec: Any) -> Object:
    return _object(
        "Gateway",
        name,
        {
            "gatewayClassName": "edge",
            "listeners": list(listeners),
            "allowedListeners": {"namespaces": {"from": "All"}},
            **spec,
        },
        **({"creationTimestamp": age} if age else {}),
    )


def _set(name: str, *listeners: Object, parent: Any = "edge") -> Object:
    return _object(
        "ListenerSet", name, {"parentRef": {"name": parent}, "listeners": list(listeners)}
    )


def _route(name: str, parent: str) -> Object:
    away = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{name}.example"}}
    return _object(
        "HTTPRoute", name, {"parentRefs": [{"name": parent}], "rules": [{"filters": [away]}]}
    )


CLASS = _object(
    "GatewayClass", "edge", {"controllerName": "gateway.edge.io/gatewayclass-controller"}
)
WIDE = _gateway("edge", _listener("tls"), _listener("plain", port=80))


def _read(folder: Path, objects: Iterable[Object], source: FileSource | None = None) -> Reading:
    text = "---\n".join(json.dumps(one) + "\n" for one in (CLASS, _route("wide", "edge"), *objects))
    (folder / "certificates.yaml").write_text((BASES / "certificates.yaml").read_text())
    (folder / "world.yaml").write_text(text)
    return (source or FileSource([folder])).read()


def _lenient(folder: Path, objects: Iterable[Object]) -> Reading:
    """What an API server might let through; in files it would be the mistake of a whole object."""
    found = []
    for raw in (CLASS, _route("wide", "edge"), *objects):
        one = decode_api_object(raw, raw["kind"])
        namespace = "" if raw is CLASS else "default"  # a server gives all of them one
        meta = msgspec.structs.replace(one.metadata, namespace=namespace)
        found.append(msgspec.structs.replace(one, metadata=meta))
    reading = _read(folder, [])
    return msgspec.structs.replace(reading, snapshot=reading.snapshot.replace(found))


def _serve(reading: Reading) -> tuple[Translation, Served]:
    served = translate(reading.snapshot, Settings(standalone=True))
    (fleet,) = served.ir.fleets
    return served, Served(fleet, origin=Origin(served, reading.problems))


def _ask(table: Served, scheme: str, host: str, port: int = 0) -> str:
    """Return what a request gets: a route's name, a status, or "" for no answer."""
    port = port or (443 if scheme == "https" else 80)
    sni = host if scheme == "https" else ""
    found = explain(table, RequestSpec(scheme=scheme, host=host, port=port, target="/", sni=sni))
    (answer,) = found.answers
    if answer.kind == "redirect":
        return answer.location.split("/")[2].split(".")[0]
    return "" if answer.kind == "closed" else str(answer.status)


#: A protocol that is nobody's here.
_OTHER = "acme.io/QUIC"
BROKEN = {
    "no certificate": _listener("near", "a.test", tls={"certificateRefs": [{"name": "no"}]}),
    "an option that is not known": _listener(
        "near", "a.test", tls={**CERTIFICATE, "options": {"gateway.edge.io/mtls": "yes"}}
    ),
    "another protocol": _listener("near", "a.test", protocol=_OTHER),
    "kinds of routes that are not served": _listener(
        "near", "a.test", allowedRoutes={"kinds": [{"kind": "TCPRoute"}]}
    ),
}


@pytest.mark.parametrize("listener", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("owner", ["the Gateway", "a set", "a Gateway that is merged"])
def test_the_place_of_a_broken_listener_is_held(
    tmp_path: Path, listener: Object, owner: str
) -> None:
    plain = {
        **{key: listener[key] for key in listener if key != "tls"},
        "port": 80,
        "name": "plain",
    }
    plain |= {} if plain["protocol"] == _OTHER else {"protocol": "HTTP"}
    if "allowedRoutes" not in listener and plain["protocol"] == "HTTP":
        plain["protocol"] = _OTHER  # what is wrong with TLS is no mistake on port 80
    both = (listener, plain)
    edge = WIDE["spec"]["listeners"]
    objects = {
        "the Gateway": [_gateway("edge", *edge, listener, {**plain, "name": "other"})],
        "a set": [WIDE, _set("more", *both)],
        "a Gateway that is merged": [WIDE, _gateway("other", *both), _route("near", "other")],
    }[owner]
    _, table = _serve(_lenient(tmp_path, objects))
    assert _ask(table, "https", "b.test") == _ask(table, "http", "b.test") == "wide"
    assert _ask(table, "https", "a.test") == ""
    assert _ask(table, "http", "a.test") == "404"


def test_listeners_that_conflict_lose_to_nobody_broader(tmp_path: Path) -> None:
    twins = (_listener("one", "a.test", 80), _listener("two", "a.test", 80))
    _, table = _serve(_lenient(tmp_path, [_gateway("edge", *WIDE["spec"]["listeners"], *twins)]))
    assert (_ask(table, "http", "a.test"), _ask(table, "http", "b.test")) == ("404", "wide")


def test_a_place_that_somebody_else_serves_is_his(tmp_path: Path) -> None:
    """A younger listener that is refused takes nothing from an older one."""
    broken = _listener("near", "a.test", tls={"certificateRefs": [{"name": "no"}]})
    objects = [
        WIDE,
        _gateway("first", _listener("near", "a.test"), age="2025-01-01T00:00:00Z"),
        _route("first", "first"),
        _gateway("second", broken, age="2026-01-01T00:00:00Z"),
    ]
    _, table = _serve(_lenient(tmp_path, objects))
    assert _ask(table, "https", "a.test") == "first"


def test_an_older_listener_that_is_refused_keeps_its_place_from_a_younger_one(
    tmp_path: Path,
) -> None:
    refused = BROKEN["an option that is not known"]
    objects = [
        WIDE,
        _gateway("first", refused, age="2025-01-01T00:00:00Z"),
        _gateway("second", _listener("near", "a.test"), age="2026-01-01T00:00:00Z"),
        _route("second", "second"),
    ]
    _, table = _serve(_lenient(tmp_path, objects))
    assert _ask(table, "https", "a.test") == ""


def test_a_gateway_whose_settings_are_missing_holds_its_places(tmp_path: Path) -> None:
    reference = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "no"}
    other = _gateway(
        "other", _listener("near", "a.test"), infrastructure={"parametersRef": reference}
    )
    _, table = _serve(_lenient(tmp_path, [WIDE, other]))
    assert (_ask(table, "https", "a.test"), _ask(table, "https", "b.test")) == ("", "wide")


# --- objects that cannot be read --------------------------------------------------------------------

GATEWAY = _gateway("other", _listener("near", "a.test"), _listener("plain", "a.test", 80))
SET = _set("more", _listener("near", "a.test"), _listener("plain", "a.test", 80))


def _with(one: Object, **spec: Any) -> Object:
    return {**one, "spec": {**one["spec"], **spec}}


def _listeners(one: Object, **more: Any) -> Object:
    return _with(one, listeners=[{**listener, **more} for listener in one["spec"]["listeners"]])


MISTAKES = {
    "a field that is not known": lambda one: _with(one, listner=1),
    "a field of a listener": lambda one: _listeners(one, hostnme="b.test"),
    "a value that is none": lambda one: _listeners(one, allowedRoutes=[]),
    "a port in words": lambda one: _with(
        one, listeners=[{**x, "port": str(x["port"])} for x in one["spec"]["listeners"]]
    ),
    "a URL for a hostname": lambda one: _listeners(one, hostname="https://A.test/"),
    "a list of hostnames": lambda one: _listeners(one, hostname=["a.test"]),
    "protocols in small letters": lambda one: _listeners(one, protocol=7),
    "no version": lambda one: {key: one[key] for key in one if key != "apiVersion"},
    "another version": lambda one: {**one, "apiVersion": "gateway.networking.k8s.io/v7"},
    "a name that is none": lambda one: {**one, "metadata": {"name": "no name"}},
}


@pytest.mark.parametrize("change", MISTAKES.values(), ids=MISTAKES)
@pytest.mark.parametrize("one", [GATEWAY, SET], ids=["Gateway", "ListenerSet"])
def test_places_of_an_object_that_cannot_be_read_are_held(
    tmp_path: Path, one: Object, change: Any
) -> None:
    parent = _route("near", "other")
    if one is SET:
        parent["spec"]["parentRefs"] = [
            {"name": "more", "kind": "ListenerSet", "sectionName": "no"}
        ]
    reading = _read(tmp_path, [WIDE, change(one), parent])
    assert [one for one in reading.problems if one.severity == "error"]
    served, table = _serve(reading)
    assert (_ask(table, "https", "a.test"), _ask(table, "http", "a.test")) == ("", "404")
    assert _ask(table, "https", "b.test") == _ask(table, "http", "b.test") == "wide"
    (said,) = [found for found in served.problems if "no good version" in found.message]
    assert said.severity == "warning" and "a.test:443, a.test:80" in said.message
    assert "cannot be told" not in said.message
    if "name" in change(one)["metadata"]["name"]:
        return
    # The mistake is told once; what follows from it is in the statuses.
    assert not [found for found in served.problems if found.severity == "error"]


UNTOLD = {
    "a port": lambda one: _listeners(one, port="http"),
    "a hostname": lambda one: _listeners(one, hostname="a_test"),
    "all listeners": lambda one: _with(one, listeners=7),
    "the owner": lambda one: _with(one, gatewayClassName=7, parentRef={"name": 7}),
}


@pytest.mark.parametrize("change", UNTOLD.values(), ids=UNTOLD)
@pytest.mark.parametrize("one", [GATEWAY, SET], ids=["Gateway", "ListenerSet"])
def test_a_place_that_cannot_be_told_is_told_so(tmp_path: Path, one: Object, change: Any) -> None:
    served, table = _serve(_read(tmp_path, [WIDE, change(one)]))
    assert _ask(table, "http", "a.test") == "wide"
    assert [found for found in served.problems if "its hostnames are unknown" in found.message]


def test_statuses_say_so(tmp_path: Path) -> None:
    objects = [WIDE, MISTAKES["a field that is not known"](GATEWAY), _route("near", "other")]
    served, table = _serve(_read(tmp_path, objects))
    status = served.statuses.gateways["default", "other"]
    (accepted,) = [one for one in status.conditions if one.type == "Accepted"]
    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert (
        "the Gateway has an error: spec.listner: Invalid" in accepted.message
        or "listner" in accepted.message
    )
    parent = served.statuses.http_routes["default", "near"].parents[0]
    assert "Gateway default/other has an error" in parent.conditions[0].message
    found = explain(table, RequestSpec(scheme="http", host="a.test", port=80, target="/"))
    assert "listener default/other/plain is closed" in found.answers[0].why


def test_a_good_version_goes_on(tmp_path: Path) -> None:
    source = FileSource([tmp_path])
    sound = [WIDE, GATEWAY, _route("near", "other")]
    before, table = _serve(_read(tmp_path, sound, source))
    assert _ask(table, "https", "a.test") == "near"
    broken = [WIDE, MISTAKES["a field that is not known"](GATEWAY), _route("near", "other")]
    second = _read(tmp_path, broken, source)
    after, table = _serve(second)
    assert _ask(table, "https", "a.test") == "near" and after.ir == before.ir
    # A start knows no good version; the mend opens the place, whatever was before.
    first = _read(tmp_path, broken)
    closed, table = _serve(first)
    assert _ask(table, "https", "a.test") == ""
    mended = _read(tmp_path, sound)
    again = translate(mended.snapshot, Settings(standalone=True), closed)
    assert (
        again.ir
        == translate(Snapshot.of(mended.snapshot.loaded.values()), Settings(standalone=True)).ir
    )


def test_a_closed_gateway_of_a_fleet_of_its_own_keeps_the_fleet(tmp_path: Path) -> None:
    """Its addresses are the last that should go for a slip."""
    reading = _read(tmp_path, [WIDE, MISTAKES["a field that is not known"](GATEWAY)])
    served = translate(reading.snapshot, Settings(standalone=False))
    assert {one.gateways for one in served.infra} == {("default/edge",), ("default/other",)}
    (fleet,) = [one for one in served.ir.fleets if "other" in one.name]
    assert fleet.listeners == ()


# --- what others stand on ---------------------------------------------------------------------------


@pytest.mark.parametrize("adopt", [False, True])
def test_gateways_of_a_class_that_cannot_be_read_hold_their_places(
    tmp_path: Path, adopt: bool
) -> None:
    spec = {**CLASS["spec"], "parametrsRef": {}}
    objects = [
        WIDE,
        _object("GatewayClass", "strict", spec),
        _with(GATEWAY, gatewayClassName="strict"),
    ]
    reading = _read(tmp_path, objects)
    assert [one.severity for one in reading.problems] == ["error"]
    served = translate(reading.snapshot, Settings(standalone=True, adopt=adopt))
    table = Served(served.ir.fleets[0], origin=Origin(served, reading.problems))
    assert (_ask(table, "https", "a.test"), _ask(table, "http", "a.test")) == ("", "404")
    assert _ask(table, "http", "b.test") == "wide"
    assert not [one for one in served.problems if one.severity == "error"]


def test_no_selector_chooses_a_namespace_that_cannot_be_read(tmp_path: Path) -> None:
    """The label that keeps it out may be in the part that is not known."""
    choice = {"matchExpressions": [{"key": "hostile", "operator": "DoesNotExist"}]}
    allowed = {"namespaces": {"from": "Selector", "selector": choice}}
    gateway = _gateway(
        "edge", _listener("plain", port=80, allowedRoutes=allowed), allowedListeners=allowed
    )
    route = _route("their", "edge")
    route["metadata"]["namespace"] = "their"
    route["spec"]["parentRefs"][0]["namespace"] = "default"
    more = _set(
        "more", _listener("near", "a.test", 80, allowedRoutes={"namespaces": {"from": "All"}})
    )
    more["metadata"]["namespace"] = "their"
    more["spec"]["parentRef"]["namespace"] = "default"

    def look(*namespace: Object) -> Reading:
        return _read(tmp_path, [gateway, route, more, *namespace])

    def accepted(served: Translation) -> list[str]:
        """The verdict on the route, the reason, and the number of listeners with those of the set."""
        (parent,) = served.statuses.http_routes["their", "their"].parents
        verdict = parent.conditions[0]
        return [verdict.status, verdict.reason, str(len(served.ir.fleets[0].listeners))]

    def named(labels: Object) -> Object:
        return manifest("Namespace their", labels=labels)

    before, _ = _serve(look())
    assert accepted(before) == ["True", "Accepted", "2"]
    broken = look(named({"hostile": True}))
    assert accepted(_serve(broken)[0]) == ["False", "NotAllowedByListeners", "1"]
    after = translate(broken.snapshot, Settings(standalone=True), before)
    assert accepted(after) == ["False", "NotAllowedByListeners", "1"]
    assert accepted(_serve(look(named({"a": "b"})))[0]) == ["True", "Accepted", "2"]
