"""Gateway Namespace mode: fleets beside their Gateways, tokens instead of client certificates, merged ones too."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from cluster.installed import (
    PROXIES,
    Installed,
    applications,
    backend_of,
    condition,
    edge_proxy,
    fleet_of,
    gateway,
    installed,
    listener,
    route,
)
from cluster.world.api import ApiError
from cluster.world.world import World
from tests.support.manifest import manifest

CONFIG = {"provider": {"orchestrator": {"deploy": {"type": "GatewayNamespace"}}}}


@pytest.fixture(scope="module")
def release(world: World) -> Iterator[Installed]:
    """A release in this mode, with a plain and a merged class."""
    with installed(world, CONFIG) as made:
        one = made.namespace
        world.admin.apply(
            edge_proxy(one, "plain"),
            edge_proxy(one, "merged", mergeGateways=True),
            made.gateway_class(f"{one}-plain", (one, "plain")),
            made.gateway_class(f"{one}-merged", (one, "merged")),
        )
        yield made


@pytest.fixture(scope="module")
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Two namespaces with a backend in each."""
    with applications(world, "team-a", "team-b") as made:
        yield made


def test_fleets_are_in_the_namespace_of_their_gateway(
    release: Installed, apps: tuple[str, ...]
) -> None:
    """Tokens bound to the pod and meant for this controller; only the authority is mounted, no key is there."""
    first, _ = apps
    release.admin.apply(
        gateway(first, "eg", f"{release.namespace}-plain"), route(first, "web", "eg", ["a.example"])
    )
    address = release.address(first, "eg")
    assert backend_of(release.wait_status(address, "a.example")) == first
    fleet = fleet_of(f"{first}/eg")
    path = f"namespaces/{first}"
    service = release.admin.get(f"/api/v1/{path}/services/{fleet}")
    assert service["spec"]["type"] == "LoadBalancer"
    labels = service["metadata"]["labels"]
    assert labels["gateway.edge.io/owning-gateway-name"] == "eg"
    (owner,) = service["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Gateway", "eg")
    release.admin.get(f"/apis/apps/v1/{path}/deployments/{fleet}")
    authority = release.admin.get(f"/api/v1/{path}/configmaps/{fleet}")["data"]
    assert list(authority) == ["ca.crt"]
    assert "PRIVATE KEY" not in json.dumps(authority)
    assert not release.admin.items(f"/api/v1/{path}/secrets"), "no Secret of ours"
    (pod,) = release.world.workloads.pods(first, PROXIES)
    assert pod["spec"]["serviceAccountName"] == fleet
    volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
    (source,) = volumes["sa-token"]["projected"]["sources"]
    audience = f"edge-gateway.{release.namespace}.svc.cluster.local"
    assert source["serviceAccountToken"]["audience"] == audience
    assert not [one for one in volumes.values() if "secret" in one]
    name = pod["metadata"]["name"]
    done = release.world.workloads.execute(
        first, name, "edge", ["cat", "/var/run/secrets/token/sa-token"]
    )
    claims = json.loads(base64.urlsafe_b64decode(done.stdout.split(".")[1] + "=="))
    assert claims["aud"] == [audience]
    assert claims["kubernetes.io"]["pod"]["name"] == name
    # Nothing of it is where the controller is.
    assert not release.world.workloads.pods(release.namespace, PROXIES)


def test_merged_inside_the_mode_is_one_fleet_per_class_and_namespace(
    release: Installed, apps: tuple[str, ...]
) -> None:
    """The tuple is unique in a namespace; another namespace may have the same one, with its own address."""
    first, second = apps
    merged = f"{release.namespace}-merged"
    release.admin.apply(
        *(
            one
            for namespace in apps
            for one in (
                gateway(namespace, "one", merged, listener(hostname="same.example")),
                gateway(namespace, "two", merged, listener(hostname=f"{namespace}.example")),
                route(namespace, "one", "one"),
                route(namespace, "two", "two"),
            )
        )
    )
    addresses = {}
    for namespace in apps:
        address = addresses[namespace] = release.address(namespace, "one")
        assert release.address(namespace, "two") == address
        assert backend_of(release.wait_status(address, "same.example")) == namespace
        assert backend_of(release.wait_status(address, f"{namespace}.example")) == namespace
        digest = fleet_of(f"{namespace}/{merged}").rpartition("-")[2]
        selector = f"gateway.edge.io/owning-gatewayclass={merged}"
        found = release.admin.items(
            f"/apis/apps/v1/namespaces/{namespace}/deployments", labelSelector=selector
        )
        assert [one["metadata"]["name"] for one in found] == [f"edge-{merged}-{digest}"]
        labels = found[0]["metadata"]["labels"]
        assert labels["gateway.edge.io/owning-gateway-namespace"] == namespace
    assert len(set(addresses.values())) == 2
    assert release.ask(addresses[first], f"{second}.example").status == 404

    release.admin.apply(gateway(first, "z-late", merged, listener(hostname="same.example")))
    lost = {"type": "Conflicted", "status": "True", "reason": "HostnameConflict"}
    lost_one = release.wait_condition("gateways", first, "z-late", lost)
    assert condition(lost_one["status"]["conditions"], "Programmed")["status"] == "False"
    assert backend_of(release.ask(addresses[second], "same.example")) == second

    # The last Gateway of the class in a namespace takes the fleet with it, and no other.
    for name in ("one", "two", "z-late"):
        release.admin.remove(gateway(first, name, merged))
    digest = fleet_of(f"{first}/{merged}").rpartition("-")[2]
    release.admin.wait_gone(f"/api/v1/namespaces/{first}/services/edge-{merged}-{digest}")
    assert backend_of(release.ask(addresses[second], "same.example")) == second


def test_a_fleet_goes_with_its_gateway_and_what_is_not_ours_stays(
    release: Installed, apps: tuple[str, ...]
) -> None:
    """Objects of users in the same namespace are left alone, whatever they are called."""
    _, second = apps
    release.admin.apply(gateway(second, "short", f"{release.namespace}-plain"))
    release.address(second, "short")
    fleet = fleet_of(f"{second}/short")
    foreign = manifest(
        f"ConfigMap {second}/edge-looks-like-ours",
        labels={"app.kubernetes.io/managed-by": "edge-gateway"},
    )
    release.admin.apply(foreign)
    release.admin.remove(gateway(second, "short", ""))
    for kind in ("services", "serviceaccounts", "configmaps"):
        release.admin.wait_gone(f"/api/v1/namespaces/{second}/{kind}/{fleet}")
    release.admin.wait_gone(f"/apis/apps/v1/namespaces/{second}/deployments/{fleet}")
    assert release.admin.find(release.admin.path_of(foreign))


def test_the_account_of_the_controller_makes_no_pods_and_no_secrets(
    release: Installed, apps: tuple[str, ...]
) -> None:
    """Cluster-wide it may do what spec section 5 lists."""
    account = release.world.accounts.api_for(f"{release.namespace}/edge-gateway")
    for kind, version in (("Secret", "v1"), ("Pod", "v1")):
        meta = {"namespace": apps[0], "name": "x"}
        with pytest.raises(ApiError) as told:
            account.create({"apiVersion": version, "kind": kind, "metadata": meta})
        assert told.value.status == 403
