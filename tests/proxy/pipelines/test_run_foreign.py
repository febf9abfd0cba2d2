"""`edgefast run` on files of another controller: `--adopt`, and policies that it does not apply, told everywhere."""

import http.client
import socket
import threading
from pathlib import Path

import pytest

from proxy.command import Object, Start, gateway, gateway_class, mark_of, route, save
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

WITHOUT = "HTTPRoute default/web is served WITHOUT TrafficPolicy default/jwt"


def policy(name: str, **features: Object) -> Object:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name}
    return {
        "apiVersion": "gateway.kgateway.dev/v1alpha1",
        "kind": "TrafficPolicy",
        "metadata": {"name": "jwt", "namespace": "default"},
        "spec": {"targetRefs": [target], **features},
    }


def status_of(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


def test_policies_that_are_not_applied_are_told_everywhere(start: Start, tmp_path: Path) -> None:
    port = free_port()
    foreign = gateway_class()
    foreign["spec"]["controllerName"] = "gateway.envoyproxy.io/gatewayclass-controller"
    save(tmp_path / "a.yaml", foreign, gateway(port), route("v1"))
    save(tmp_path / "policy.yaml", policy("other"))
    run = start("-f", str(tmp_path), "--workers", "1", "--adopt")
    run.wait_ready()
    assert mark_of(port) == "v1"
    run.until(lambda: "accepted" in run.said, "what is adopted")
    assert "WITHOUT" not in run.said
    # Nothing of it but the target changes: no object of ours, and no other problem.
    save(tmp_path / "policy.yaml", policy("web"))
    run.until(lambda: WITHOUT in run.said, "the policy")
    told = [one for one in run.dump()["problems"] if WITHOUT in one["text"]]
    assert [(one["object"], one["severity"]) for one in told] == [
        ("HTTPRoute default/web", "error")
    ]
    assert WITHOUT in run.get(run.admin, "/console/api/problems")[1]
    # It decides access now: its targets are closed.
    save(tmp_path / "policy.yaml", policy("web", jwtAuth={"extensionRef": {"name": "a"}}))
    run.until(lambda: status_of(port) == 500, "the closed route")
    run.until(lambda: "default/web answers 500: TrafficPolicy" in run.said, "why it is closed")
    assert run.stop() == 0


def test_policies_of_envoy_gateway_are_served(start: Start, tmp_path: Path) -> None:
    port = free_port()
    foreign = gateway_class()
    foreign["spec"]["controllerName"] = "gateway.envoyproxy.io/gatewayclass-controller"
    save(tmp_path / "a.yaml", foreign, gateway(port), route("v1"))
    denied = policy("web", authorization={"defaultAction": "Deny"})
    denied |= {"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy"}
    save(tmp_path / "policy.yaml", denied)
    run = start("-f", str(tmp_path), "--workers", "1", "--adopt")
    run.wait_ready()
    assert status_of(port) == 403
    denied["spec"]["authorization"]["defaultAction"] = "Allow"
    save(tmp_path / "policy.yaml", denied)
    run.until(lambda: status_of(port) not in (403, 500), "the new policy")
    denied["spec"]["csrf"] = {}
    save(tmp_path / "policy.yaml", denied)
    run.until(lambda: status_of(port) == 500, "the field without a counterpart")
    assert run.stop() == 0


def test_connections_and_datagrams_of_adopted_files_are_passed_on(
    start: Start, tmp_path: Path
) -> None:
    foreign, own, port = gateway_class(), gateway(), free_port()
    foreign["spec"]["controllerName"] = "gateway.envoyproxy.io/gatewayclass-controller"
    own["spec"]["listeners"] = [
        {"name": protocol.lower(), "protocol": protocol, "port": port}
        for protocol in ("TCP", "UDP")
    ]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(type=socket.SOCK_DGRAM) as names,
    ):
        names.bind(("127.0.0.1", 0))
        names.settimeout(20)
        server.settimeout(20)
        backends = [
            stream_backend(kind, sock) for kind, sock in (("TCPRoute", server), ("UDPRoute", names))
        ]
        objects = [one for backend in backends for one in backend]
        save(tmp_path / "a.yaml", foreign, own, *objects)
        run = start("-f", str(tmp_path), "--workers", "1", "--adopt")
        run.wait_ready()
        run.until(lambda: "accepted" in run.said, "what is adopted")

        def answer() -> None:
            there, _ = server.accept()
            with there:
                there.sendall(b"db " + there.recv(100))
            data, client = names.recvfrom(100)
            names.sendto(b"names " + data, client)

        backend = threading.Thread(target=answer, daemon=True)
        backend.start()
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"hello")
            assert client.recv(100) == b"db hello"
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.connect(("127.0.0.1", port))
            client.send(b"hello")
            assert client.recv(100) == b"names hello"
        backend.join(20)
    assert run.stop() == 0


def stream_backend(kind: str, sock: socket.socket) -> list[Object]:
    """A route of a kind to one of the test's sockets."""
    name, protocol = kind.lower(), kind.removesuffix("Route")
    number = sock.getsockname()[1]
    ports = [{"name": "p", "port": 53, "protocol": protocol}]
    labels = {"kubernetes.io/service-name": name}
    return [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "parentRefs": [{"name": "edge", "sectionName": protocol.lower()}],
                "rules": [{"backendRefs": [{"name": name, "port": 53}]}],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-1", "namespace": "default", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "p", "port": number, "protocol": protocol}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        },
    ]
