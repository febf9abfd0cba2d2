"""How a run of the official suite is judged: by its exit status and its lines of outcome, never by less.

And the reports that are kept are of the release that is run, and of all that is claimed.
"""

from __future__ import annotations

import pytest
import yaml

from cluster.conformance.__main__ import USUAL
from cluster.conformance.modes import MODES
from cluster.conformance.reports import report_folder
from cluster.conformance.suite import PROFILES, SUITES
from cluster.conformance.verdicts import judge
from edgefast.translate.gateway.features import supported_features

CORE = {"Gateway", "GRPCRoute", "HTTPRoute", "ReferenceGrant", "TLSRoute", "TCPRoute", "UDPRoute"}
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


@pytest.mark.parametrize("release", [*SUITES])
@pytest.mark.parametrize("mode", ["default", "gateway-namespace"])
def test_reports_are_of_all_that_is_claimed(release: str, mode: str) -> None:
    (path,) = report_folder(release).glob(f"experimental-v*-{mode}-report.yaml")
    report = yaml.safe_load(path.read_text())
    assert (report["gatewayAPIVersion"], report["mode"]) == (release, mode)
    assert report["gatewayAPIChannel"] == "experimental"
    made = report["implementation"]
    assert path.name == f"experimental-{made['version']}-{mode}-report.yaml"
    assert path.name in (path.parent / "README.md").read_text()
    assert all(made[name] for name in ("organization", "project", "url", "contact"))
    profiles = {one["name"]: one for one in report["profiles"]}
    assert set(profiles) == set(PROFILES)
    for profile in profiles.values():
        for part in (profile["core"], profile["extended"]):
            assert part["result"] == "success"
            assert part["statistics"]["Failed"] == part["statistics"]["Skipped"] == 0
    minor = release.rpartition(".")[0]
    here = mode == "gateway-namespace"
    # The API server of the run has no ClusterTrustBundles.
    claimed = set(
        supported_features(in_gateway_namespace=here, release=minor, missing=["ClusterTrustBundle"])
    )
    named = {
        one for profile in profiles.values() for one in profile["extended"]["supportedFeatures"]
    }
    # A feature can be core in one profile and extended in others. Extended features of GRPCRoute are run, and in no profile.
    optional = {one for one in claimed if one.startswith("GRPCRoute")}
    assert named - CORE == claimed - CORE - optional


def test_each_release_and_each_mode_is_run() -> None:
    assert {release for _, release in USUAL} == set(SUITES)
    assert {mode for mode, _ in USUAL} == set(MODES) - {"merged"}
