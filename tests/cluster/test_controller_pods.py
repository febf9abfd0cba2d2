"""A controller, an API server and a proxy: Pods that an XBackend selects are read before anybody is sent to them, also at a start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.controller_parts import own_address
from cluster.test_kube_pods import pod, serve, service_account
from cluster.world.apiserver import ApiServer
from edgefast.api.kinds import EXPERIMENTAL_GROUP

VERSION = f"{EXPERIMENTAL_GROUP}/v1alpha1"


@pytest.fixture(scope="module")
def bench(newest: ApiServer) -> Iterator[Bench]:
    with Bench(newest, extensionApis={"enableXBackend": True}) as made:
        made.add_class()
        made.port, made.fleet_name = made.bring_up()
        yield made


def add_backend(bench: Bench, name: str, port: int, app: str = "") -> None:
    labels = {"app": app or name}
    spec = {
        "type": "EndpointSelector",
        "port": {"number": port},
        "endpointSelector": {"matchLabels": labels},
    }
    bench.apply("XBackend", name, spec, VERSION)


def add_route(bench: Bench, name: str) -> None:
    ref = {"group": EXPERIMENTAL_GROUP, "kind": "XBackend", "name": name}
    host = f"{name}.example.com"
    spec = {"parentRefs": [{"name": "gw"}], "hostnames": [host], "rules": [{"backendRefs": [ref]}]}
    bench.apply("HTTPRoute", name, spec)


def accepted(bench: Bench, name: str) -> list[str]:
    """Return the status of Accepted at each Gateway that uses an XBackend."""
    path = f"/apis/{VERSION}/namespaces/{bench.namespace}/xbackends/{name}"
    entries = (bench.api.get(path).get("status") or {}).get("ancestors") or ()
    return [entry["conditions"][0]["status"] for entry in entries]


def test_pods_are_read_before_they_are_sent_to(newest: ApiServer, bench: Bench) -> None:
    port = bench.add_origin("pod").port
    newest.admin.apply(service_account(bench.namespace), pod(bench.namespace, "web-0", "web"))
    serve(newest, bench.namespace, "web-0", own_address())
    # Older ones that nobody uses leave it its place.
    for at in range(17):
        add_backend(bench, f"idle-{at}", 80)
    add_backend(bench, "web", port)
    add_route(bench, "web")
    seen = set()

    def answered() -> bool:
        status, body = bench.request(bench.port, host="web.example.com")
        seen.add(status)
        return (status, body) == (200, "pod")

    wait_for("the Pod answers", answered)
    assert seen <= {0, 404, 200}  # 0: the proxy is on its way
    wait_for("accepted", lambda: accepted(bench, "web") == ["True"])
    assert not accepted(bench, "idle-0")
