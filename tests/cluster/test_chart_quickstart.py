"""The commands for a cluster in docs/getting-started.md, docs/guides/kubernetes.md and docs/guides/containers.md are run, in order, in a real cluster; outputs are compared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.tools.crds import gateway_api_crds
from cluster.tools.missing import MissingTool, built
from cluster.tools.versions import GATEWAY_API, HELM_HOME
from cluster.world.addresses import NODE_ADDRESS
from cluster.world.helm import homes
from cluster.world.world import World
from project.test_readme import ROOT, Block, expect, read_blocks

RELEASES = "https://github.com/kubernetes-sigs/gateway-api/releases/download"
SYSTEM = "edge-gateway-system"
#: What is left when a block has failed.
_TIDY = f"""
kubectl delete --ignore-not-found --wait=false -f examples/kubernetes/quickstart.yaml
helm uninstall --ignore-not-found edge-gateway --namespace {SYSTEM}
kubectl delete --ignore-not-found --wait=false namespace {SYSTEM}
"""


class Reader:
    """A shell that somebody types the blocks of a page into."""

    def __init__(self, world: World, folder: Path) -> None:
        crds = folder / "gateway-api.json"
        # The channel that the world has: it cannot be changed in place.
        found = gateway_api_crds("experimental")
        items = [one for one in found if one["kind"] == "CustomResourceDefinition"]
        crds.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        self._files = {f"{RELEASES}/{GATEWAY_API}/standard-install.yaml": str(crds)}
        self._state = folder / "variables"
        self._state.write_text("")
        if shutil.which("kubectl") is None:
            raise MissingTool("kubectl", "run the commands of the documentation")
        path = f"{HELM_HOME}{os.pathsep}{os.environ['PATH']}"
        built(HELM_HOME / "helm")
        self._environment = {**homes(folder), "PATH": path, "KUBECONFIG": str(world.kubeconfig)}
        self._curl = (
            f'curl() {{ nsenter --net=/run/netns/{world.network.client} curl --max-time 10 "$@"; }}'
        )

    def type(self, block: Block) -> None:
        """Run a block; it must succeed and print what the page shows."""
        script = block.script
        for there, here in self._files.items():
            script = script.replace(there, here)
        whole = f"source {self._state}\n{self._curl}\n{script}\ndeclare -p address > {self._state} 2>/dev/null || true\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", whole],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
        )
        shown = f"{script}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, shown
        if block.output is not None:
            assert expect(block.output).fullmatch(done.stdout), shown


@pytest.fixture
def reader(world: World, tmp_path: Path) -> Iterator[Reader]:
    """A reader in a cluster without our namespace, which is gone again afterwards."""
    world.admin.wait_gone(f"/api/v1/namespaces/{SYSTEM}", 120)
    made = Reader(world, tmp_path)
    try:
        yield made
    finally:
        made.type(Block(_TIDY, None))
        world.admin.wait_gone(f"/api/v1/namespaces/{SYSTEM}", 120)


@pytest.mark.parametrize(
    "page", ["docs/getting-started.md", "docs/guides/kubernetes.md", "docs/guides/containers.md"]
)
def test_commands_for_a_cluster_do_what_they_show(reader: Reader, page: str) -> None:
    blocks = read_blocks((ROOT / page).read_text(), "cluster")
    assert len(blocks) >= 2
    for block in blocks:
        reader.type(block)


def test_without_a_load_balancer(world: World, reader: Reader) -> None:
    """examples/kubernetes/without-load-balancer.yaml: the Gateway's address is a node's, its port the Service's nodePort."""
    quickstart, clean_up = read_blocks((ROOT / "docs/getting-started.md").read_text(), "cluster")
    to_node_ports, request = read_blocks((ROOT / "docs/guides/kubernetes.md").read_text(), "nodes")
    reader.type(quickstart)
    reader.type(to_node_ports)
    gateway = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways/edge"
    world.admin.wait(gateway, lambda found: _addresses(found) == [NODE_ADDRESS])
    assert request.output is not None
    reader.type(request)
    reader.type(clean_up)


def _addresses(gateway: Any) -> list[str]:
    return [one["value"] for one in gateway["status"].get("addresses", ())]
