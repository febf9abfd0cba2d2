"""Ticket key rotation: when session ticket secrets begin and end: previous, current and next, on a monotonic clock.

In: the present secrets, the time in milliseconds of CLOCK_BOOTTIME, a source of randomness, or a
controller's three secrets.
Out: the desired secrets. A secret exists one period before it encrypts, so late readers of the ring
and other replicas have it by then. It decrypts for one period afterwards. Changes of the wall clock
have no effect.
Must never: show a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from edgefast.xds.ticket_secrets import TicketSecrets

__all__ = ["MOST", "PERIOD", "TicketSecret", "find_due", "plan_given", "plan_own"]

#: Milliseconds that a secret encrypts, and decrypts after that (csrc/ticket.h: EF_TICKET_LIFETIME).
PERIOD = 12 * 3600 * 1000
#: Secrets in a ring (csrc/ticket.h: EF_TICKET_SECRETS).
MOST = 8


class TicketSecret(msgspec.Struct, frozen=True):
    """One secret and its times, as csrc/ticket.h has them."""

    secret: bytes
    begins: int
    ends: int
    forgotten: int

    def __repr__(self) -> str:
        return f"TicketSecret(<secret>, {self.begins}, {self.ends}, {self.forgotten})"


def plan_own(
    secrets: Iterable[TicketSecret], now: int, make: Callable[[], bytes]
) -> tuple[TicketSecret, ...]:
    """Return one's own secrets at `now`; equal to those given when nothing is due."""
    kept = _live(secrets, now)
    if not any(one.begins <= now < one.ends for one in kept):
        kept.append(TicketSecret(make(), now, now + PERIOD, now + 2 * PERIOD))
    last = max(kept, key=lambda one: one.ends)
    if last.begins <= now:
        begins = last.ends
        kept.append(TicketSecret(make(), begins, begins + PERIOD, begins + 2 * PERIOD))
    return _most(kept)


def plan_given(
    secrets: Iterable[TicketSecret], now: int, given: TicketSecrets, own: Collection[bytes] = ()
) -> tuple[TicketSecret, ...]:
    """Return the secrets when a controller has just said which are in force.

    The current one goes on for two periods if nothing more is heard, and then the next one, which all replicas have, too. Of others
    those that this process made itself (`own`) decrypt for a period. What else the controller does not name it has thrown away,
    because somebody may know it: it is forgotten at once.
    """
    live = _live(secrets, now)
    known = {one.secret: one for one in live}
    before = known.get(given.current)
    begins = before.begins if before is not None and before.begins <= now else now
    ends = now + 2 * PERIOD
    found = [
        TicketSecret(given.current, begins, ends, ends + PERIOD),
        TicketSecret(given.next, ends, ends + PERIOD, ends + 2 * PERIOD),
    ]
    if given.previous:
        former = known.get(given.previous, TicketSecret(given.previous, 0, 0, now + PERIOD))
        found.append(_retire(former, min(now, begins)))
    named = {given.previous, given.current, given.next}
    kept = (one for one in live if one.secret in own and one.secret not in named)
    found += [_retire(one, now) for one in kept if one.begins <= now]
    return _most(found)


def find_due(secrets: Sequence[TicketSecret], now: int) -> int:
    """Return the time of the next change: a secret begins, ends or is forgotten."""
    times = (at for one in secrets for at in (one.begins, one.ends, one.forgotten))
    return min((at for at in times if at > now), default=now)


def _live(secrets: Iterable[TicketSecret], now: int) -> list[TicketSecret]:
    """Leave out what is forgotten, and what the clock of this boot cannot have made."""
    return [one for one in secrets if now < one.forgotten <= now + 5 * PERIOD]


def _retire(one: TicketSecret, now: int) -> TicketSecret:
    """Let a secret encrypt no more, and decrypt for a period at most."""
    begins = min(one.begins, max(now - 1, 0))
    ends = max(begins, min(one.ends, now))
    return TicketSecret(one.secret, begins, ends, max(ends, min(one.forgotten, now + PERIOD)))


def _most(secrets: list[TicketSecret]) -> tuple[TicketSecret, ...]:
    """Keep what a ring has room for: those that are forgotten last; in the order of their times."""
    kept = sorted(secrets, key=lambda one: (one.forgotten, one.begins, one.secret))[-MOST:]
    return tuple(kept)
