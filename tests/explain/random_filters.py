"""Random filters of listeners, for random tables (random_tables.py)."""

from __future__ import annotations

from random import Random

from edgefast import ir

__all__ = ["pick_filters", "random_filters"]

_NAMES = ("listener/ns/gw/l#filters.requests[0]", "listener/ns/gw/l#filters.requests[1]")


def random_filters(chance: Random, nobody: str) -> list[ir.PolicyUnit]:
    """Return all filters; `nobody`: a cluster without endpoints."""
    return [_make(chance, name, nobody) for name in _NAMES]


def pick_filters(chance: Random) -> tuple[str, ...]:
    """Return the names of a listener's; most have none."""
    return tuple(chance.sample(_NAMES, chance.randint(1, 2))) if chance.random() < 0.2 else ()


def _make(chance: Random, name: str, nobody: str) -> ir.PolicyUnit:
    if chance.random() < 0.1:
        return ir.PolicyUnit(name=name, status=500, reason="broken")
    grpc = chance.random() < 0.2
    named = chance.choice([(), ("x-a",), ("x-a", "x-user"), ("accept", "host")])
    asked = ir.ExtAuth(
        backends=(ir.AuthBackend(cluster=nobody),),
        grpc=grpc,
        to_backend=() if grpc else named,
        fail_open=chance.random() < 0.85,
        status_on_error=chance.choice([403, 503]),
    )
    return ir.PolicyUnit(name=name, ext_auth=asked)
