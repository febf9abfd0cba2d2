"""Releases of the Gateway API: whatever CRDs a cluster has, what is there is served and what is missing is told."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.tools.api_fields import RELEASES
from cluster.tools.crds import gateway_api_crds
from cluster.tools.versions import OLDER_GATEWAY_API
from cluster.world.apiserver import ApiServer
from cluster.world.crds import install, own_crds
from edgefast.translate.gateway.features import supported_features

OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "gateway.networking.k8s.io"
#: What this API server lacks, being older than ClusterTrustBundles.
ALWAYS = ("ClusterTrustBundle",)


@contextlib.contextmanager
def serving(request: pytest.FixtureRequest, crds: list[dict[str, Any]]) -> Iterator[Bench]:
    """A controller, a Gateway and a backend beside an API server with these CRDs and ours."""
    failed, started = request.session.testsfailed, False
    server = ApiServer()
    try:
        server.start(crds=False)
        install(server.admin, [*crds, *own_crds()])
        with Bench(server) as made:
            made.add_class()
            made.port, made.fleet_name = made.bring_up()
            made.add_backend("web", made.add_origin("one").port)
            started = True
            yield made
    finally:
        server.stop(keep_logs=not started or request.session.testsfailed > failed)


def without(crds: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    """Leave kinds out, and the policy that guards the others against older ones."""
    return [
        one
        for one in crds
        if one["kind"] == "CustomResourceDefinition" and one["spec"]["names"]["kind"] not in kinds
    ]


def features(bench: Bench) -> list[str]:
    """Return what the class says that it supports."""
    status = bench.get("GatewayClass", bench.gateway_class)["status"]
    return [one["name"] for one in status["supportedFeatures"]]


def expect_version(bench: Bench, status: str, *words: str) -> None:
    """Wait until SupportedVersion is so and says these words."""

    def look() -> bool:
        found = bench.conditions("GatewayClass", bench.gateway_class).get("SupportedVersion")
        return (
            found is not None
            and found["status"] == status
            and all(word in found["message"] for word in words)
        )

    wait_for(f"SupportedVersion={status} with {words}", look)


def test_the_standard_channel_of_the_newest_release(request: pytest.FixtureRequest) -> None:
    """`retry` is of the standard channel since v1.7, its attempts 1 by default."""
    with serving(request, gateway_api_crds("standard", NEWEST)) as bench:
        bench.add_route("plain", retry={"codes": [500]})
        bench.expect(bench.port, (200, "one"))
        stored = bench.get("HTTPRoute", "plain")["spec"]["rules"][0]["retry"]
        assert stored == {"codes": [500], "attempts": 1}
        bench.expect_condition("HTTPRoute", "plain", "Accepted", "True")
        expect_version(bench, "True", NEWEST)
        assert features(bench) == [*supported_features(in_gateway_namespace=False, missing=ALWAYS)]
        assert "HTTPRouteRetryCodes" in features(bench)
        said = bench.conditions("GatewayClass", bench.gateway_class)["SupportedVersion"]
        assert "not installed" not in said["message"]


def test_kinds_that_are_missing_come_and_go(request: pytest.FixtureRequest) -> None:
    """Everything that can be missing is; the rest is served all the same, and one of them comes and goes."""
    policies = ("BackendTLSPolicy", "GRPCRoute", "ListenerSet", "ReferenceGrant")
    lacking = (*policies, "TCPRoute", "TLSRoute", "UDPRoute")
    whole = gateway_api_crds("standard", NEWEST)
    with serving(request, without(whole, *lacking)) as bench:
        bench.add_route("plain")
        bench.expect(bench.port, (200, "one"))
        bench.expect_condition("Gateway", "gw", "Programmed", "True")
        expect_version(bench, "True", NEWEST, "not served", ", ".join(lacking))
        assert not [one for one in features(bench) if one.startswith(lacking)]
        (grpc,) = [one for one in without(whole) if one["spec"]["names"]["kind"] == "GRPCRoute"]
        install(bench.api, [grpc])
        rule = {"backendRefs": [{"name": "web", "port": 80}]}
        bench.apply("GRPCRoute", "calls", {"parentRefs": [{"name": "gw"}], "rules": [rule]})
        bench.expect_condition(
            "GRPCRoute", "calls", "Accepted", "False"
        )  # the older one has the host
        wait_for("its features are claimed", lambda: "GRPCRoute" in features(bench))
        bench.api.delete(f"{DEFINITIONS}/grpcroutes.{GROUP}")
        kept = ("GatewayClass", bench.gateway_class, "gateway.edge.io/KindsInstalled", "False")
        bench.expect_condition(*kept)
        bench.add_route("later", host="later.example.com")  # the rest is followed all the same
        bench.expect(bench.port, (200, "one"), host="later.example.com")
        assert bench.request(bench.port) == (200, "one")


def test_crds_that_are_older_than_is_known(request: pytest.FixtureRequest) -> None:
    with serving(request, gateway_api_crds("standard", OLDER_GATEWAY_API)) as bench:
        bench.add_route("plain")
        bench.expect(bench.port, (200, "one"))
        expect_version(bench, "False", OLDER_GATEWAY_API, "ListenerSet", "BackendTLSPolicy")
        bench.expect_condition("GatewayClass", bench.gateway_class, "Accepted", "True")


@pytest.mark.parametrize("channel", ["standard", "experimental"])
def test_an_upgrade_in_place_loses_nothing(request: pytest.FixtureRequest, channel: str) -> None:
    with serving(request, without(gateway_api_crds(channel, OLDEST))) as bench:
        bench.add_route("plain")
        bench.expect(bench.port, (200, "one"))
        expect_version(bench, "True", OLDEST)
        bench.expect_condition("HTTPRoute", "plain", "Accepted", "True")
        written = bench.get("HTTPRoute", "plain")["status"]
        answers: Counter[Any] = Counter()
        done = threading.Event()

        def ask() -> None:
            while not done.wait(0.005):
                answers[bench.request(bench.port)] += 1

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            bench.api.apply(*gateway_api_crds(channel, NEWEST))
            expect_version(bench, "True", NEWEST)
            bench.add_route("more", host="more.example.com", retry={"attempts": 0})
            bench.expect(bench.port, (200, "one"), host="more.example.com")
        finally:
            done.set()
            asking.join()
        assert set(answers) == {(200, "one")}
        assert bench.get("HTTPRoute", "plain")["status"] == written
        assert "HTTPRouteRetryCodes" in features(bench)
        assert bench.controller.process.poll() is None
        wait_for("all is followed again", lambda: bench.metric("watch_problems") == 0)
