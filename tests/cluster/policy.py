"""Enforces a NetworkPolicy as a cluster's network would: by packet filters in the network namespaces of the pods it selects."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cluster.world.world import World

TABLE = "inet networkpolicy"


@contextmanager
def enforced(world: World, policy: Mapping[str, Any]) -> Iterator[None]:
    """Filter what comes to the pods that a policy selects, while the body runs."""
    script = render_filter(world, policy)
    namespace = policy["metadata"]["namespace"]
    pids = [
        world.workloads.pid(
            namespace, one["metadata"]["name"], one["spec"]["containers"][0]["name"]
        )
        for one in _select(world, namespace, policy["spec"]["podSelector"])
    ]
    if not pids:
        raise ValueError("the policy selects no pod")
    begun: list[int] = []
    try:
        for pid in pids:
            _nft(pid, script)
            begun.append(pid)
        yield
    finally:
        for pid in begun:
            _nft(pid, f"delete table {TABLE}\n")


def render_filter(world: World, policy: Mapping[str, Any]) -> str:
    """Return the rules of nft for one pod: what is not allowed is dropped, as nothing at all would be heard of it."""
    spec = policy["spec"]
    if spec["policyTypes"] != ["Ingress"]:
        raise ValueError(f"policyTypes {spec['policyTypes']}")
    lines = [
        f"table {TABLE} {{",
        "  chain input {",
        "    type filter hook input priority 0; policy drop;",
        "    iif lo accept",
        "    ct state established,related accept",
        "    meta l4proto icmp accept",
    ]
    for rule in spec["ingress"]:
        ports = ", ".join(str(_port(one)) for one in rule["ports"])
        if "from" not in rule:
            lines.append(f"    tcp dport {{ {ports} }} accept")
            continue
        addresses = sorted(
            {ip for peer in rule["from"] for ip in _peers(world, policy["metadata"], peer)}
        )
        if addresses:
            lines.append(
                f"    ip saddr {{ {', '.join(addresses)} }} tcp dport {{ {ports} }} accept"
            )
    return "\n".join([*lines, "  }", "}", ""])


def _port(port: Mapping[str, Any]) -> int:
    if port.keys() - {"port", "protocol"} or port.get("protocol", "TCP") != "TCP":
        raise ValueError(f"port {port}")
    return int(port["port"])


def _peers(world: World, meta: Mapping[str, Any], peer: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the pods that a peer means."""
    if peer.keys() - {"podSelector", "namespaceSelector"}:
        raise ValueError(f"peer {peer}")
    namespaces = [meta["namespace"]]
    if "namespaceSelector" in peer:
        found = world.admin.items("/api/v1/namespaces", **_labels(peer["namespaceSelector"]))
        namespaces = [one["metadata"]["name"] for one in found]
    return [
        one["status"]["podIP"]
        for namespace in namespaces
        for one in _select(world, namespace, peer.get("podSelector") or {})
        if one["status"].get("podIP")
    ]


def _select(world: World, namespace: str, selector: Mapping[str, Any]) -> list[Any]:
    found = world.admin.items(f"/api/v1/namespaces/{namespace}/pods", **_labels(selector))
    return [
        one
        for one in found
        if "deletionTimestamp" not in one["metadata"]
        and one["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def _labels(selector: Mapping[str, Any]) -> dict[str, str]:
    """Return a selector as the query of a list; {} selects everything."""
    if selector.keys() - {"matchLabels"}:
        raise ValueError(f"selector {selector}")
    wanted = selector.get("matchLabels") or {}
    text = ",".join(f"{name}={value}" for name, value in wanted.items())
    return {"labelSelector": text} if text else {}


def _nft(pid: int, script: str) -> None:
    """Run nft in the network namespace of a process."""
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "nft", "-f", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise RuntimeError(f"nft: {done.stderr}\n{script}")
