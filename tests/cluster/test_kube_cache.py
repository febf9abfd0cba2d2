"""Cache against a real API server: snapshots, identity, referenced Secrets, addresses."""

from __future__ import annotations

from cluster.kube_cached import WORLD, following
from cluster.world.apiserver import ApiServer
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
