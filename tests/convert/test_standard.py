"""`--standard`: fields of the Gateway API where possible, each loss in the report, and nothing opened."""

from __future__ import annotations

from typing import Any

import pytest

from edgefast.explain import diff_translations
from ingress.generate import Generator
from ingress.message import Request
from ingress.nginx_servers import without_duplicates
from tests.convert.documents import SERVICE, ingress
from tests.convert.round_trip import Sides, convert_objects, facts, spec_of

pytestmark = pytest.mark.pure


def _convert(*objects: dict[str, Any]) -> Sides:
    return convert_objects([*SERVICE, *objects], standard=True)


def _answer(sides: Sides, target: str, **more: Any) -> Any:
    _, after = sides.serve()
    return facts(after, sides.after, spec_of(Request(host="a.test", target=target, **more)))


def _losses(sides: Sides) -> dict[str, str]:
    return {one.setting: one.how for one in sides.conversion.report if one.result == "differs"}


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_sets_are_valid_and_open_nothing(first: int) -> None:
    for seed in range(first, first + 10):
        objects = without_duplicates(Generator(seed).objects())
        sides = convert_objects(objects, standard=True)
        if not sides.conversion.objects:
            continue
        found = (*sides.unread, *sides.after.problems)
        assert [one.line() for one in found if one.severity == "error"] == [], seed
        opened = [
            one.text for one in diff_translations(sides.before, sides.after).changes if one.opens
        ]
        assert opened == [], seed


def test_a_rewrite_of_a_prefix() -> None:
    sides = _convert(ingress("/api(/|$)(.*)", {"rewrite-target": "/v1/$2"}))
    assert "ReplaceRegexMatch" not in sides.text
    for target, got in (("/api/a?b", "/v1/a?b"), ("/api", "/v1"), ("/apis", None)):
        backends = _answer(sides, target)["backends"]
        assert (backends[0][4][0].split(" ")[1] if backends else None) == got
    assert "case-sensitive" in _losses(sides)["spec"]
    assert "slash" in _losses(sides)["rewrite-target"]


def test_a_rewrite_with_other_groups_keeps_its_filter() -> None:
    sides = _convert(ingress("/v([0-9]+)/(.*)", {"rewrite-target": "/$1/$2"}))
    assert "ReplaceRegexMatch" in sides.text
    assert _answer(sides, "/v2/a")["backends"][0][4][0] == "GET /2/a HTTP/1.1"


def test_a_redirect_to_a_url() -> None:
    sides = _convert(ingress("/", {"permanent-redirect": "https://new.test:444/b"}))
    assert _answer(sides, "/a")["answers"][0][:4] == (
        "redirect",
        301,
        100.0,
        "https://new.test:444/b",
    )
    assert "HTTPRouteFilter" not in sides.text
    assert "query" in _losses(sides)["permanent-redirect"]


def test_a_redirect_with_a_query_keeps_its_filter() -> None:
    sides = _convert(ingress("/", {"permanent-redirect": "https://new.test/b?c=d"}))
    assert "answer-301" in sides.text
    assert _losses(sides) == {}


def test_a_closed_location_stays_closed() -> None:
    sides = _convert(ingress("/", {"auth-url": "http://$host/auth"}))
    assert _answer(sides, "/")["answers"][0][1] == 503


def test_a_canary_by_cookie() -> None:
    canary = {"canary": "true", "canary-by-cookie": "beta"}
    sides = _convert(ingress("/", {}), ingress("/", canary, name="next", service="canary"))
    assert "HTTPRouteFilter" not in sides.text
    for cookie, service in (
        ("beta=always", "canary"),
        ("a=b; beta=always; c=d", "canary"),
        ("beta=never", "one"),
        ("xbeta=always", "one"),
        ("beta=alwaysx", "one"),
    ):
        found = _answer(sides, "/", headers=(("cookie", cookie),))["backends"]
        assert found[0][0] == f"service/shop/{service}/80", cookie
