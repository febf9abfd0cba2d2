"""examples/compose and examples/kind: valid files whose images, ports and mounts exist; the images' test runs the services."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import yaml

from cli.calling import call
from edgefast import __version__

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "examples/compose/compose.yaml"
KIND = ROOT / "examples/kind/cluster.yaml"
PAGE = (ROOT / "docs/guides/containers.md").read_text()


class Node(msgspec.Struct, forbid_unknown_fields=True):
    """A node of kind: fields of sigs.k8s.io/kind/pkg/apis/config/v1alpha4, as far as the example has them."""

    role: Literal["control-plane", "worker"]


class Cluster(msgspec.Struct, forbid_unknown_fields=True):
    """A cluster of kind."""

    kind: Literal["Cluster"]
    apiVersion: Literal["kind.x-k8s.io/v1alpha4"]
    name: str
    nodes: list[Node]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of the compose file."""
    return dict(yaml.safe_load(COMPOSE.read_text())["services"])


def test_the_compose_file_has_the_schema_of_the_specification() -> None:
    command = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(
        [str(Path(sys.executable).with_name(command[0])), *command[1:]],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_images_have_the_version(services: dict[str, Any]) -> None:
    assert {one["image"] for one in services.values()} == {f"edgefast:{__version__}"}
    assert set(re.findall(r"edgefast:(\d[\d.]*\d)", PAGE)) == {__version__}


def test_mounts_and_ports_of_the_compose_file(services: dict[str, Any]) -> None:
    for one in services.values():
        for mount in one["volumes"]:
            assert (COMPOSE.parent / mount.split(":")[0]).is_dir()
    documents = list(yaml.safe_load_all((COMPOSE.parent / "objects/gateway.yaml").read_text()))
    gateway = next(one for one in documents if one["kind"] == "Gateway")
    ports = {str(one["port"]) for one in gateway["spec"]["listeners"]}
    assert {one.split(":")[1] for one in services["edgefast"]["ports"]} == ports
    backend = next(one for one in documents if one["kind"] == "Backend")
    (endpoint,) = backend["spec"]["endpoints"]
    assert endpoint["fqdn"]["hostname"] in services
    assert str(endpoint["fqdn"]["port"]) in services["web"]["entrypoint"]
    assert call("check", "-f", str(COMPOSE.parent / "objects"), "--strict").status == 0


def test_the_kind_configuration() -> None:
    cluster = msgspec.convert(yaml.safe_load(KIND.read_text()), Cluster)
    assert [one.role for one in cluster.nodes] == ["control-plane", "worker"]
    for name in re.findall(r"--name (\S+?)`? ", PAGE):
        assert name == cluster.name
