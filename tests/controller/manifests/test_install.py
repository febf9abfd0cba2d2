"""`edgefast install --dry-run`: the objects as YAML, and wrong values in words; no cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from controller.cli.install import install
from controller.cli.uninstall import uninstall
from controller.manifests.load import load_install
from controller.manifests.naming import Release
from controller.manifests.render import render_install
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure


def _dry(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(install, ["--dry-run", *arguments], input=given)


def test_it_prints_what_is_rendered() -> None:
    done = _dry("--set", "deployment.replicas=2")
    assert done.exit_code == 0 and not done.stderr
    namespace, *printed = yaml.safe_load_all(done.stdout)
    assert namespace == manifest("Namespace edge-gateway-system")
    made, _ = load_install(Release(), settings=["deployment.replicas=2"])
    assert made is not None
    assert printed == list(render_install(made))


def test_the_output_is_read_as_it_is_written() -> None:
    """No anchors, and texts of many lines stay that."""
    text = _dry().stdout
    assert "edge-gateway.yaml: |\n" in text
    assert "&id" not in text and "*id" not in text


def test_values_come_from_files_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("deployment: {replicas: 2, priorityClassName: high}\n")
    done = _dry(
        "-f", str(tmp_path / "v.yaml"), "-f", "-", given="deployment:\n  priorityClassName: low\n"
    )
    (deployment,) = (m for m in yaml.safe_load_all(done.stdout) if m["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["spec"]["priorityClassName"] == "low"


def test_another_release_elsewhere_without_crds() -> None:
    done = _dry("--release", "marketing", "-n", "team-a", "--skip-crds")
    printed = list(yaml.safe_load_all(done.stdout))
    assert {m["metadata"].get("namespace", "team-a") for m in printed} == {"team-a"}
    assert "CustomResourceDefinition" not in {m["kind"] for m in printed}


def test_wrong_values_are_told_and_nothing_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "v.yaml"
    path.write_text("deployment:\n  replica: 2\n")
    done = _dry("-f", str(path), "--set", "hpa.enabled=maybe")
    assert done.exit_code == 1 and not done.stdout
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{path}:2: deployment.replica: NotSupported")
    assert second == 'values: hpa.enabled: Invalid "maybe" (expected true or false)'


@pytest.mark.parametrize("command", [install, uninstall])
def test_a_name_that_is_too_long_is_wrong_usage(command: object) -> None:
    arguments = ["--release", "r" * 33]
    done = CliRunner().invoke(command, arguments)  # type: ignore[arg-type]
    assert done.exit_code == 2 and "longer than 32" in done.stderr
