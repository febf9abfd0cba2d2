"""Bounds of what is held: no more than a sound object in its place could have, and nothing that is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.translate.test_reserved_hostnames import (
    WIDE,
    Object,
    _ask,
    _gateway,
    _lenient,
    _listener,
    _read,
    _route,
    _serve,
    _set,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("owner", ["a set", "a Gateway that is merged"])
@pytest.mark.parametrize(
    ("listener", "scheme"),
    [
        (_listener("near", "203.0.113.7", port=80), "http"),
        (_listener("near", "203.0.113.7"), "https"),
        ({"name": "near", "port": 443, "protocol": "UDP", "hostname": "a.test"}, "https"),
        ({"name": "near", "port": 80, "protocol": "TCP", "hostname": "a.test"}, "http"),
    ],
    ids=["an address", "an address with TLS", "UDP", "TCP"],
)
def test_a_name_that_no_sound_listener_could_have_is_not_held(
    tmp_path: Path, listener: Object, scheme: str, owner: str
) -> None:
    """Or a mistake of one would take from others what nothing sound of his could."""
    other = _set("more", listener) if owner == "a set" else _gateway("other", listener)
    _, table = _serve(_lenient(tmp_path, [WIDE, other]))
    assert _ask(table, scheme, listener["hostname"]) == "wide"


def test_listeners_of_one_name_have_a_place_each(tmp_path: Path) -> None:
    """Their name is the mistake for which the Gateway is not served."""
    plain = [_listener("plain", name, port=80) for name in ("a.test", "b.test", "c.test")]
    plain[2]["hostname"] = ["c.test", "d.test"]
    reading = _read(tmp_path, [WIDE, _gateway("other", *plain, _listener("plain-1", "e.test"))])
    _, table = _serve(reading)
    for name in "abcd":
        assert _ask(table, "http", f"{name}.test") == "404"
    assert _ask(table, "https", "e.test") == ""


def test_what_is_closed_without_a_name_of_its_own_takes_no_place_from_what_is_served(
    tmp_path: Path,
) -> None:
    served = _listener("plain", "a.test", port=80)
    copy = _gateway("Near Copy", served)  # in the order of names it would be the first
    _, table = _serve(
        _read(tmp_path, [WIDE, _gateway("near", served), _route("near", "near"), copy])
    )
    assert _ask(table, "http", "a.test") == "near"


def test_a_second_gateway_of_one_name_takes_no_place_from_what_is_served(tmp_path: Path) -> None:
    served = _gateway("near", _listener("plain", "b.test", port=80))
    again = _gateway("edge", *(_listener(f"p{n}", f"{n}.test", port=80) for n in "ab"))
    _, table = _serve(_read(tmp_path, [WIDE, served, _route("near", "near"), again]))
    assert _ask(table, "http", "b.test") == "near"
    assert _ask(table, "http", "a.test") == "404"


def test_sets_of_a_gateway_whose_word_on_them_cannot_be_read_keep_their_places(
    tmp_path: Path,
) -> None:
    edge = _gateway(
        "edge", _listener("tls", "edge.test"), allowedListeners={"namespaces": {"from": "Sum"}}
    )
    wide = _gateway("wide", _listener("tls"))
    reading = _read(
        tmp_path, [edge, _set("more", _listener("near", "a.test")), wide, _route("far", "wide")]
    )
    _, table = _serve(reading)
    assert _ask(table, "https", "a.test") == ""
    assert _ask(table, "https", "other.test") == "far"
