"""Problems: one text everywhere."""

from __future__ import annotations

import pytest

from edgefast.diagnostics.problem import ObjectRef, Problem, Source, did_you_mean

pytestmark = pytest.mark.pure

ROUTE = ObjectRef("HTTPRoute", "default", "web", "gateway.networking.k8s.io")


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
