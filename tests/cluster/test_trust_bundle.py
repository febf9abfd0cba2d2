"""ClusterTrustBundles: an API server that has them, backends trusted by them, and what becomes of that when they change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.controller_parts import Origin
from cluster.tools.api_fields import RELEASES
from cluster.tools.crds import gateway_api_crds
from cluster.world.apiserver import ApiServer
from cluster.world.crds import install, own_crds
from tests.support.manifest import manifest
from wire.harness.certificates import Authority

INSIDE = "inside.test"
BUNDLE = "example.com:internal:v1"
VERSION = "certificates.k8s.io/v1beta1"
PATH = f"/apis/{VERSION}/clustertrustbundles/{BUNDLE}"
REFERENCE = {"group": "certificates.k8s.io", "kind": "ClusterTrustBundle", "name": BUNDLE}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Bench]:
    failed = request.session.testsfailed
    server = ApiServer(
        f"--runtime-config={VERSION}/clustertrustbundles=true",
        "--feature-gates=ClusterTrustBundle=true",
    )
    origin = Origin("inside", authority.issue([INSIDE]))
    try:
        server.start(crds=False)
        install(server.admin, [*gateway_api_crds("experimental", RELEASES[-1]), *own_crds()])
        with Bench(server) as made:
            made.add_class()
            made.port, _ = made.bring_up()
            made.add_backend("web", origin.port)
            validation = {"hostname": INSIDE, "caCertificateRefs": [REFERENCE]}
            target = {"group": "", "kind": "Service", "name": "web"}
            spec = {"targetRefs": [target], "validation": validation}
            made.apply("BackendTLSPolicy", "inside", spec)
            made.add_route("plain")
            yield made
    finally:
        origin.close()
        server.stop(keep_logs=request.session.testsfailed > failed)


def put(bench: Bench, pem: bytes) -> None:
    """Write the bundle."""
    bench.api.apply(
        manifest(
            f"ClusterTrustBundle {BUNDLE}",
            {"signerName": "example.com/internal", "trustBundle": pem.decode()},
            api=VERSION,
        )
    )


def test_a_backend_is_trusted_by_a_bundle(bench: Bench, authority: Authority) -> None:
    """Not before it is there, not with another authority, not after it is gone; again when it is back."""
    refused = ("BackendTLSPolicy", "inside", "ResolvedRefs", "False", "InvalidCACertificateRef")
    bench.expect_condition(*refused)
    bench.expect_condition(
        "BackendTLSPolicy", "inside", "Accepted", "False", "NoValidCACertificate"
    )
    bench.expect(bench.port, 500)
    put(bench, authority.pem)
    bench.expect(bench.port, (200, "inside"))
    bench.expect_condition("BackendTLSPolicy", "inside", "Accepted", "True")
    put(bench, Authority("another").pem)
    bench.expect(bench.port, 503)
    bench.expect_condition("BackendTLSPolicy", "inside", "Accepted", "True")
    put(bench, authority.pem)
    bench.expect(bench.port, (200, "inside"))
    bench.api.delete(PATH)
    bench.expect_condition(*refused)
    bench.expect(bench.port, 500)
    put(bench, authority.pem)
    bench.expect(bench.port, (200, "inside"))


def test_the_feature_is_claimed_where_the_kind_is(bench: Bench) -> None:
    def claimed() -> bool:
        status = bench.get("GatewayClass", bench.gateway_class)["status"]
        return "ClusterTrustBundle" in [one["name"] for one in status["supportedFeatures"]]

    wait_for("ClusterTrustBundle is claimed", claimed)


def test_clients_are_verified_with_a_bundle(bench: Bench, authority: Authority) -> None:
    """The listener is served, with an authority, as the only reference leads to one."""
    put(bench, authority.pem)
    shown = authority.issue(["www.example.com"])
    bench.api.apply(
        manifest(
            f"Secret {bench.namespace}/shown",
            type="kubernetes.io/tls",
            stringData={"tls.crt": shown.certificate.decode(), "tls.key": shown.key.decode()},
        )
    )
    listener = {
        "name": "https",
        "protocol": "HTTPS",
        "port": 8443,
        "tls": {"certificateRefs": [{"name": "shown"}]},
    }
    validation = {"caCertificateRefs": [REFERENCE]}
    spec = {
        "gatewayClassName": bench.gateway_class,
        "listeners": [listener],
        "tls": {"frontend": {"default": {"validation": validation}}},
    }
    bench.apply("Gateway", "verified", spec)
    bench.expect_condition("Gateway", "verified", "Accepted", "True", "Accepted")

    def resolved() -> bool:
        (found,) = bench.get("Gateway", "verified")["status"]["listeners"]
        return any(
            one["type"] == "ResolvedRefs" and one["status"] == "True" for one in found["conditions"]
        )

    wait_for("the listener's references are resolved", resolved)
