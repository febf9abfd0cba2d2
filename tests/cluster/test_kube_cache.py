"""Cache against a real API server: snapshots, identity, referenced Secrets, addresses."""

from __future__ import annotations

import msgspec

from cluster.kube_cached import GROUP, QUICK, WORLD, following, gateway_ref
from cluster.world.apiserver import ApiServer
from controller.kube.discovery import OPTIONAL
from tests.controller.waiting import until
from tests.support.manifest import manifest


async def test_a_snapshot_holds_what_counts(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    async with following(apiserver, namespace) as one:
        await one.cache.wait_synced()
        assert (namespace, "g") in one.cache.snapshot().gateways
        await until(one.settled, "Secrets read")
        snapshot = one.cache.snapshot()
        assert snapshot.http_routes[namespace, "r"].spec.rules[0].backend_refs[0].name == "s"
        assert snapshot.services[namespace, "s"].spec.ports[0].port == 80
        assert len(snapshot.slices_by_service[namespace, "s"]) == 1
        assert [key for key in snapshot.secrets if key[0] == namespace] == [(namespace, "used")]
        assert snapshot.secrets[namespace, "used"].value("tls.crt") == b"x"
        assert one.cache.bundle_version.startswith("v1.")
        assert one.cache.served["HTTPRoute"].version == "v1"
        assert not one.cache.problems and not one.cache.refused
        assert one.cache.snapshot() is snapshot

        # A Secret that changes, goes, comes back, and is referred to no longer.
        secret = manifest(
            f"Secret {namespace}/used",
            type="kubernetes.io/tls",
            stringData={"tls.crt": "new", "tls.key": "y"},
        )

        def certificate() -> bytes | None:
            found = one.cache.snapshot().secrets.get((namespace, "used"))
            return found.value("tls.crt") if found else None

        apiserver.admin.apply(secret)
        await until(lambda: certificate() == b"new", "read again")
        apiserver.admin.remove(secret)
        await until(lambda: certificate() is None, "gone")
        assert one.settled()
        apiserver.admin.apply(secret)
        await until(lambda: certificate() == b"new", "back")
        assert one.cache.want(frozenset()) and certificate() is None


async def test_another_release_of_the_kinds_is_noticed_between_looks_at_them(
    apiserver: ApiServer,
) -> None:
    """All kinds are there, so that they are looked at a minute apart; their release is told in seconds."""
    namespace = apiserver.namespace("cache")
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gatewayclasses.{GROUP}"
    key = f"{GROUP}/bundle-version"
    before = apiserver.admin.get(crd)["metadata"]["annotations"][key]
    pace = msgspec.structs.replace(QUICK, discover=3600.0, discover_version=0.1)

    def write(version: str) -> None:
        apiserver.admin.patch(crd, {"metadata": {"annotations": {key: version}}})

    async with following(apiserver, namespace, pace=pace) as one:
        await one.cache.wait_synced()
        assert one.cache.bundle_version == before and one.cache.missing <= OPTIONAL
        try:
            write("v1.6.99")
            changes = one.changes
            await until(lambda: one.cache.bundle_version == "v1.6.99", "seen")
            await until(lambda: one.changes > changes, "told")
        finally:
            write(before)
        await until(lambda: one.cache.bundle_version == before, "seen again")


async def test_a_status_costs_no_translation(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    async with following(apiserver, namespace) as one:
        await one.cache.wait_synced()
        before = one.cache.snapshot()
        present = one.cache.present(gateway_ref(namespace))
        assert present is not None and present.generation == 1 and present.uid
        changes = one.changes
        one.statuses.clear()
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/gateways/g"
        apiserver.admin.patch(f"{path}/status", {"status": {"conditions": []}})
        apiserver.admin.patch(path, {"metadata": {"finalizers": ["test/x"]}})
        apiserver.admin.patch(path, {"metadata": {"finalizers": []}})
        version = apiserver.admin.get(path)["metadata"]["resourceVersion"]

        def seen() -> str:
            now = one.cache.present(gateway_ref(namespace))
            return now.resource_version if now else ""

        await until(lambda: seen() == version, "seen")
        now = one.cache.present(gateway_ref(namespace))
        assert now is not None and b"conditions" in now.status and now.uid == present.uid
        assert one.statuses == [gateway_ref(namespace)]
        assert one.cache.snapshot().gateways[namespace, "g"] is before.gateways[namespace, "g"]
        # Other tests leave their objects alone; this one's changes are none.
        assert one.changes == changes

        apiserver.admin.patch(path, {"metadata": {"labels": {"a": "b"}}})
        await until(lambda: one.changes > changes, "a label counts")
        labelled = one.cache.snapshot().gateways[namespace, "g"]
        assert labelled is not before.gateways[namespace, "g"]
        apiserver.admin.delete(path)
        await until(lambda: one.cache.present(gateway_ref(namespace)) is None, "deleted")
        assert (namespace, "g") not in one.cache.snapshot().gateways


async def test_the_address_of_a_service_is_seen(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("cache")
    apiserver.admin.apply(WORLD.replace("NAMESPACE", namespace))
    path = f"/api/v1/namespaces/{namespace}/services/s"
    apiserver.admin.patch(path, {"spec": {"type": "LoadBalancer"}})
    async with following(apiserver, namespace) as one:
        await one.cache.wait_synced()
        ingress = [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]
        status = {"loadBalancer": {"ingress": ingress}}
        apiserver.admin.patch(f"{path}/status", {"status": status})

        def addresses() -> tuple[str, ...]:
            return one.cache.snapshot().services[namespace, "s"].addresses

        await until(lambda: addresses() == ("192.0.2.1", "lb.example.com"), "seen")
