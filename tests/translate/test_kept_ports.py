"""Who keeps a port of TCP or UDP while he is not served: there the port is the place, and clients cannot be told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgefast.translate import Settings, translate
from edgefast.translate.translation import Translation
from tests.translate.test_reserved_hostnames import (
    Object,
    _gateway,
    _lenient,
    _listener,
    _object,
    _read,
    _set,
)

pytestmark = pytest.mark.pure

OLD, NEW = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
SOUND = _listener("sound", "sound.test", 80)


def _port(protocol: str, name: str = "db", **more: object) -> Object:
    return {"name": name, "port": 5432, "protocol": protocol, **more}


def _translate(folder: Path, *objects: Object) -> Translation:
    """As from an API server, which lets through what its schema does not see."""
    return translate(_lenient(folder, objects).snapshot, Settings())


def _served(translation: Translation) -> set[str]:
    (fleet,) = translation.ir.fleets
    return {one.name.removeprefix("default/") for one in fleet.listeners}


def _message(translation: Translation, name: str, kind: str = "Gateway") -> list[tuple[str, str]]:
    return [
        (one.reason, one.message)
        for one in translation.problems
        if one.object.name == name and one.object.kind == kind and one.severity == "error"
    ]


#: Of an older Gateway, refused one way or the other; with the protocol of what comes later.
KEPT = {
    "two of TCP": ([_port("TCP"), _port("TCP", "other")], "TCP"),
    "two of UDP": ([_port("UDP"), _port("UDP", "other")], "UDP"),
    "TCP, and HTTP comes": ([_port("TCP"), _port("TCP", "other")], "HTTP"),
}


@pytest.mark.parametrize(("listeners", "later"), KEPT.values(), ids=KEPT)
def test_a_younger_gateway_does_not_get_the_port(
    tmp_path: Path, listeners: list[Object], later: str
) -> None:
    made = _translate(
        tmp_path,
        _gateway("first", *listeners, SOUND, age=OLD),
        _gateway("second", _port(later, "mine"), age=NEW),
    )
    assert _served(made) == {"first/sound"}
    ((reason, message),) = _message(made, "second")
    if later == "HTTP":
        wanted = (
            "port 5432 belongs to listener default/first/db with protocol TCP, which is not served"
        )
        assert (reason, message) == ("ProtocolConflict", wanted)
    else:
        assert reason == "HostnameConflict"
        said = "same as listener default/first/db, which is not served: "
        assert message.startswith(f"port 5432 with no hostname: {said}")
    status = made.statuses.gateways["default", "second"].listeners[0]
    told = {one.type: (one.status, one.reason) for one in status.conditions}
    assert told["Conflicted"] == ("True", reason)


def test_one_number_of_two_transports_is_two_ports(tmp_path: Path) -> None:
    made = _translate(
        tmp_path,
        _gateway("first", _port("TCP"), _port("TCP", "other"), SOUND, age=OLD),
        _gateway("second", _port("UDP", "mine"), age=NEW),
    )
    assert _served(made) == {"first/sound", "second/mine"}


def test_who_lost_the_port_keeps_it_from_nobody(tmp_path: Path) -> None:
    """The oldest has it for names, and a TCP listener after it could never have had it."""
    made = _translate(
        tmp_path,
        _gateway("first", _listener("web", "a.test", 5432), age=OLD),
        _gateway("second", _port("TCP"), age="2025-06-01T00:00:00Z"),
        _gateway("third", _listener("web", "c.test", 5432), age=NEW),
    )
    assert _served(made) == {"first/web", "third/web"}
    made = _translate(
        tmp_path,
        _gateway("first", _listener("web", "a.test", 5432), age=OLD),
        _gateway("second", _port("TCP"), _port("TCP", "other"), age="2025-06-01T00:00:00Z"),
        _gateway("third", _listener("web", "c.test", 5432), age=NEW),
    )
    assert _served(made) == {"first/web", "third/web"}


def test_a_port_with_a_kept_hostname_does_not_become_one_of_tcp(tmp_path: Path) -> None:
    """All that was for the hostname would reach somebody else's backend, unread."""
    made = _translate(
        tmp_path,
        _gateway("first", _listener("one", "a.test", 5432), _listener("two", "a.test", 5432), SOUND, age=OLD),
        _gateway("second", _port("TCP", "mine"), age=NEW),
    )  # fmt: skip
    assert _served(made) == {"first/sound"}
    wanted = (
        "port 5432 belongs to listener default/first/one with protocol HTTP, which is not served"
    )
    assert _message(made, "second") == [("ProtocolConflict", wanted)]


@pytest.mark.parametrize("first", [_port("TCP"), _listener("one", "a.test", 5432)])
def test_a_later_set_of_the_gateway_does_not_get_it(tmp_path: Path, first: Object) -> None:
    closed = _set("a", {**first, "allowedRoutes": 5})
    sets = [closed, _set("b", _port("TCP", "mine"))]
    reading = _read(tmp_path, [_gateway("edge", SOUND), *sets])
    made = translate(reading.snapshot, Settings())
    assert _served(made) == {"edge/sound"}
    ((reason, message),) = _message(made, "b", "ListenerSet")
    assert reason == ("HostnameConflict" if first["protocol"] == "TCP" else "ProtocolConflict")
    assert "another listener of the Gateway" in message


@pytest.mark.parametrize("protocol", ["TCP", "udp"])
def test_of_a_closed_gateway_the_port_is_kept_whatever_its_hostname(
    tmp_path: Path, protocol: str
) -> None:
    """The API ignores a hostname there, so one that cannot be read hides no place."""
    spoken = protocol.upper()
    closed = _gateway("first", _port(protocol, hostname="x y"), age=OLD)
    younger = _gateway("second", _port(spoken, "mine"), age=NEW)
    reading = _read(tmp_path, [closed, younger, _gateway("edge", SOUND, age=NEW)])
    made = translate(reading.snapshot, Settings())
    assert _served(made) == {"edge/sound"}
    ((reason, message),) = _message(made, "second")
    assert reason == "HostnameConflict" and "default/first/db, which is not served" in message
    (warned,) = [one for one in made.problems if one.object.name == "first"]
    assert warned.message.endswith(f"no listener serves {spoken} port 5432")


def test_a_closed_gateway_keeps_no_port_that_an_older_one_serves(tmp_path: Path) -> None:
    closed = _object("Gateway", "second", {"gatewayClassName": "edge", "listeners": [_port("TCP", hostname="x y")]}, creationTimestamp="2025-06-01T00:00:00Z")  # fmt: skip
    first = _gateway("first", _port("TCP"), age=OLD)
    made = translate(_read(tmp_path, [first, closed]).snapshot, Settings())
    assert _served(made) == {"first/db"}
    (warned,) = [one for one in made.problems if one.object.name == "second"]
    assert warned.message.endswith("another listener has TCP port 5432")
