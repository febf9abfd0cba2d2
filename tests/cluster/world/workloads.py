"""Pods and what makes them, as tests look at them: rollouts, addresses, logs, commands in containers.

In: an administrator's `Api` and the world's folder. Out: waits with a deadline; text.
Must never: wait by sleeping a fixed time.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.world.api import Api
from cluster.world.node.process import exec_command


class Workloads:
    """What runs in a world."""

    def __init__(self, admin: Api, folder: Path) -> None:
        self._admin, self._folder = admin, folder

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the pods of a namespace, oldest first."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        found = self._admin.items(path, **({"labelSelector": selector} if selector else {}))
        return sorted(
            found, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])
        )

    def wait_rollout(self, namespace: str, name: str, seconds: float = 120.0) -> dict[str, Any]:
        """Wait until a Deployment has all its replicas, new and ready, and no old ones."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        found: dict[str, Any] = self._admin.wait(path, _rolled_out, seconds)
        return found

    def wait_pod(self, namespace: str, name: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait until a pod is ready."""
        found: dict[str, Any] = self._admin.wait(
            f"/api/v1/namespaces/{namespace}/pods/{name}", is_ready, seconds
        )
        return found

    def address(self, namespace: str, service: str, seconds: float = 60.0) -> str:
        """Return a Service's load balancer address, once it has one."""
        path = f"/api/v1/namespaces/{namespace}/services/{service}"
        found = self._admin.wait(path, ingress_of, seconds)
        return ingress_of(found)[0]

    def logs(self, namespace: str, pod: str, container: str = "", **options: str) -> str:
        """Return a container's log through the API server, with the options of the logs endpoint."""
        if container:
            options["container"] = container
        return self._admin.text(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", **options)

    def execute(
        self,
        namespace: str,
        pod: str,
        container: str,
        command: Sequence[str],
        seconds: float = 30.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside a container, as its user."""
        pid = self.pid(namespace, pod, container)
        ids = (Path("/proc") / str(pid) / "status").read_text()
        uid, gid = (
            int(line.split()[1]) for line in ids.splitlines() if line.startswith(("Uid:", "Gid:"))
        )
        environ = (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
        env = dict(one.decode().split("=", 1) for one in environ if b"=" in one)
        return subprocess.run(
            exec_command(pid, uid, gid, command),
            env=env,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def pid(self, namespace: str, pod: str, container: str) -> int:
        """Return the pid, on this machine, of a container's first process; to kill it, or stop it."""
        uid = self._admin.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["metadata"]["uid"]
        short = uid.replace("-", "")[:8]
        folder = self._folder / "pods" / f"{namespace}_{pod}_{short}" / container
        return int((folder / "box" / "pid").read_text())

    def restart(self, namespace: str, deployment: str) -> None:
        """Roll a Deployment, as `kubectl rollout restart` does."""
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}"
        found = self._admin.get(path)
        count = int(found["metadata"]["generation"]) + 1
        note = {"metadata": {"annotations": {"world.edgefast.test/restart": str(count)}}}
        self._admin.patch(path, {"spec": {"template": note}})


def _rolled_out(found: Any) -> bool:
    if not found:
        return False
    status, wanted = found.get("status", {}), found["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < found["metadata"]["generation"]:
        return False
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return all(status.get(count, 0) == wanted for count in counts)


def is_ready(pod: Any) -> bool:
    """Whether a pod's Ready condition is True."""
    conditions = (pod or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ingress_of(service: Any) -> list[str]:
    """Return a Service's load balancer addresses."""
    balancer = (service or {}).get("status", {}).get("loadBalancer", {})
    return [one["ip"] for one in balancer.get("ingress") or []]
