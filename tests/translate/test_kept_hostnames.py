"""Who keeps a hostname while he is not served, and what is said of it: one rule for what is broader and for what comes later."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.translate import Settings, translate
from edgefast.translate.translation import Translation
from tests.translate.test_reserved_hostnames import (
    CLASS,
    WIDE,
    Object,
    _ask,
    _gateway,
    _lenient,
    _listener,
    _object,
    _read,
    _route,
    _serve,
    _set,
)

pytestmark = pytest.mark.pure

OLD, NEW = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
#: Listeners of an older Gateway that are refused, one way or the other.
REFUSED = {
    "a protocol of others": [_listener("near", "a.test", protocol="acme.io/QUIC")],
    "a protocol that is none": [_listener("near", "a.test", protocol="HTPS")],
    "two that are equal": [_listener("one", "a.test"), _listener("two", "a.test")],
    "two protocols": [_listener("one", "a.test"), _listener("two", "b.test", protocol="HTTP")],
}


@pytest.mark.parametrize("listeners", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("later", ["a Gateway", "a set"])
def test_what_comes_later_does_not_get_the_hostname(
    tmp_path: Path, listeners: list[Object], later: str
) -> None:
    near, wide = _listener("near", "a.test"), _gateway("edge", _listener("tls"), age=NEW)
    objects = [
        wide,
        _gateway("first", *listeners, _listener("sound", "sound.test", 80), age=OLD),
        _gateway("second", near, age=NEW) if later == "a Gateway" else _set("second", near, parent="first"),
        _route("second", "second"),
    ]  # fmt: skip
    if later == "a set":
        objects[3]["spec"]["parentRefs"][0]["kind"] = "ListenerSet"
    _, table = _serve(_lenient(tmp_path, objects))
    assert _ask(table, "https", "a.test") == ""
    assert _ask(table, "https", "c.test") == "wide"


def test_a_listener_that_lost_its_hostname_keeps_it_from_nobody(tmp_path: Path) -> None:
    """The set is too late for HTTP on the port; the younger Gateway is not."""
    objects = [
        _gateway("edge", _listener("tls"), age=OLD),
        _set("more", _listener("near", "a.test", protocol="HTTP")),
        _gateway("second", _listener("near", "a.test"), age=NEW),
        _route("second", "second"),
    ]
    objects[1]["spec"]["listeners"][0].pop("tls")
    _, table = _serve(_lenient(tmp_path, objects))
    assert _ask(table, "https", "a.test") == "second"


@pytest.mark.parametrize("owner", ["Gateway", "ListenerSet"])
@pytest.mark.parametrize("same_port", [True, False])
def test_a_second_listener_of_one_name_is_judged(
    tmp_path: Path, owner: str, same_port: bool
) -> None:
    """The API keeps names unique; whatever comes all the same, the second is closed and nothing raises."""
    listeners = [_listener("twin", "a.test", 80), _listener("twin", "b.test", 80)]
    listeners[1]["port"] = 80 if same_port else 8080
    wide = _listener("wide", port=listeners[1]["port"])
    if owner == "Gateway":
        objects = [_gateway("edge", wide, *listeners)]
    else:
        objects = [_gateway("edge", wide), _set("more", *listeners)]
    served, table = _serve(_lenient(tmp_path, objects))
    (said,) = [one for one in served.problems if one.reason == "Duplicate"]
    assert said.path.startswith("spec.listeners[") and said.path.endswith("].name")
    assert '"twin"' in said.message and said.severity == "error"
    assert _ask(table, "http", "b.test", listeners[1]["port"]) == "404"
    assert _ask(table, "http", "c.test", listeners[1]["port"]) == "wide"
    names = [one.name for one in table.fleet.listeners]
    assert len(names) == len(set(names)) == 3
    told = served.statuses.gateways["default", "edge"].listeners
    if owner == "ListenerSet":
        told = served.statuses.listener_sets["default", "more"].listeners
    assert [one.name for one in told].count("twin") == 1


@pytest.mark.parametrize("kind", ["Gateway", "ListenerSet"])
def test_all_places_of_a_second_object_are_kept_where_the_first_is_somewhere_else(
    tmp_path: Path, kind: str
) -> None:
    """The very hostname of both too: the first one does not serve it there."""
    near = _listener("near", "a.test", 80)
    foreign = _object("GatewayClass", "foreign", {"controllerName": "example.com/theirs"})
    other = _gateway("other", _listener("far", "far.test", 8080), gatewayClassName="foreign")
    if kind == "Gateway":
        first, second = _gateway("two", near, gatewayClassName="foreign"), _gateway("two", near)
    else:
        first, second = _set("two", near, parent="other"), _set("two", near)
    _, table = _serve(_read(tmp_path, [WIDE, foreign, other, first, second]))
    assert _ask(table, "http", "a.test") == "404"
    assert _ask(table, "http", "b.test") == "wide"


# --- words ------------------------------------------------------------------------------------------


def _warning(served: Translation, name: str) -> str:
    (said,) = [
        one.message
        for one in served.problems
        if "its listeners are not served" in one.message and one.object.name == name  # type: ignore[union-attr]
    ]
    return said


def test_words_of_a_set_that_its_gateway_does_not_allow(tmp_path: Path) -> None:
    edge = _gateway("edge", *WIDE["spec"]["listeners"], allowedListeners={})
    broken = _set("more", _listener("near", "a.test", 80))
    broken["spec"]["listner"] = 1
    served, table = _serve(_read(tmp_path, [edge, broken]))
    assert _ask(table, "http", "a.test") == "wide"
    said = _warning(served, "more")
    assert "its Gateway does not allow it" in said and "other listeners can get" in said
    assert "404" not in said


def test_words_name_who_answers(tmp_path: Path) -> None:
    names = [("a.test", 80), ("b.test", 80), ("c.test", 8080)]
    broken = _set("more", *(_listener(f"l{at}", *one) for at, one in enumerate(names)))
    broken["spec"]["listner"] = 1
    edge = _gateway("edge", *WIDE["spec"]["listeners"], _listener("taken", "b.test", 80))
    served, table = _serve(_read(tmp_path, [edge, broken]))
    said = _warning(served, "more")
    assert "; a.test:80 answers 404 or ends the TLS handshake; " in said
    assert "; another listener has b.test:80; " in said
    assert said.endswith("; no listener serves c.test:8080")
    assert _ask(table, "http", "a.test") == "404"
    assert _ask(table, "http", "b.test") == "wide"


@pytest.mark.parametrize("slip", ["allowedListners", "allowedListener"])
def test_a_slip_in_who_may_attach_opens_no_place_of_a_set(tmp_path: Path, slip: str) -> None:
    closed = _gateway("closed", _listener("own", "own.test", 80))
    closed["spec"][slip] = closed["spec"].pop("allowedListeners")
    near = _set("more", _listener("near", "a.test", 80), parent="closed")
    near["metadata"]["namespace"] = "their"
    near["spec"]["parentRef"]["namespace"] = "default"
    served, table = _serve(_read(tmp_path, [WIDE, closed, near]))
    assert _ask(table, "http", "a.test") == "404"
    assert not [one for one in served.problems if one.reason == "NotAllowed"]


def test_words_of_a_closed_gateway_that_nobody_listens_for(tmp_path: Path) -> None:
    """Its fleet is its own, and has no listener at all."""
    broken = _gateway("other", _listener("near", "a.test", 80))
    broken["spec"]["listner"] = 1
    reading = _read(tmp_path, [CLASS, broken])
    served = translate(reading.snapshot, Settings(standalone=False))
    assert _warning(served, "other").endswith("; no listener serves a.test:80")
