"""`edgefast run` on files of another controller: `--adopt`, and policies that it does not apply, told everywhere."""

from pathlib import Path

import pytest

from proxy.command import Object, Start, gateway, gateway_class, mark_of, route, save
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

WITHOUT = "HTTPRoute default/web is served WITHOUT SecurityPolicy default/jwt"


def policy(name: str) -> Object:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name}
    return {
        "apiVersion": "gateway.envoyproxy.io/v1alpha1",
        "kind": "SecurityPolicy",
        "metadata": {"name": "jwt", "namespace": "default"},
        "spec": {"targetRefs": [target]},
    }


def test_policies_that_are_not_applied_are_told_everywhere(start: Start, tmp_path: Path) -> None:
    port = free_port()
    foreign = gateway_class()
    foreign["spec"]["controllerName"] = "gateway.envoyproxy.io/gatewayclass-controller"
    save(tmp_path / "a.yaml", foreign, gateway(port), route("v1"))
    save(tmp_path / "policy.yaml", policy("other"))
    run = start("-f", str(tmp_path), "--workers", "1", "--adopt")
    run.wait_ready()
    assert mark_of(port) == "v1"
    run.until(lambda: "taken for ours" in run.said, "what is adopted")
    assert "WITHOUT" not in run.said
    # Nothing of it but the target changes: no object of ours, and no other problem.
    save(tmp_path / "policy.yaml", policy("web"))
    run.until(lambda: WITHOUT in run.said, "the policy")
    told = [one for one in run.dump()["problems"] if WITHOUT in one["text"]]
    assert [(one["object"], one["severity"]) for one in told] == [
        ("HTTPRoute default/web", "error")
    ]
    assert WITHOUT in run.get(run.admin, "/console/api/problems")[1]
    assert run.stop() == 0
