"""Problems: one text everywhere."""

from __future__ import annotations

import pytest

from edgefast.problem import ObjectRef, Problem, Source, check_supported, did_you_mean

pytestmark = pytest.mark.pure

ROUTE = ObjectRef("HTTPRoute", "default", "web", "gateway.networking.k8s.io")


def test_the_line_of_the_reference_docs() -> None:
    problem = check_supported(
        "RateLimitFiler",
        ["RateLimitFilter"],
        object=ROUTE,
        path="spec.rules[0].filters[1].extensionRef.kind",
        source=Source("shop.yaml", 14),
    )
    assert problem is not None
    assert problem.line() == (
        "shop.yaml:14 HTTPRoute default/web spec.rules[0].filters[1].extensionRef.kind: "
        'NotSupported "RateLimitFiler" (supported: RateLimitFilter), did you mean RateLimitFilter?'
    )
    assert problem.text() == problem.line().removeprefix("shop.yaml:14 ")


def test_supported_value_is_no_problem() -> None:
    assert check_supported("a", ["a"], object=None, path="") is None


def test_parts_that_are_missing() -> None:
    assert Problem(None, "", "Invalid", "words").line() == "Invalid words"
    assert Problem(ROUTE, "", "Accepted", "").line() == "HTTPRoute default/web: Accepted"
    assert str(ObjectRef("GatewayClass", "", "edge")) == "GatewayClass edge"
    assert str(ObjectRef("EdgeGateway", "", "")) == "EdgeGateway"


def test_lines_stay_lines() -> None:
    problem = Problem(
        ObjectRef("A", "b", "c\n\x1b[0m"), "p", "Invalid", "é \u202e", source=Source("f\n", 1)
    )
    assert problem.line() == r"f\n:1 A b/c\n\x1b[0m p: Invalid é \u202e"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("pathprefix", "did you mean PathPrefix?"),
        ("PathPrefx", "did you mean PathPrefix?"),
        ("Regex", ""),
        ("", ""),
        ("P" * 1000, ""),
    ],
)
def test_did_you_mean(value: str, hint: str) -> None:
    assert did_you_mean(value, ["Exact", "PathPrefix", "RegularExpression"]) == hint
