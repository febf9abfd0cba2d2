"""How a run of the official suite is judged: by its exit status and its lines of outcome, never by less."""

from __future__ import annotations

import pytest

from cluster.conformance.judge import judge

GOOD = """\
=== RUN   TestConformance/HTTPRouteWeight
    http.go:1: --- FAIL: TestConformance/HTTPRouteWeight (said in a log line)
--- PASS: TestConformance (3.20s)
    --- PASS: TestConformance/HTTPRouteWeight (3.00s)
        --- PASS: TestConformance/HTTPRouteWeight/step (1.50s)
    --- SKIP: TestConformance/TCPRoute (0.00s)
PASS
"""


def test_a_good_run() -> None:
    verdict = judge(GOOD.splitlines(keepends=True), 0)
    assert verdict.good
    assert (verdict.named("PASS"), verdict.named("SKIP")) == (["HTTPRouteWeight"], ["TCPRoute"])
    assert verdict.lines() == [
        "PASS    3.00 s  HTTPRouteWeight",
        "1 PASS, 0 FAIL, 1 SKIP, exit status 0",
    ]


def test_what_failed_is_named_with_its_steps() -> None:
    text = GOOD.replace("--- PASS: TestConformance/H", "--- FAIL: TestConformance/H")
    verdict = judge(text.splitlines(), 1)
    assert not verdict.good
    assert verdict.named("FAIL") == ["HTTPRouteWeight"]
    assert "failed: HTTPRouteWeight/step" in verdict.lines()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),  # nothing ran
        (GOOD, 1),  # ended badly after the last line
        (GOOD, -9),
        (GOOD.replace("    --- PASS: TestConformance/HTTPRouteWeight (", "    --- SKIP: T ("), 0),
        (GOOD.replace("    --- PASS: TestC", "    --- FAIL: TestC"), 0),
    ],
)
def test_no_other_run_is_good(text: str, status: int) -> None:
    assert not judge(text.splitlines(), status).good
