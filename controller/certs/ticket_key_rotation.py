"""Ticket key rotation: session ticket secrets of a cluster: previous, current and next, rotated by the leader, derived for each fleet.

In: a state, times, a source of randomness.
Out: the desired state, its encoding in a Secret, and the secrets of a fleet's proxies. All replicas
have a secret one period before it encrypts. The secrets of fleets are derived (HKDF-Expand, RFC
5869), so a proxy cannot compute those of another fleet. No I/O, no clock.
Must never: rotate twice because the wall clock was changed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from edgefast.xds.ticket_messages import SECRET
from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = [
    "PERIOD",
    "Tickets",
    "decode_tickets",
    "derive_for_fleet",
    "encode_tickets",
    "is_due",
    "make_tickets",
    "rotate_tickets",
]

#: As long as proxies' own keys encrypt (edgefast.proxy.tls.ticket_key_rotation).
PERIOD = timedelta(hours=12)
_LABEL = b"edgefast fleet tickets 1"


class Tickets(msgspec.Struct, frozen=True):
    """`since`: when `current` began, by the wall clock of who rotated."""

    previous: bytes  # empty before the first rotation
    current: bytes
    next: bytes
    since: datetime

    def __repr__(self) -> str:
        return f"Tickets(since={self.since.isoformat()})"


def make_tickets(make: Callable[[], bytes], now: datetime) -> Tickets:
    """Return the first ones."""
    return Tickets(b"", make(), make(), now)


def rotate_tickets(held: Tickets, make: Callable[[], bytes], now: datetime) -> Tickets:
    """Return them after one step: the next one encrypts, the current one only decrypts."""
    return Tickets(held.current, held.next, make(), now)


def is_due(
    held: Tickets, now: datetime, seen: timedelta, moved: timedelta | None, period: timedelta
) -> bool:
    """Tell whether to rotate. `seen`: how long this process knows this state; `moved`: since it saw another one become it.

    Both by a clock that nobody sets: after a rotation the wall clock is not asked for half a period, and one that was set
    back is not waited for.
    """
    if moved is not None and moved < period / 2:
        return False
    return now - held.since >= period or seen >= period


def derive_for_fleet(held: Tickets, fleet: str) -> TicketSecrets:
    """Return what proxies of a fleet ("namespace/name") are given."""

    def derive(secret: bytes) -> bytes:
        info = _LABEL + fleet.encode()
        return HKDFExpand(SHA256(), SECRET, info).derive(secret) if secret else b""

    return TicketSecrets(derive(held.previous), derive(held.current), derive(held.next))


def encode_tickets(held: Tickets) -> dict[str, str]:
    """Return the data of the Secret."""
    named = {"previous": held.previous, "current": held.current, "next": held.next}
    data = {name: base64.b64encode(one).decode() for name, one in named.items() if one}
    return {**data, "since": held.since.isoformat()}


def decode_tickets(data: Mapping[str, str]) -> Tickets:
    """Read the data of the Secret; raises ValueError that names the entry, never its content."""
    found: dict[str, bytes] = {}
    for name in ("previous", "current", "next"):
        if name not in data and name != "previous":
            raise ValueError(f"{name} is missing")
        try:
            found[name] = base64.b64decode(data.get(name, ""), validate=True)
        except binascii.Error:
            raise ValueError(f"{name} is not base64") from None
        if len(found[name]) != SECRET and not (name == "previous" and not found[name]):
            raise ValueError(f"{name} does not have {SECRET} bytes")
    if len(set(found.values())) != len(found):
        raise ValueError("two of previous, current and next are the same")
    try:
        since = datetime.fromisoformat(data["since"])
    except (KeyError, ValueError):
        raise ValueError("since is not a time") from None
    if since.tzinfo is None:
        raise ValueError("since has no time zone")
    return Tickets(since=since, **found)
