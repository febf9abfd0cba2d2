"""Converted objects answer every request as the Ingresses do: random sets, and the cases of each annotation and setting.

`explain` on both compiled tables gives status, Location, backend and share, the whole request head, filters, verdicts of
policies, timeouts and retries. Both sides are edgefast, so no annotation and no request is left out. The heavy run is 400 sets
with 200 requests each.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgefast.explain import diff_translations
from edgefast.translate.route.rule_order import RULE_ORDER
from ingress.cases import Case, read_cases
from ingress.generate import Generator
from ingress.message import Request
from ingress.nginx_servers import without_duplicates
from tests.convert.documents import SERVICE, ingress
from tests.convert.round_trip import Sides, convert_objects, facts, spec_of, without

pytestmark = pytest.mark.pure

CASES = list(read_cases())


def compare(sides: Sides, requests: list[Request]) -> int:
    """Compare both sides; the number of requests that a backend gets."""
    before, after = sides.serve()
    forwarded = 0
    for request in requests:
        spec = spec_of(request)
        expected = facts(before, sides.before, spec)
        got = facts(after, sides.after, spec)
        if got != expected:
            differing = {key: (expected[key], got[key]) for key in got if got[key] != expected[key]}
            raise AssertionError(f"{request}\n{differing}\n{sides.text}")
        forwarded += any(one[0] == "backend" for one in expected["answers"])
    return forwarded


def _errors(sides: Sides) -> list[str]:
    """Errors of the converted objects; without an Ingress of ours there are no objects."""
    if not sides.conversion.objects:
        return []
    return [one.line() for one in (*sides.unread, *sides.after.problems) if one.severity == "error"]


def _compare_seeds(first: int, count: int, requests: int) -> int:
    forwarded = 0
    for seed in range(first, first + count):
        generator = Generator(seed)
        objects = without_duplicates(generator.objects())
        sides = convert_objects(objects)
        assert _errors(sides) == []
        forwarded += compare(sides, list(generator.requests(requests)))
    return forwarded


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_sets_get_the_same_answers(first: int) -> None:
    assert _compare_seeds(first, 10, 50) > 25


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_get_the_same_answers(case: Case) -> None:
    sides = convert_objects(case.objects)
    assert _errors(sides) == []
    compare(sides, [replace(request, port=80) for request, _ in case.requests])


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(3000, 3400, 10))
def test_many_random_sets_get_the_same_answers(first: int) -> None:
    assert _compare_seeds(first, 10, 200) > 10


_MARKS = (
    RULE_ORDER,
    "HTTPRouteFilter",
    "SecurityPolicy",
    "hostnames",
    "requestHeaderModifier",
    "RateLimitFilter",
)


@pytest.mark.parametrize("mark", _MARKS)
def test_the_comparison_finds_what_is_left_out(mark: str) -> None:
    """Without one part of the output, some request of the random sets gets another answer."""
    for seed in range(40):
        generator = Generator(seed)
        sides = convert_objects(without_duplicates(generator.objects()))
        if mark not in sides.text:
            continue
        try:
            compare(without(sides, mark), list(generator.requests(50)))
        except AssertionError:
            return
    pytest.fail(f"no request depends on {mark}")


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_diff_shows_no_change(first: int) -> None:
    for seed in range(first, first + 10):
        sides = convert_objects(without_duplicates(Generator(seed).objects()))
        if sides.conversion.objects:
            found = diff_translations(sides.before, sides.after)
            assert [one.text for one in found.changes] == [], seed


def test_diff_shows_no_change_of_a_host_whose_tls_is_passed_through() -> None:
    passed = ingress("/", {"ssl-passthrough": "true"}, host="pass.test")
    sides = convert_objects([*SERVICE, passed])
    assert diff_translations(sides.before, sides.after).changes == ()
