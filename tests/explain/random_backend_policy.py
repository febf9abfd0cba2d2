"""Random treatments: how requests are treated at one backend, for random tables."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from edgefast import ir


def make_treatment(random: Random, names: Sequence[str]) -> ir.BackendPolicy | None:
    """A treatment for one share in five; a unit of one in fifty is not in the table."""
    if random.random() < 0.8:
        return None
    traffic = tuple(random.sample(names, random.randint(0, 2)))
    if random.random() < 0.02:
        traffic = (*traffic, "traffic/ns/none")
    return ir.BackendPolicy(traffic=traffic, ceilings=random.randint(0, len(traffic)))
