"""What installs a release at an API server that has no nodes: real helm, and `edgefast install`, and what both leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.installed import gateway
from cluster.tools.missing import built
from cluster.tools.versions import HELM_HOME
from cluster.world.apiserver import ApiServer
from cluster.world.helm import homes
from tests.support.manifest import manifest

SYSTEM = "edge-gateway-system"
PROJECT = Path(__file__).parents[2]


class Installer:
    """helm and edgefast towards one API server."""

    def __init__(self, apiserver: ApiServer, folder: Path) -> None:
        self.apiserver = apiserver
        self._folder = folder

    def helm(self, *arguments: str, wrong: bool = False) -> str:
        """Run helm; what it said."""
        command = [built(HELM_HOME / "helm"), *arguments]
        environment = {**homes(self._folder), "KUBECONFIG": str(self.apiserver.kubeconfig)}
        return self._run(command, environment, wrong)

    def edgefast(self, *arguments: str, wrong: bool = False, config: Path | None = None) -> str:
        """Run `edgefast install|uninstall`; what it said."""
        code = f"from controller.cli.{arguments[0]} import {arguments[0]} as main; main()"
        command = [sys.executable, "-c", code, *arguments[1:]]
        command += ["--kubeconfig", str(config or self.apiserver.kubeconfig)]
        return self._run(command, dict(os.environ), wrong)

    def _run(self, command: list[str], environment: dict[str, str], wrong: bool) -> str:
        done = subprocess.run(
            command,
            env=environment,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode != 0) == wrong, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def release_objects(self, release: str, namespace: str) -> set[tuple[str, str]]:
        """(kind, name) of everything labelled as a release's."""
        selector = (
            f"app.kubernetes.io/instance={release},gateway.edge.io/release-namespace={namespace}"
        )
        found = set()
        for path in (
            "/apis/apps/v1/deployments",
            "/apis/batch/v1/jobs",
            "/api/v1/services",
            "/api/v1/configmaps",
            "/api/v1/serviceaccounts",
            "/apis/autoscaling/v2/horizontalpodautoscalers",
            *(
                f"/apis/rbac.authorization.k8s.io/v1/{kind}{what}"
                for kind in ("", "cluster")
                for what in ("roles", "rolebindings")
            ),
        ):
            for one in self.apiserver.admin.items(path, labelSelector=selector):
                found.add((path.rpartition("/")[2], one["metadata"]["name"]))
        return found


@contextmanager
def left_fleets(apiserver: ApiServer) -> Iterator[tuple[str, str]]:
    """A Service of a fleet whose Gateway is served, and of one that was kept when the controllerName changed."""
    api, namespace = apiserver.admin, apiserver.namespace("served")
    made: list[dict[str, Any]] = []
    for name, controller in (
        ("served", "gateway.edge.io/gatewayclass-controller"),
        ("kept", "gateway.edge.io/former"),
    ):
        class_name = f"{namespace}-{name}"
        labels = {
            "app.kubernetes.io/managed-by": "edge-gateway",
            "gateway.edge.io/controller": f"{SYSTEM}.edge-gateway",
            "gateway.edge.io/owning-gateway-name": name,
            "gateway.edge.io/owning-gateway-namespace": namespace,
        }
        made += [
            gateway(namespace, name, class_name),
            manifest(f"GatewayClass {class_name}", {"controllerName": controller}),
        ]
        service = manifest(
            f"Service {SYSTEM}/edge-{name}", {"ports": [{"port": 80}]}, labels=labels
        )
        api.apply(service, manager="edge-gateway")
        made.append(service)
    api.apply(*(one for one in made if one["kind"] != "Service"))
    yield f"{SYSTEM}/edge-served", f"{SYSTEM}/edge-kept"
    api.remove(*made)
