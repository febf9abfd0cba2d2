"""The attacks of the bench are what they say: each meets the bound that it is there for, and others are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.attacker import ATTACKS, attack_for
from wire.harness.site import Site
from wire.http2.client import H2Client
from wire.http2.test_attacks import breaches, serving

SECONDS = 0.5
FEW = 2  # connections: the bounds are each one's, and some need 8 MiB
REASONS = {
    "resets": "resets",
    "resets-made": "resets",
    "continuations": "continuations",
    "head": "head",
    "settings": "settings",
    "pings": "acks",
    "priorities": "overhead",
    "empty": "overhead",
    "updates": "updates",
    "streams": "refused",
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving() as running:
        yield running


@pytest.mark.parametrize("attack", ATTACKS)
def test_attack(site: Site, attack: str) -> None:
    reason = REASONS.get(attack)
    before = breaches(site, reason) if reason else 0

    def meets_the_bound() -> bool:
        done = attack_for(ATTACKS[attack], site.port, SECONDS, FEW)
        assert done["connections"] > 0 and done["bytes"] > 0
        return reason is None or breaches(site, reason) > before

    site.wait_until(meets_the_bound, "the bound is met")  # a busy machine attacks slowly
    with H2Client(site.port) as other:
        assert other.get().status == 200
