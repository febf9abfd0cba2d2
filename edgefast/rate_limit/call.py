"""Call: one script call in progress, with up to 512 checks that are counted together and the number of attempts.

In: checks.
Out: the packed command. It is kept until its reply, so that a call that certainly counted nothing
can be sent again unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from edgefast.rate_limit.script import MAX_KEYS, Check, pack_checks
from edgefast.rate_limit.tags import tag_of

__all__ = ["Call", "cut_calls"]


class Call:
    """One EVALSHA."""

    MAX_TRIES = (
        4  # a moved slot, a forgotten script and a failover may come together; more is a loop
    )

    __slots__ = ("asking", "checks", "late", "packet", "tries")

    def __init__(self, checks: list[Check]) -> None:
        self.checks = checks
        self.packet = pack_checks(checks)
        self.tries = 1
        self.asking = False  # announce it to a node that is still importing the slot
        self.late = False  # it had its time: its reply is no sign of health

    @property
    def tag(self) -> int:
        """The tag of its counters; all have one in a Cluster."""
        return tag_of(self.checks[0].key)

    def expire(self, late: Set[int]) -> bool:
        """Note that some checks are given up, by their ids; True if one of them is in this call."""
        found = sum(id(check) in late for check in self.checks)
        self.late = self.late or found > 0
        return found > 0

    def may_repeat(self) -> bool:
        """Count one more try."""
        self.tries += 1
        return self.tries <= self.MAX_TRIES


def cut_calls(checks: Sequence[Check], size: int = MAX_KEYS) -> list[Call]:
    """Make calls of at most `size` checks each."""
    return [Call(list(checks[at : at + size])) for at in range(0, len(checks), size)]
