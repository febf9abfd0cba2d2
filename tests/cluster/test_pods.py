"""Pods in the `world`: treated as a kubelet treats them."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from cluster.world.manifests import pod, shell
from cluster.world.process import start_time
from cluster.world.waiting import wait_until
from cluster.world.workloads import is_ready
from cluster.world.world import World

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def run_pod(
    world: World, namespace: str, name: str, container: dict[str, Any], **spec: Any
) -> None:
    world.admin.apply(pod(namespace, name, container, **spec))
    world.workloads.wait_pod(namespace, name)


def output(world: World, namespace: str, name: str, *command: str) -> str:
    done = world.workloads.execute(namespace, name, "main", command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pod_is_told_who_it_is_and_may_talk_to_the_api(world: World, namespace: str) -> None:
    env = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "GREETING", "value": "hello $(POD)"},
    ]
    run_pod(world, namespace, "who", {**shell("sleep 1000"), "env": env})
    script = (
        "hostname; echo $GREETING; cat namespace; echo;"
        ' curl -s -o /dev/null -w %{http_code} --cacert ca.crt -H "Authorization: Bearer $(cat token)"'
        " https://kubernetes.default.svc/api/v1/namespaces"
    )

    def said() -> list[str]:
        return output(world, namespace, "who", "sh", "-c", f"cd {TOKEN}; {script}").splitlines()

    # The name of the Service and the way to it are there a moment after the world.
    wait_until(lambda: said()[-1] == "403")
    assert said() == ["who", "hello who", namespace, "403"]
    payload = output(world, namespace, "who", "cat", f"{TOKEN}/token").split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims["kubernetes.io"]["pod"]["name"] == "who"


def test_mounted_objects_and_tokens_are_kept_up_to_date(world: World, namespace: str) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": namespace},
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": namespace},
    }
    world.admin.apply(
        {**config, "data": {"a": "1", "b": "x"}}, {**secret, "stringData": {"k": "old"}}
    )
    token = {"serviceAccountToken": {"path": "t", "audience": "ours", "expirationSeconds": 600}}
    volumes = [
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "t", "projected": {"sources": [token]}},
    ]
    mounts = [{"name": name, "mountPath": f"/mounted/{name}"} for name in "cst"]
    manifest = pod(
        namespace, "reads", {**shell("sleep 1000"), "volumeMounts": mounts}, volumes=volumes
    )
    manifest["metadata"]["annotations"] = {"world.edgefast.test/token-period": "1"}
    world.admin.apply(manifest)
    world.workloads.wait_pod(namespace, "reads")

    def read(path: str) -> str:
        # Between the shell's look at the folder and cat's, all files of a volume may be others.
        command = ["sh", "-c", f"cat /mounted/{path}"]
        return str(world.workloads.execute(namespace, "reads", "main", command).stdout)

    assert read("c/* /mounted/s/k") == "1xold"
    first = read("t/t")
    world.admin.apply({**config, "data": {"a": "2"}}, {**secret, "stringData": {"k": "new"}})
    wait_until(lambda: read("c/* /mounted/s/k") == "2new")
    wait_until(lambda: read("t/t") not in ("", first))
    assert world.workloads.execute(namespace, "reads", "main", ["touch", "/mounted/c/x"]).returncode


def test_probes_decide_about_readiness_and_life(world: World, namespace: str) -> None:
    # A slow machine is no sick container.
    timing = {"periodSeconds": 1, "timeoutSeconds": 20, "failureThreshold": 1}
    container = {
        **shell("trap 'exit 0' TERM; touch /tmp/ready; while :; do sleep 0.1; done"),
        "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, **timing},
        "livenessProbe": {"exec": {"command": ["test", "!", "-e", "/tmp/sick"]}, **timing},
    }
    run_pod(world, namespace, "probed", container)
    path = f"/api/v1/namespaces/{namespace}/pods/probed"
    output(world, namespace, "probed", "rm", "/tmp/ready")
    world.admin.wait(path, lambda one: not is_ready(one))
    output(world, namespace, "probed", "touch", "/tmp/ready")
    world.admin.wait(path, is_ready)
    output(world, namespace, "probed", "touch", "/tmp/sick")
    world.admin.wait(path, lambda one: one["status"]["containerStatuses"][0]["restartCount"] == 1)


def test_a_pod_that_is_deleted_ends_in_its_own_time(world: World, namespace: str) -> None:
    """preStop first, then SIGTERM; ready as long as it serves; killed when the time is over."""
    volumes = [{"name": "out", "hostPath": {"path": str(world.folder / "log")}}]
    file, go_on = f"/out/{namespace}.log", f"{namespace}.go"
    before = f"echo stop >> {file}; while [ ! -e /out/{go_on} ]; do sleep 0.05; done"
    container = {
        **shell(f"trap 'echo term >> {file}; exit 0' TERM; while :; do sleep 0.05; done"),
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", before]}}},
    }
    run_pod(world, namespace, "ends", container, volumes=volumes, terminationGracePeriodSeconds=60)
    path = f"/api/v1/namespaces/{namespace}/pods/ends"
    world.admin.delete(path)
    ending = world.admin.get(path)
    assert ending["metadata"]["deletionTimestamp"]
    assert is_ready(ending)
    (world.folder / "log" / go_on).touch()
    world.admin.wait_gone(path)
    assert (world.folder / "log" / f"{namespace}.log").read_text() == "stop\nterm\n"
    stubborn = shell("trap '' TERM; while :; do sleep 0.05; done")
    run_pod(world, namespace, "stays", stubborn, terminationGracePeriodSeconds=1)
    began = time.monotonic()
    world.admin.delete(f"/api/v1/namespaces/{namespace}/pods/stays")
    world.admin.wait_gone(f"/api/v1/namespaces/{namespace}/pods/stays")
    assert time.monotonic() - began > 0.9


def test_a_security_context_is_kept_to(world: World, namespace: str) -> None:
    context = {
        "runAsUser": 65532,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    script = "id -u; touch /x /tmp/x /run/x; touch /writable/x && echo wrote; grep CapBnd /proc/self/status"
    container = {
        **shell(f"({script}) 2>&1; sleep 1000"),
        "securityContext": context,
        "volumeMounts": [{"name": "w", "mountPath": "/writable"}],
    }
    run_pod(world, namespace, "bound", container, volumes=[{"name": "w", "emptyDir": {}}])
    wait_until(lambda: "CapBnd" in world.workloads.logs(namespace, "bound"))
    lines = world.workloads.logs(namespace, "bound").splitlines()
    assert lines[0] == "65532"
    assert sum("Read-only file system" in line for line in lines) == 3
    assert "wrote" in lines
    assert lines[-1].split()[-1] == "0" * 16


def test_what_cannot_start_says_why(world: World, namespace: str) -> None:
    world.admin.apply(pod(namespace, "unknown", {"image": "nowhere.example/nothing:1"}))
    path = f"/api/v1/namespaces/{namespace}/pods/unknown"
    waiting = "nowhere.example/nothing:1"
    world.admin.wait(
        path, lambda one: waiting in json.dumps(one["status"].get("containerStatuses", []))
    )
    ref = {"secretKeyRef": {"name": "later", "key": "k"}}
    late = {**shell("echo $K; sleep 1000"), "env": [{"name": "K", "valueFrom": ref}]}
    world.admin.apply(pod(namespace, "late", late))
    late_path = f"/api/v1/namespaces/{namespace}/pods/late"
    reason = "CreateContainerConfigError"
    world.admin.wait(late_path, lambda one: reason in json.dumps(one["status"]))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "later", "namespace": namespace},
    }
    world.admin.apply({**secret, "stringData": {"k": "now"}})
    world.workloads.wait_pod(namespace, "late")
    wait_until(lambda: world.workloads.logs(namespace, "late") == "now\n")


def test_an_agent_that_starts_again_starts_its_pods_again(world: World, namespace: str) -> None:
    run_pod(world, namespace, "stays", shell("sleep 1000"))
    path = f"/api/v1/namespaces/{namespace}/pods/stays"
    address = world.admin.get(path)["status"]["podIP"]
    pid = world.workloads.pid(namespace, "stays", "main")
    world.components.stop_one("node-agent")
    try:
        wait_until(lambda: start_time(pid) is None)
    finally:
        world.components.start_one("node-agent")
    again = world.admin.wait(
        path, lambda one: is_ready(one) and one["status"]["containerStatuses"][0]["restartCount"]
    )
    assert again["status"]["podIP"] == address
