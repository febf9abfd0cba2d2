"""certgen and Rotation on Secrets: what exists is kept, what is due is renewed, only the leader writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.certs.certgen import CertgenError, certgen
from controller.certs.identity import fleet_uri
from controller.certs.issue import is_client_good
from controller.certs.pair import read_bundle, read_pair, signed_by, uris_of
from controller.certs.policy import CertificatePolicy
from controller.certs.rotate import Rotation
from controller.certs.secrets import secret_manifest
from controller.kube.errors import ApiError
from edgefast.api.config.edgegateway import FleetCertificates, FleetRevocation
from tests.controller.certs.stores import Store

pytestmark = pytest.mark.pure

NS = "edge-gateway-system"
START = datetime(2026, 11, 21, tzinfo=UTC)


class World:
    """A store, a clock, and a controller that leads or not."""

    def __init__(self) -> None:
        self.store = Store()
        self.now = START
        self.leading = True
        self.changes = 0
        self.certificates = FleetCertificates()
        self.policy = CertificatePolicy(lambda: self.certificates, NS)
        self.rotation = self.controller()

    def controller(self) -> Rotation:
        rotation = Rotation(
            self.store, NS, leading=lambda: self.leading, policy=self.policy, clock=lambda: self.now
        )
        rotation.on_change = self._changed
        return rotation

    def _changed(self) -> None:
        self.changes += 1

    async def certgen(self, **more: Any) -> list[str]:
        return await certgen(self.store, NS, clock=lambda: self.now, **more)

    def server(self) -> dict[str, str]:
        return self.store.data(NS, "edge-gateway")

    def ca(self) -> dict[str, str]:
        return self.store.data(NS, "edge-gateway-ca")


@pytest.fixture
@contextlib.asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    await made.certgen()
    await made.rotation.load()
    yield made


def values(manifest: dict[str, Any]) -> dict[str, str]:
    store = Store()
    store.set(manifest)
    return store.data(manifest["metadata"]["namespace"], manifest["metadata"]["name"])


async def test_certgen_makes_what_is_missing_and_keeps_what_is_there() -> None:
    world = World()
    said = await world.certgen()
    assert [line.rpartition(" ")[2] for line in said] == ["created", "created"]
    assert set(world.ca()) == {"tls.crt", "tls.key", "ca.crt", "since"}
    assert set(world.server()) == {"tls.crt", "tls.key", "ca.crt"}
    assert "PRIVATE" not in "".join(said)
    before, server = world.ca(), world.server()
    for one in world.store.objects.values():
        assert one["type"] == "kubernetes.io/tls"
        assert one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "edge-gateway"
    said = await world.certgen()
    assert [line.rpartition(" ")[2] for line in said] == ["kept", "kept"]
    assert world.ca() == before and world.server() == server
    del world.store.objects[f"/api/v1/namespaces/{NS}/secrets/edge-gateway"]
    await world.certgen()
    fresh = read_pair(world.server()["tls.crt"], world.server()["tls.key"])
    assert signed_by(fresh.certificate, read_bundle(before["tls.crt"])[0])


async def test_certgen_overwrites_when_told_and_ends_all_trust(world: World) -> None:
    old = read_bundle(world.server()["ca.crt"])
    said = await world.certgen(overwrite=True)
    assert [line.rpartition(" ")[2] for line in said] == ["replaced", "replaced"]
    assert not set(old) & set(read_bundle(world.server()["ca.crt"]))
    # A running controller follows: other bundle, other client certificates.
    uri = fleet_uri(NS, NS, "edge-a")
    before = world.rotation.client_secret(NS, "edge-a")
    await world.rotation.step()
    after = values(world.rotation.client_secret(NS, "edge-a"))
    assert world.changes == 1 and after["ca.crt"] == world.server()["ca.crt"]
    assert after["tls.crt"] != values(before)["tls.crt"]
    ca = read_pair(world.ca()["tls.crt"], world.ca()["tls.key"])
    assert is_client_good(read_pair(after["tls.crt"], after["tls.key"]), ca, uri)


async def test_two_certgens_at_once_agree() -> None:
    world = World()
    real = world.store.create

    async def slow(manifest: Any) -> Any:
        await asyncio.sleep(0)
        return await real(manifest)

    world.store.create = slow  # type: ignore[method-assign]
    await asyncio.gather(world.certgen(), world.certgen(), world.certgen())
    server = read_pair(world.server()["tls.crt"], world.server()["tls.key"])
    (ca,) = read_bundle(world.ca()["ca.crt"])
    assert signed_by(server.certificate, ca)
    assert world.server()["ca.crt"] == world.ca()["ca.crt"]


async def test_an_authority_that_is_none_is_not_overwritten_silently() -> None:
    world = World()
    world.store.set(secret_manifest(NS, "edge-gateway-ca", {"tls.crt": "x", "tls.key": "y"}))
    with pytest.raises(CertgenError, match="--overwrite"):
        await world.certgen()
    with pytest.raises(CertgenError, match=f"{NS}/edge-gateway-ca"):
        await world.rotation.load()
    await world.certgen(overwrite=True)
    await world.rotation.load()


async def test_without_certgen_it_says_what_to_do() -> None:
    with pytest.raises(CertgenError, match="run `edgefast-controller certgen`"):
        await World().rotation.load()


async def test_another_release_has_other_names() -> None:
    world = World()
    await certgen(world.store, NS, name="b-edge-gateway", domain="corp", clock=lambda: START)
    data = world.store.data(NS, "b-edge-gateway")
    names = read_pair(data["tls.crt"], data["tls.key"]).certificate.extensions
    assert "b-edge-gateway.edge-gateway-system.svc.corp" in str(list(names))
    assert world.store.data(NS, "b-edge-gateway-ca")


async def test_a_fleets_secret_is_the_same_until_it_is_due(world: World) -> None:
    rotation = world.rotation
    manifest = rotation.client_secret(NS, "edge-a")
    assert manifest["metadata"] == {"name": "edge-a-xds", "namespace": NS}
    assert manifest["type"] == "kubernetes.io/tls"
    data = values(manifest)
    assert set(data) == {"ca.crt", "tls.crt", "tls.key"}
    assert data["ca.crt"] == rotation.bundle
    assert uris_of(read_pair(data["tls.crt"], data["tls.key"]).certificate) == (
        fleet_uri(NS, NS, "edge-a"),
    )
    assert values(rotation.client_secret(NS, "edge-b"))["tls.key"] != data["tls.key"]
    world.now += timedelta(hours=47)
    await rotation.step()
    assert rotation.client_secret(NS, "edge-a") is manifest and world.changes == 0
    world.now += timedelta(hours=1)
    await rotation.step()
    assert world.changes == 1
    fresh = values(rotation.client_secret(NS, "edge-a"))
    assert fresh["tls.crt"] != data["tls.crt"] and fresh["ca.crt"] == data["ca.crt"]


@pytest.mark.parametrize("at", ["2026-11-21T02:30:00Z", "2026-11-21T04:30:00Z"])
async def test_a_fleet_that_is_revoked_gets_another_certificate(
    world: World, at: str, caplog: Any
) -> None:
    """The second time is in the future: earlier certificates are refused, and the fleet stays connected."""
    rotation = world.rotation
    world.now += timedelta(hours=2)
    kept = values(rotation.client_secret(NS, "edge-b"))
    stolen = read_pair(*_pair(rotation, "edge-a"))
    world.now += timedelta(minutes=30)
    world.certificates = _revoking("edge-a", at)
    assert world.policy.is_revoked(f"{NS}/edge-a", stolen.certificate)
    await rotation.step()
    fresh = read_pair(*_pair(rotation, "edge-a"))
    assert world.changes == 1 and fresh.certificate_pem != stolen.certificate_pem
    assert not world.policy.is_revoked(f"{NS}/edge-a", fresh.certificate)
    assert world.policy.is_revoked(f"{NS}/edge-a", stolen.certificate)
    assert values(rotation.client_secret(NS, "edge-b")) == kept
    future = at > f"{world.now:%Y-%m-%dT%H:%M:%SZ}"
    assert [at in one for one in caplog.messages if "in the future" in one] == [True] * future
    for hours in (0, 3):  # replicas that start later accept the same one, and so does a new leader
        world.now += timedelta(hours=hours)
        await rotation.step()
        other = CertificatePolicy(lambda: world.certificates, NS)
        assert not other.is_replaced(f"{NS}/edge-a", fresh.certificate)
    assert world.changes == 1
    # A later time revokes a certificate with a mark for an earlier one.
    world.certificates = _revoking("edge-a", "2026-11-22T00:00:00Z")
    await rotation.step()
    assert world.changes == 2 and world.policy.is_revoked(f"{NS}/edge-a", fresh.certificate)


async def test_a_certificate_that_lives_longer_than_is_set_is_replaced(world: World) -> None:
    """As after an upgrade from a release with certificates of 90 days."""
    world.certificates = FleetCertificates(lifetime="2160h")
    rotation = world.rotation
    long = read_pair(*_pair(rotation, "edge-a"))
    assert long.expires - world.now == timedelta(days=90)
    world.certificates = FleetCertificates()
    await rotation.step()
    short = read_pair(*_pair(rotation, "edge-a"))
    assert short.expires - world.now == timedelta(hours=72) and world.changes == 1


def _revoking(fleet: str, before: str) -> FleetCertificates:
    return FleetCertificates(revoked=(FleetRevocation(fleet=fleet, issued_before=before),))


def _pair(rotation: Rotation, name: str) -> tuple[str, str]:
    data = values(rotation.client_secret(NS, name))
    return data["tls.crt"], data["tls.key"]


async def test_a_new_leader_keeps_what_fleets_have(world: World) -> None:
    kept = world.rotation.client_secret(NS, "edge-a")
    world.store.set(kept)
    # Broken, of another fleet, and in another namespace: none of these is taken over.
    world.store.set({**kept, "metadata": {"name": "edge-b-xds", "namespace": NS}})
    world.store.set(secret_manifest(NS, "edge-c-xds", {"tls.crt": "x", "tls.key": "y"}))
    other = world.controller()
    await other.load()
    await other.adopt((NS, f"edge-{one}") for one in "abcd")
    assert values(other.client_secret(NS, "edge-a")) == values(kept)
    for one in "bcd":
        data = values(other.client_secret(NS, f"edge-{one}"))
        pair = read_pair(data["tls.crt"], data["tls.key"])
        assert uris_of(pair.certificate) == (fleet_uri(NS, NS, f"edge-{one}"),)
    other.forget([(NS, "edge-b")])
    assert values(other.client_secret(NS, "edge-a")) != values(kept)


async def test_authorities_change_step_by_step_and_nothing_is_refused_on_the_way(
    world: World,
) -> None:
    """A year of looks each six hours around the change: what is shown is trusted by who looked last time."""
    rotation = world.rotation
    first = world.ca()["tls.crt"]
    world.now = START + timedelta(days=5 * 365 * 2 // 3 - 2)
    await rotation.step()
    bundles = {1: 0, 2: 0}
    before_client = values(rotation.client_secret(NS, "edge-a"))
    before_server = world.server()
    for _ in range(60):
        world.now += timedelta(hours=6)
        await rotation.step()
        client, server = values(rotation.client_secret(NS, "edge-a")), world.server()
        for shown, trusting in (
            (client, server),
            (server, client),
            (before_client, server),
            (client, before_server),
            (before_server, client),
            (server, before_client),
        ):
            certificate = read_pair(shown["tls.crt"], shown["tls.key"]).certificate
            assert any(signed_by(certificate, one) for one in read_bundle(trusting["ca.crt"]))
            assert certificate.not_valid_after_utc > world.now
        bundles[len(read_bundle(rotation.bundle))] += 1
        before_client, before_server = client, server
    assert bundles[2] == 5 and bundles[1] == 55
    assert world.ca()["tls.crt"] != first
    assert first not in rotation.bundle


async def test_a_change_can_be_ordered(world: World) -> None:
    first = world.ca()["tls.crt"]
    (said, _) = await world.certgen(rotate=True)
    assert said.endswith("announced")
    (said, _) = await world.certgen(rotate=True)
    assert said.endswith("kept")
    await world.rotation.step()
    assert len(read_bundle(world.server()["ca.crt"])) == 2 and world.changes == 1
    assert first in world.server()["ca.crt"]
    world.now += timedelta(hours=1)
    await world.rotation.step()
    assert world.ca()["tls.crt"] != first
    world.now += timedelta(hours=24)
    await world.rotation.step()
    assert len(read_bundle(world.rotation.bundle)) == 1


async def test_the_controllers_certificate_is_renewed_in_time(world: World) -> None:
    before = world.server()
    world.now += timedelta(days=240)
    await world.rotation.step()
    assert world.server() == before
    world.now += timedelta(days=5)
    await world.rotation.step()
    after = world.server()
    assert after["tls.crt"] != before["tls.crt"] and after["ca.crt"] == before["ca.crt"]
    writes = world.store.writes
    await world.rotation.step()
    assert world.store.writes == writes


async def test_a_controllers_secret_that_was_deleted_or_broken_is_made_again(world: World) -> None:
    del world.store.objects[f"/api/v1/namespaces/{NS}/secrets/edge-gateway"]
    await world.rotation.step()
    good = world.server()
    world.store.set(secret_manifest(NS, "edge-gateway", {"tls.crt": "x", "tls.key": "y"}))
    await world.rotation.step()
    assert read_pair(world.server()["tls.crt"], world.server()["tls.key"])
    assert world.server()["ca.crt"] == good["ca.crt"]


async def test_who_does_not_lead_reads_and_writes_nothing(world: World) -> None:
    world.leading = False
    writes = world.store.writes
    world.now += timedelta(days=4 * 365)
    world.rotation.client_secret(NS, "edge-a")
    await world.rotation.step()
    assert world.store.writes == writes
    # What the leader has written is followed.
    world.leading = True
    leader = world.controller()
    await leader.load()
    await leader.step()
    world.leading = False
    await world.rotation.step()
    assert world.rotation.bundle == leader.bundle
    assert len(read_bundle(leader.bundle)) == 2


async def test_two_leaders_for_a_moment_write_once(world: World) -> None:
    other = world.controller()
    await other.load()
    world.now += timedelta(days=5 * 365 * 2 // 3 + 1)
    results = await asyncio.gather(world.rotation.step(), other.step(), return_exceptions=True)
    assert any(isinstance(one, ApiError) and one.conflict for one in results) or results == [
        None,
        None,
    ]
    for rotation in (world.rotation, other):
        await rotation.step()
    assert world.rotation.bundle == other.bundle == world.server()["ca.crt"]
    assert len(read_bundle(other.bundle)) == 2
