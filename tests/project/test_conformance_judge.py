"""How a run of the official suite is judged: by its exit status and its lines of outcome, never by less.

And the reports that are kept are of the release that is run, and of all that is claimed.
"""

from __future__ import annotations

import pytest
import yaml

from cluster.conformance.suite import PROFILES
from cluster.conformance.verdicts import judge
from cluster.tools.versions import GATEWAY_API
from cluster.world.folder import PROJECT
from edgefast.translate.gateway.features import supported_features

CORE = {"Gateway", "GRPCRoute", "HTTPRoute", "ReferenceGrant", "TLSRoute"}
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


@pytest.mark.parametrize("mode", ["controller-namespace", "gateway-namespace"])
def test_reports_are_of_all_that_is_claimed(mode: str) -> None:
    text = (PROJECT / "docs" / "conformance" / f"{mode}.yaml").read_text()
    report = yaml.safe_load(text)
    assert (report["gatewayAPIVersion"], report["mode"]) == (GATEWAY_API, mode)
    profiles = {one["name"]: one for one in report["profiles"]}
    assert set(profiles) == set(PROFILES)
    for profile in profiles.values():
        for part in (profile["core"], profile["extended"]):
            assert part["result"] == "success"
            assert part["statistics"]["Failed"] == part["statistics"]["Skipped"] == 0
    release = GATEWAY_API.rpartition(".")[0]
    here = mode == "gateway-namespace"
    claimed = set(supported_features(in_gateway_namespace=here, release=release))
    named = {
        one for profile in profiles.values() for one in profile["extended"]["supportedFeatures"]
    }
    # GRPCRouteNamedRouteRule is run and in no profile of the suite.
    assert named == claimed - CORE - {"GRPCRouteNamedRouteRule"}
