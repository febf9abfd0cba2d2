"""The `world` fixture: traffic from outside, names, addresses, outages, helm, a load that counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from cluster.world import addresses as at
from cluster.world.manifests import echo
from cluster.world.process import start_time
from cluster.world.waiting import wait_until
from cluster.world.workloads import is_ready
from cluster.world.world import World


def alive(pid: int) -> bool:
    return start_time(pid) is not None


def test_pods_go_on_without_the_api_server(world: World, namespace: str) -> None:
    world.admin.apply(*echo(namespace, service={"type": "LoadBalancer"}))
    world.workloads.wait_rollout(namespace, "echo")
    url = f"http://{world.workloads.address(namespace, 'echo')}/"
    world.client.wait(url, lambda answer: answer.status == 200)
    name = world.workloads.pods(namespace)[0]["metadata"]["name"]
    pid = world.workloads.pid(namespace, name, "echo")
    world.plane.stop_apiserver()
    try:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid))
        world.client.wait(url, lambda answer: answer.status == 200)
    finally:
        world.plane.start_apiserver()
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    again = world.admin.wait(
        path, lambda one: is_ready(one) and one["status"]["containerStatuses"][0]["restartCount"]
    )
    assert again["status"]["podIP"]
    # Somebody else's word about readiness does not last.
    conditions = [{**one, "status": "False"} for one in again["status"]["conditions"]]
    world.admin.patch(f"{path}/status", {"status": {"conditions": conditions}})
    world.admin.wait(path, is_ready)


def test_a_world_beside_this_one_leaves_nothing(world: World) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "cluster.world", *arguments]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    folder = run("up").split("\n")[0].rsplit(" ", 1)[-1]
    slot = int((Path(folder) / "slot").read_text())
    try:
        assert slot != world.network.slot
        assert f"{folder} (left by up)" in run("status")
        assert at.CLIENT_ADDRESS in run("client", "--world", folder, "ip", "addr")
    finally:
        run("down", "--world", folder)
    assert not Path(folder).exists()
    assert not list(Path("/run/netns").glob(f"efw{slot}*"))
    assert world.admin.get("/readyz") == "ok"


def test_addresses_of_the_balancer(world: World, namespace: str) -> None:
    """An address asked for is given if it is free; one outside the pool never is."""
    ports = [{"port": 80}]

    def service(name: str, **spec: Any) -> dict[str, Any]:
        meta = {"name": name, "namespace": namespace}
        full = {"type": "LoadBalancer", "ports": ports, **spec}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": full}

    world.admin.apply(service("asked", loadBalancerIP="10.250.0.200"))
    assert world.workloads.address(namespace, "asked") == "10.250.0.200"
    world.admin.apply(service("foreign", loadBalancerIP="203.0.113.1"), service("any"))
    assert world.workloads.address(namespace, "any") != "10.250.0.200"
    found = world.admin.get(f"/api/v1/namespaces/{namespace}/services/foreign")
    assert not found["status"]["loadBalancer"].get("ingress")


def test_a_load_tells_what_went_wrong(world: World, namespace: str) -> None:
    world.admin.apply(*echo(namespace, service={"type": "LoadBalancer"}, grace=2))
    world.workloads.wait_rollout(namespace, "echo")
    address = world.workloads.address(namespace, "echo")
    world.client.wait(f"http://{address}/", lambda answer: answer.status == 200)
    with world.client.load(
        f"http://{address}", rate=200, deadline=1.0, per_connection=10
    ) as answers:
        answers.wait_more(50)
        world.admin.patch(
            f"/apis/apps/v1/namespaces/{namespace}/deployments/echo", {"spec": {"replicas": 0}}
        )
        wait_until(lambda: answers.errors)
    assert answers.by_status[200] >= 50
    assert answers.unexpected()
    assert answers.bad[0]["what"] in answers.errors
    assert answers.connections > 4
