"""Keys of session tickets in a cluster: when they rotate, what each fleet is given, what a Secret may say."""

from __future__ import annotations

import base64
import hmac
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from controller.certs.ticket_key_rotation import (
    PERIOD,
    Tickets,
    decode_tickets,
    derive_for_fleet,
    encode_tickets,
    is_due,
    make_tickets,
    rotate_tickets,
)
from edgefast.proxy.tls import ticket_key_rotation
from edgefast.xds.messages import ProtocolError, decode_response
from edgefast.xds.ticket_messages import decode_given, encode_given
from edgefast.xds.ticket_secrets import TicketSecrets

pytestmark = pytest.mark.pure

START = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)


def made() -> Tickets:
    numbers = count(1)
    return make_tickets(lambda: bytes([next(numbers)]) * 32, START)


def test_the_period_is_that_of_proxies() -> None:
    assert PERIOD / timedelta(milliseconds=1) == ticket_key_rotation.PERIOD


def test_each_key_was_the_next_one_before() -> None:
    first = made()
    second = rotate_tickets(first, lambda: b"3" * 32, START + PERIOD)
    assert (second.previous, second.current, second.next) == (first.current, first.next, b"3" * 32)
    assert second.since == START + PERIOD


@pytest.mark.parametrize(
    ("wall", "seen", "moved", "due"),
    [
        (11 * HOUR, 11 * HOUR, None, False),
        (12 * HOUR, 12 * HOUR, None, True),
        (12 * HOUR, 1 * HOUR, None, True),  # a process that has just started
        (900 * HOUR, 1 * HOUR, 1 * HOUR, False),  # set ahead right after a rotation
        (900 * HOUR, 6 * HOUR, 6 * HOUR, True),  # once
        (-900 * HOUR, 11 * HOUR, None, False),  # set back
        (-900 * HOUR, 12 * HOUR, 12 * HOUR, True),
    ],
)
def test_wall_clocks_may_be_set(
    wall: timedelta, seen: timedelta, moved: timedelta | None, due: bool
) -> None:
    assert is_due(made(), START + wall, seen, moved, PERIOD) is due


def test_a_secret_holds_them_and_shows_nothing() -> None:
    first = made()
    second = rotate_tickets(first, lambda: b"3" * 32, START + PERIOD)
    for one in (first, second):
        assert decode_tickets(encode_tickets(one)) == one
    assert "3333" not in repr(second)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"current": None}, "current is missing"),
        ({"next": "!"}, "next is not base64"),
        ({"next": base64.b64encode(b"short").decode()}, "next does not have 32 bytes"),
        ({"previous": base64.b64encode(b"\1" * 32).decode()}, "are the same"),
        ({"since": "yesterday"}, "since is not a time"),
        ({"since": "2026-11-21T00:00:00"}, "no time zone"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, str | None], said: str) -> None:
    data = {**encode_tickets(made()), **change}
    with pytest.raises(ValueError, match=said):
        decode_tickets({name: one for name, one in data.items() if one is not None})


def test_fleets_have_keys_of_their_own() -> None:
    held = rotate_tickets(made(), lambda: b"3" * 32, START)
    one, same, other = (derive_for_fleet(held, f"ns/{name}") for name in ("a", "a", "b"))
    assert one == same
    keys = [key for given in (one, other) for key in (given.previous, given.current, given.next)]
    assert len({*keys, held.previous, held.current, held.next}) == 9
    info = b"edgefast fleet tickets 1ns/a"
    assert one.current == hmac.digest(held.current, info + b"\1", "sha256")  # RFC 5869 2.3
    assert derive_for_fleet(made(), "ns/a").previous == b""


def test_the_stream_carries_them() -> None:
    for given in (derive_for_fleet(made(), "ns/a"), TicketSecrets(b"p" * 32, b"c" * 32, b"n" * 32)):
        assert decode_given(decode_response(encode_given(given))) == given


@pytest.mark.parametrize(
    "given",
    [
        TicketSecrets(b"p" * 32, b"c" * 31, b"n" * 32),
        TicketSecrets(b"p" * 32, b"n" * 32, b"n" * 32),
        TicketSecrets(b"p", b"c" * 32, b"n" * 32),
    ],
)
def test_what_no_controller_says_is_refused(given: TicketSecrets) -> None:
    with pytest.raises(ProtocolError, match="have another type"):
        decode_given(decode_response(encode_given(given)))
