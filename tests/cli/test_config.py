"""`--config` in standalone: what counts, what is said to be of no use, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Outcome, call

pytestmark = pytest.mark.pure

QUICKSTART = Path(__file__).parents[2] / "examples/quickstart.yaml"
HEAD = "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\n"


def check(tmp_path: Path, config: str) -> Outcome:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + config)
    return call("check", "-f", str(QUICKSTART), "--config", str(path))


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (
            "provider: {kubernetes: {deploy: {type: GatewayNamespace}}}",
            "config.yaml:3 EdgeGateway provider.kubernetes.deploy.type: NotSupported applies only to a controller",
        ),
        (
            "provider: {orchestrator: {deploy: {type: ControllerNamespace}}}",
            "config.yaml:3 EdgeGateway provider.orchestrator.deploy.type: NotSupported applies only",
        ),
        (
            "extensionApis: {enableBackend: false}",
            "config.yaml:3 EdgeGateway extensionApis.enableBackend: NotSupported Backends are always allowed",
        ),
        (
            "extensionApis: {enableXBackend: false}",
            "config.yaml:3 EdgeGateway extensionApis.enableXBackend: NotSupported XBackends are always",
        ),
        (
            "leaderElection:\n  disable: true",
            "config.yaml:4 EdgeGateway leaderElection.disable: NotSupported applies only",
        ),
        (
            "leaderElection: {retryPeriod: 1s}",
            "config.yaml:3 EdgeGateway leaderElection.retryPeriod: NotSupported applies only",
        ),
    ],
)
def test_a_field_of_no_use_is_a_warning(tmp_path: Path, config: str, line: str) -> None:
    outcome = check(tmp_path, config)
    (said,) = outcome.out.splitlines()
    assert line in said
    assert said.endswith("(warning)")
    assert outcome.status == 0


@pytest.mark.parametrize(
    "config",
    [
        "",
        "gateway: {controllerName: gateway.edge.io/gatewayclass-controller}",
        "logging: {level: debug}",
        "admin: {address: {host: 127.0.0.1, port: 29555}}",
        "extensionApis: {enableBackend: true}",
        "provider: {type: Orchestrator, orchestrator: {watch: {type: Namespaces, namespaces: [default]}}}",
    ],
)
def test_what_counts_is_no_problem(tmp_path: Path, config: str) -> None:
    outcome = check(tmp_path, config)
    assert (outcome.status, outcome.out) == (0, "")


def test_a_second_document_is_refused(tmp_path: Path) -> None:
    outcome = check(tmp_path, f"---\n{HEAD}gateway: {{controllerName: example.com/other}}\n")
    assert outcome.status == 1
    (line,) = outcome.out.splitlines()
    assert line == (
        f"{tmp_path}/config.yaml:4 EdgeGateway: "
        "TooMany a second document (a file has one configuration)"
    )


def test_what_is_not_watched_is_said(tmp_path: Path) -> None:
    watch = "provider: {kubernetes: {watch: {type: Namespaces, namespaces: [other]}}}"
    outcome = check(tmp_path, watch)
    said = [line.partition(" ")[2] for line in outcome.out.splitlines()]
    text = (
        "metadata.namespace: NotSupported default is not watched, so the object is not served "
        "(provider.kubernetes.watch)"
    )
    assert said == [f"Gateway default/edge {text}", f"HTTPRoute default/quickstart {text}"]
    assert outcome.status == 1


def test_a_selector_is_told_from_names(tmp_path: Path) -> None:
    watch = (
        "provider: {orchestrator: {watch: {type: NamespaceSelector, "
        "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}}}}"
    )
    assert check(tmp_path, watch).out == ""
    assert "is not watched" in check(tmp_path, watch.replace(": default", ": other")).out
