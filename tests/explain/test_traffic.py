"""Which setting of which policy is in force: the first that says it, and no override allows more."""

from __future__ import annotations

import random

import pytest

from edgefast import ir
from edgefast.explain.traffic import (
    COUNTS,
    FIELDS,
    LISTENER,
    body_limit,
    bound_body,
    settle_traffic,
)

pytestmark = pytest.mark.pure

UNSAID: tuple[int | None, ...] = (None, None, 0, 5, 10, 20)


def unit(name: str, **said: int | None) -> ir.PolicyUnit:
    return ir.PolicyUnit(name=name, traffic=ir.Traffic(**said))


def test_the_first_that_says_it() -> None:
    found = settle_traffic(
        [unit("route", body_size=10), unit("gateway", body_size=5, idle_timeout=7)], 0
    )
    assert (found["body_size"].value, found["body_size"].unit) == (10, "route")
    assert (found["idle_timeout"].value, found["idle_timeout"].unit) == (7, "gateway")
    assert found.keys() == {"body_size", "idle_timeout"}


def test_an_override_says_it_and_a_lower_override_is_cut() -> None:
    units = [unit("top", body_size=10), unit("route", body_size=20)]
    assert settle_traffic(units, 1)["body_size"].value == 10
    second = [unit("top", body_size=0), unit("below", body_size=5), unit("route", body_size=20)]
    assert settle_traffic(second, 2)["body_size"].value == 5


def test_the_route_goes_before_defaults_and_not_past_overrides() -> None:
    own = ir.Timeouts(request=20)
    assert (
        settle_traffic([unit("gateway", request_timeout=5)], 0, own)["request_timeout"].value == 20
    )
    cut = settle_traffic([unit("gateway", request_timeout=5)], 1, own)["request_timeout"]
    assert (cut.value, cut.unit, cut.cut_by) == (5, "", "gateway")
    endless = settle_traffic([unit("gateway", request_timeout=5)], 1, ir.Timeouts(request=0))
    assert endless["request_timeout"].value == 5


@pytest.mark.parametrize(
    ("listener", "said", "most", "cut_by"),
    [(5, 10, 5, LISTENER), (5, 0, 5, LISTENER), (10, 5, 5, ""), (0, 5, 5, ""), (0, 0, 0, "")]
    + [(5, None, 5, ""), (0, None, 0, "")],
)
def test_the_bound_of_the_listener_is_not_passed(
    listener: int, said: int | None, most: int, cut_by: str
) -> None:
    http = ir.HttpSettings(body_size=listener)
    found = bound_body(http, settle_traffic([unit("route", body_size=said)], 0))
    assert body_limit(http, found) == most
    assert [one.cut_by for one in found.values()] == ([] if said is None else [cut_by])


def test_no_override_is_passed() -> None:
    """Against the rule as it is written: of each leaf the first default, then the stricter of it and each override's."""
    chance = random.Random(17)
    for _ in range(2000):
        units = [
            unit(f"u{at}", **{field: chance.choice(UNSAID) for field in FIELDS})
            for at in range(chance.randint(0, 4))
        ]
        ceilings = chance.randint(0, len(units))
        found = settle_traffic(units, ceilings)
        for field in FIELDS:
            values = [getattr(one.traffic, field) for one in units]
            first = next((one for one in values[ceilings:] if one is not None), None)
            bounds = [one for one in values[:ceilings] if one is not None]
            wanted = first
            for bound in bounds:
                if wanted is None:
                    wanted = bound
                    continue
                wanted = min((one for one in (wanted, bound) if one), default=0)
            assert (found[field].value if field in found else None) == wanted


def test_of_a_count_nothing_is_the_strictest() -> None:
    chance = random.Random(18)
    for _ in range(2000):
        units = [
            unit(f"u{at}", **{field: chance.choice(UNSAID) for field in COUNTS})
            for at in range(chance.randint(0, 4))
        ]
        ceilings = chance.randint(0, len(units))
        found = settle_traffic(units, ceilings)
        for field in COUNTS:
            values = [getattr(one.traffic, field) for one in units]
            first = next((one for one in values[ceilings:] if one is not None), None)
            bounds = [one for one in values[:ceilings] if one is not None]
            wanted = min([*bounds, *(() if first is None else (first,))], default=None)
            assert (found[field].value if field in found else None) == wanted
