"""Rate limits: flat, in one order, bounded, and their counters outlive every edit that is none of theirs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast import ir
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, Translation, translate
from edgefast.translate.rate_limit.counter import name_counter
from edgefast.translate.rate_limit.rate_limit import MAX_LIMITS, MAX_TEXT, UNITS
from tests.translate import world

pytestmark = pytest.mark.pure

HOUR = {"requests": 3, "unit": "Hour"}


def rule(path: str = "/", *filters: str, **more: Any) -> dict[str, Any]:
    return {
        "matches": [{"path": {"value": path}}],
        "filters": world.limited(*filters),
        "backendRefs": [{"name": "web", "port": 80}],
        **more,
    }


def route(*rules: dict[str, Any], name: str = "r", **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return world.make(
        {
            "apiVersion": world.GATEWAY,
            "kind": "HTTPRoute",
            "metadata": metadata,
            "spec": {"parentRefs": [{"name": "gw"}], "rules": list(rules), **more},
        }
    )


def run(*objects: Object, settings: Settings | None = None) -> Translation:
    base = [world.gateway_class(), world.gateway(), world.service("web")]
    base.append(world.endpoints("web", "10.0.0.1"))
    named = {(type(one), one.metadata.name): one for one in [*base, *objects]}
    return translate(Snapshot.of(named.values()), settings or Settings())


def limits_of(translation: Translation, filter_: str = "default/f#0") -> list[ir.RateLimit]:
    """The limits of that name, in all rules of all hosts."""
    return [
        limit
        for fleet in translation.ir.fleets
        for host in fleet.virtual_hosts
        for one in host.rules
        for limit in one.rate_limits
        if limit.name == filter_
    ]


def counter_of(*objects: Object, settings: Settings | None = None) -> str:
    (limit,) = limits_of(run(*objects, settings=settings))
    return limit.counter


# --- names of counters ------------------------------------------------------------------------------------------------

SELECTORS = [
    {"headers": [{"name": "x-a", "value": "1"}, {"name": "x-b", "type": "Distinct"}]},
    {"headers": [{"name": "x-c", "type": "RegularExpression", "value": "c+"}]},
    {"sourceCIDR": {"value": "10.0.0.0/8"}},
]
LIMIT = {"clientSelectors": SELECTORS, "limit": HOUR}
FILTER = world.rate_limit_filter("f", LIMIT)
MATCHES = [
    {
        "path": {"value": "/a"},
        "headers": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}],
    },
    {"path": {"value": "/b"}, "method": "GET"},
]
PLAIN = rule("/", "f", matches=MATCHES)
BEFORE = counter_of(FILTER, route(PLAIN))


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([FILTER, route(rule("/new"), PLAIN, rule("/z"))], id="other-rules"),
        pytest.param([FILTER, route(rule("/b", name="b"), PLAIN)], id="order-of-rules"),
        pytest.param([FILTER, route(PLAIN, hostnames=["a.example.com"])], id="hostname"),
        pytest.param([FILTER, route(PLAIN), world.gateway(port=81)], id="port"),
        pytest.param(
            [
                FILTER,
                route(
                    {
                        **PLAIN,
                        "timeouts": {"request": "5s"},
                        "backendRefs": [{"name": "web", "port": 80, "weight": 3}],
                    }
                ),
            ],
            id="rest-of-the-rule",
        ),
        pytest.param([FILTER, route({**PLAIN, "matches": MATCHES[::-1]})], id="order-of-matches"),
        pytest.param(
            [
                FILTER,
                route(
                    {
                        **PLAIN,
                        "matches": [
                            {**MATCHES[0], "headers": MATCHES[0]["headers"][::-1]},  # type: ignore[index]
                            MATCHES[1],
                        ],
                    }
                ),
            ],
            id="order-of-headers-in-a-match",
        ),
        pytest.param(
            [
                world.rate_limit_filter(
                    "f",
                    {
                        **LIMIT,
                        "limit": {**HOUR, "requests": 9},
                        "shadow": True,
                        "algorithm": "SlidingWindow",
                    },
                ),
                route(PLAIN),
            ],
            id="requests-shadow-algorithm",
        ),
        pytest.param(
            [world.rate_limit_filter("f", LIMIT, {"limit": HOUR}), route(PLAIN)], id="other-limits"
        ),
        pytest.param(
            [
                FILTER,
                world.rate_limit_filter("g", {"limit": HOUR}),
                route({**PLAIN, "filters": world.limited("g", "f")}),
            ],
            id="other-filters",
        ),
    ],
)
def test_a_counter_survives(objects: list[Object]) -> None:
    assert counter_of(*objects) == BEFORE


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([FILTER, route(PLAIN, name="other")], id="route"),
        pytest.param([FILTER, route({**PLAIN, "name": "named"})], id="name"),
        pytest.param([FILTER, route({**PLAIN, "matches": MATCHES[:1]})], id="matches"),
        pytest.param(
            [
                world.rate_limit_filter("f", {**LIMIT, "limit": {**HOUR, "unit": "Day"}}),
                route(PLAIN),
            ],
            id="unit",
        ),
        pytest.param(
            [world.rate_limit_filter("f", {**LIMIT, "clientSelectors": []}), route(PLAIN)],
            id="selectors",
        ),
        pytest.param(
            [
                world.rate_limit_filter(
                    "f",
                    {
                        **LIMIT,
                        "clientSelectors": [
                            *SELECTORS[:2],
                            {"sourceCIDR": {"value": "10.0.0.0/8", "type": "Distinct"}},
                        ],
                    },
                ),
                route(PLAIN),
            ],
            id="distinct-source",
        ),
    ],
)
def test_another_limit_has_another_counter(objects: list[Object]) -> None:
    assert counter_of(*objects) != BEFORE


def test_a_named_rule_keeps_its_counter_whatever_it_matches() -> None:
    named = rule("/a", "f", name="checkout")
    counter = counter_of(FILTER, route(named))
    assert counter_of(FILTER, route({**named, "matches": MATCHES})) == counter
    assert counter_of(FILTER, route({**named, "name": "pay"})) != counter


def test_a_route_is_known_by_its_uid_in_a_cluster_alone() -> None:
    one, other = route(PLAIN), route(PLAIN, name="other")
    store = world.rate_limit_filter("f", LIMIT)
    assert counter_of(store, one).startswith("9:default/r")
    files = Settings(standalone=False, rate_limit=REDIS)
    assert counter_of(store, one, settings=files).startswith("8:uid-of-r")
    assert counter_of(store, other, settings=files).startswith("12:uid-of-other")


def test_one_counter_on_every_listener_hostname_and_gateway() -> None:
    parents = [{"name": "gw"}, {"name": "second"}]
    hostnames = ["a.example.com", "b.example.com"]
    made = route(rule("/", "f"), parentRefs=parents, hostnames=hostnames)
    found = limits_of(run(FILTER, made, world.gateway("second", 81)))
    assert len(found) == 4
    assert len({limit.counter for limit in found}) == 1


@given(st.lists(st.text(max_size=12), min_size=3, max_size=3))
def test_parts_of_a_counter_cannot_be_taken_for_others(parts: list[str]) -> None:
    rest, found = name_counter(*parts).encode(), []
    while rest:
        size, _, rest = rest.partition(b":")
        found.append(rest[: int(size)].decode())
        rest = rest[int(size) :]
    assert found == parts


# --- translation ------------------------------------------------------------------------------------------------------

_HEADERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["x-a", "X-B", "x-c"])},
    optional={"value": st.sampled_from(["1", "2", "(", "", "é"])},
).map(lambda one: one if "value" in one and one["value"] != "(" else {**one, "type": "Distinct"})
_SELECTORS = st.fixed_dictionaries(
    {"headers": st.lists(_HEADERS, min_size=1, max_size=3, unique_by=lambda one: one["name"])},
    optional={"sourceCIDR": st.sampled_from([{"value": "10.9.9.9/8"}, {"value": "fd00::/8"}])},
)


def _sound(selector: dict[str, Any]) -> dict[str, Any]:
    for header in selector["headers"]:
        if header.get("type") == "Distinct":
            header.pop("value", None)
    return selector


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(_SELECTORS.map(_sound), max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_selectors_and_headers_means_nothing(
    selectors: list[dict[str, Any]], chance: random.Random
) -> None:
    shuffled = [{**one, "headers": [*one["headers"]]} for one in selectors]
    for one in shuffled:
        chance.shuffle(one["headers"])
    chance.shuffle(shuffled)
    found = []
    for given_ in (selectors, shuffled):
        made = world.rate_limit_filter("f", {"clientSelectors": given_, "limit": HOUR})
        found += limits_of(run(made, route(rule("/", "f"))))
    assert found[0] == found[1]
    wanted = {header["name"].lower() for one in selectors for header in one["headers"]}
    got = {one.name for one in found[0].headers} | set(found[0].distinct_headers)
    assert got == wanted


def test_units_in_seconds() -> None:
    assert UNITS == {
        "Second": 1,
        "Minute": 60,
        "Hour": 3600,
        "Day": 24 * 3600,
        "Week": 7 * 24 * 3600,
        "Month": 30 * 24 * 3600,
        "Year": 365 * 24 * 3600,
    }


def test_sources_that_exclude_each_other_are_kept() -> None:
    ranges = [{"sourceCIDR": {"value": one}} for one in ("10.0.0.0/8", "192.0.2.0/24")]
    made = world.rate_limit_filter("f", {"clientSelectors": ranges, "limit": HOUR})
    translation = run(made, route(rule("/", "f")))
    assert limits_of(translation)[0].sources == ("10.0.0.0/8", "192.0.2.0/24")
    assert all(one.severity == "warning" for one in translation.problems)


def test_a_rule_has_so_many_limits_and_no_more() -> None:
    full = world.rate_limit_filter("f", *[{"limit": HOUR}] * 16)
    made = [full, *(world.rate_limit_filter(name) for name in "gh")]
    most = run(*made, route(rule("/", "f", "f", "f", "f")))
    assert len(most.ir.fleets[0].virtual_hosts[0].rules[0].rate_limits) == MAX_LIMITS == 64
    assert not most.problems
    over = run(*made, route(rule("/", "f", "f", "g", "f", "f"), rule("/sound", "h")))
    broken, sound = over.ir.fleets[0].virtual_hosts[0].rules
    assert (broken.status, broken.rate_limits) == (500, ())
    assert "spec.rules[0].filters: TooMany 65 rate limits, at most 64" in broken.reason
    assert (sound.status, len(sound.rate_limits)) == (0, 1)


def test_conditions_have_a_bound_together() -> None:
    def one(unit: str) -> dict[str, Any]:
        headers = [{"name": f"x-{at}", "value": str(at).rjust(1024, "é")} for at in range(16)]
        return {"clientSelectors": [{"headers": headers}], "limit": {**HOUR, "unit": unit}}

    fitting = run(world.rate_limit_filter("f", one("Day")), route(rule("/", "f")))
    assert fitting.ir.fleets[0].virtual_hosts[0].rules[0].status == 0
    limits = [one(unit) for unit in ("Hour", "Day", "Week", "Month", "Year")]
    over = run(world.rate_limit_filter("f", *limits), route(rule("/", "f")))
    (broken,) = over.ir.fleets[0].virtual_hosts[0].rules
    assert broken.status == 500
    assert f"at most {MAX_TEXT} for one rule" in broken.reason


# --- the fleet's store ------------------------------------------------------------------------------------------------

REDIS = world.rate_limit(url="redis:6379")


def test_only_a_fleet_with_limits_has_a_store() -> None:
    far = world.gateway("far", 81)
    made = route(rule("/"), name="free", parentRefs=[{"name": "far"}])
    cluster = Settings(standalone=False, rate_limit=REDIS)
    translation = run(FILTER, far, route(rule("/", "f")), made, settings=cluster)
    stores = {one.name.rpartition("-")[0]: one.limit_store for one in translation.ir.fleets}
    assert stores["edge-default-far"] is None
    assert stores["edge-default-gw"] == ir.RateLimitStore(kind="redis", addresses=("redis:6379",))


def test_a_rule_that_answers_500_needs_no_store() -> None:
    translation = run(FILTER, route(rule("/", "f", backendRefs=[])))
    assert translation.ir.fleets[0].limit_store is None


@pytest.mark.parametrize(
    ("ranges", "apart"),
    [
        (("0.0.0.0/0", "::/0"), True),
        (("10.0.0.0/8", "192.0.2.0/24"), True),
        (("10.0.0.0/8", "10.1.0.0/16"), False),
        (("10.0.0.0/8",), False),
    ],
)
def test_ranges_that_nobody_is_in_together_are_told(ranges: tuple[str, ...], apart: bool) -> None:
    selectors = [{"sourceCIDR": {"type": "Distinct", "value": one}} for one in ranges]
    one = {"clientSelectors": selectors, "limit": {"requests": 3, "unit": "Second"}}
    limits = world.make("RateLimitFilter default/f", {"type": "Global", "global": {"rules": [one]}})
    made = run(limits, route(rule("/", "f")), settings=Settings(standalone=True))
    assert limits_of(made)  # it is served as it is written
    told = [one for one in made.problems if "never counts a request" in one.message]
    assert [one.severity for one in told] == (["warning"] if apart else [])
