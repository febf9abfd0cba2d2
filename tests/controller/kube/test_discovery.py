"""Discovery: versions, kinds that are missing for a moment, and an annotation that may not be shown."""

from __future__ import annotations

import pytest
from aiohttp import web

from controller.kube import discovery as module
from controller.kube.discovery import OPTIONAL, Discovery
from controller.kube.errors import ApiError
from controller.kube.throttle import RequestRate
from edgefast.api.core.clustertrustbundle import CERTIFICATES_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS
from edgefast.api.model.reference import GATEWAY_GROUP

from .script import failure, scripted

PACE = RequestRate()
ALL = {
    (info.group, version): {one.plural for one in KINDS.values() if version in one.versions}
    for info in KINDS.values()
    for version in info.versions
    if info.group in (GATEWAY_GROUP, EDGE_GROUP, EXPERIMENTAL_GROUP, CERTIFICATES_GROUP)
}


class Clock:
    """The clock of discoveries; it goes on when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


class Server:
    def __init__(self) -> None:
        self.served = {key: set(plurals) for key, plurals in ALL.items()}
        self.ready = 200
        self.crd = 200
        self.notes = {"gateway.networking.k8s.io/bundle-version": "v1.6.3"}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if parts == ["readyz"]:
            return web.Response(status=self.ready, text="ok")
        if "customresourcedefinitions" in parts:
            if self.crd != 200:
                return failure(self.crd, "No")
            assert "PartialObjectMetadata" in request.headers["Accept"]
            return web.json_response({"metadata": {"annotations": self.notes}})
        if len(parts) == 2:
            versions = [version for group, version in self.served if group == parts[1]]
            if not versions:
                return failure(404, "NotFound")
            return web.json_response({"versions": [{"version": one} for one in versions]})
        plurals = self.served.get((parts[1], parts[2]))
        if plurals is None:
            return failure(404, "NotFound")
        listed = [{"name": one} for one in plurals] + [{"name": f"{one}/status"} for one in plurals]
        return web.json_response({"resources": listed})

    def without(self, plural: str) -> None:
        for plurals in self.served.values():
            plurals.discard(plural)


async def test_the_newest_version_is_taken(clock: Clock) -> None:
    server = Server()
    async with scripted(server.serve) as kube:
        found = await Discovery(kube, PACE).look()
        assert found.apis["HTTPRoute"].version == "v1" and not found.missing
        assert found.apis["EdgeProxy"].version == "v1alpha1"
        assert found.apis["ClusterTrustBundle"].version == "v1"
        assert found.bundle_version == "v1.6.3"
        del server.served[GATEWAY_GROUP, "v1"]
        discovery = Discovery(kube, PACE)
        await discovery.look()
        clock.pass_by(PACE.absent_after)
        found = await discovery.look()
        assert found.apis["HTTPRoute"].version == "v1beta1"
        assert found.apis["BackendTLSPolicy"].version == "v1alpha3"
        assert found.apis["GRPCRoute"].version == "v1alpha2"
        assert found.missing == {"ListenerSet"}


async def test_a_kind_never_seen_is_missing_when_two_looks_agree(clock: Clock) -> None:
    server = Server()
    server.without("backends")
    async with scripted(server.serve) as kube:
        discovery = Discovery(kube, PACE)
        first = await discovery.look()
        assert first.undecided == {"Backend"} and not first.missing
        clock.pass_by(PACE.absent_after - 0.25)
        assert (await discovery.look()).undecided == {"Backend"}
        clock.pass_by(0.25)
        second = await discovery.look()
        assert second.missing == {"Backend"} and not second.undecided
        server.served[EDGE_GROUP, "v1alpha1"].add("backends")
        third = await discovery.look()
        assert "Backend" in third.apis and not third.missing


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_kind_of_kubernetes_is_there_at_once_or_not(clock: Clock, version: str) -> None:
    """API servers without it have its group: certificates.k8s.io/v1 has CertificateSigningRequests."""
    server = Server()
    for one in ("v1", "v1beta1"):
        if one != version:
            server.served[CERTIFICATES_GROUP, one].clear()
    async with scripted(server.serve) as kube:
        discovery = Discovery(kube, PACE)
        found = await discovery.look()
        assert found.apis["ClusterTrustBundle"].version == version and not found.missing
        server.without("clustertrustbundles")
        server.without("xbackends")
        server.without("xbackendtrafficpolicies")  # nor is there the experimental channel
        assert "ClusterTrustBundle" in (await discovery.look()).apis  # not sure yet
        clock.pass_by(PACE.gone_after)
        assert (await discovery.look()).missing == OPTIONAL
        found = await Discovery(kube, PACE).look()
        assert found.missing == OPTIONAL and not found.undecided


async def test_a_server_that_is_starting_is_not_believed(clock: Clock) -> None:
    server = Server()
    server.served.clear()
    server.ready = 500
    async with scripted(server.serve) as kube:
        discovery = Discovery(kube, PACE)
        for _ in range(3):
            clock.pass_by(PACE.absent_after)
            found = await discovery.look()
            assert "Gateway" in found.undecided and not found.missing
        server.ready = 403  # it does not tell: then two looks have to do
        clock.pass_by(PACE.absent_after - 0.25)
        assert "Gateway" in (await discovery.look()).undecided
        clock.pass_by(0.25)
        assert "Gateway" in (await discovery.look()).missing


async def test_a_kind_once_seen_is_gone_after_a_while_only(clock: Clock) -> None:
    server = Server()
    async with scripted(server.serve) as kube:
        discovery = Discovery(kube, PACE)
        await discovery.look()
        server.without("gateways")
        found = await discovery.look()
        assert "Gateway" in found.apis and not found.missing
        clock.pass_by(PACE.gone_after - 0.25)
        assert "Gateway" in (await discovery.look()).apis
        clock.pass_by(0.25)
        found = await discovery.look()
        assert found.missing == {"Gateway"} and "Gateway" not in found.apis


async def test_the_release_is_unknown_without_permission_and_stays_in_an_outage() -> None:
    server = Server()
    async with scripted(server.serve) as kube:
        discovery = Discovery(kube, PACE)
        assert (await discovery.look()).bundle_version == "v1.6.3"
        server.crd = 500
        assert (await discovery.look()).bundle_version == "v1.6.3"
        server.crd = 403
        assert (await discovery.look()).bundle_version == ""
        server.crd = 200
        server.notes = {}
        assert (await discovery.look()).bundle_version == "unversioned"
        server.crd = 404
        assert (await discovery.look()).bundle_version == ""


async def test_no_answer_is_no_discovery() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return failure(503, "ServiceUnavailable")

    async with scripted(serve) as kube:
        with pytest.raises(ApiError):
            await Discovery(kube, PACE).look()


async def test_an_upgrade_of_the_kinds_is_seen_without_looking_at_them_all() -> None:
    """The cache looks at the version alone every few seconds; at the kinds, a minute apart, while all are there."""
    server = Server()
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return await server.serve(request)

    async with scripted(serve) as kube:
        discovery = Discovery(kube, PACE)
        await discovery.look()
        asked.clear()
        server.notes = {"gateway.networking.k8s.io/bundle-version": "v1.7.0"}
        assert await discovery.look_at_version() == "v1.7.0"
        assert len(asked) == 1
        server.crd = 500
        assert await discovery.look_at_version() == "v1.7.0"
