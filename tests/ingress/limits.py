"""Random limits of an Ingress that the requests of a test do not reach, and values that are no limits.

In: a random generator, lists of addresses. Out: annotations without their prefix. Limits that are reached depend on time: cases have them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


def random_limits(source: random.Random, ranges: Sequence[str]) -> dict[str, str]:
    """Annotations about limits."""
    pick, chance = source.choice, source.random
    names = ("limit-rps", "limit-rpm", "limit-connections")
    found = {name: pick(("2000", "0", "9000", "-1", "")) for name in names if chance() < 0.5}
    if chance() < 0.1:
        found["limit-rps"] = "many"
    if chance() < 0.3:
        found["limit-burst-multiplier"] = pick(("1", "3", "lots"))
    if chance() < 0.4:
        found[pick(("limit-whitelist", "limit-allowlist"))] = pick(ranges)
    return found
