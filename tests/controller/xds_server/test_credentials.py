"""ServerKeys: files that change under a running server, also half; and a server that shows the new ones."""

from __future__ import annotations

import asyncio
import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.certs.authority_set import make_authority_set
from controller.certs.issue import issue_client, issue_server
from controller.certs.pair import Pair, read_bundle
from controller.xds_server.credentials import KeysError, ServerKeys
from tests.controller.xds_server.loopback import (
    FLEET,
    SYSTEM,
    Loopback,
    client_pair,
    open_channel,
    shards_of,
    write_keys,
)

NOW = datetime.now(UTC)
ONE = make_authority_set("edge-gateway", NOW)
TWO = make_authority_set("edge-gateway", NOW)
PLACE = {"namespace": SYSTEM, "name": "edge-gateway", "domain": "cluster.local", "now": NOW}
FLEET_A = {"controller_namespace": SYSTEM, "namespace": SYSTEM, "name": "edge-a", "now": NOW}


@pytest.mark.pure
def test_files_are_read_again_when_they_are_others(tmp_path: Path) -> None:
    write_keys(tmp_path / "k", ONE)
    keys = ServerKeys(tmp_path / "k")
    client = issue_client(ONE.current, **FLEET_A)
    assert keys.number == 1 and keys.trusts(client.certificate)
    assert not keys.refresh()
    write_keys(tmp_path / "k", TWO)
    assert keys.refresh() and keys.number == 2
    assert not keys.trusts(client.certificate)
    assert keys.authorities_pem.decode() == TWO.bundle
    # Written again with the same content: nothing new.
    for name in ("tls.crt", "tls.key", "ca.crt"):
        path = tmp_path / "k" / name
        path.write_bytes(path.read_bytes())
    assert not keys.refresh() and keys.number == 2


@pytest.mark.pure
def test_a_half_written_state_is_not_taken(tmp_path: Path, caplog: Any) -> None:
    folder = tmp_path / "k"
    write_keys(folder, ONE)
    keys = ServerKeys(folder)
    shown = keys.certificate
    fresh = issue_server(ONE.current, **PLACE)
    with caplog.at_level(logging.ERROR, "edgefast.controller.push"):
        (folder / "tls.crt").write_text(fresh.certificate_pem)
        assert not keys.refresh() and keys.certificate == shown
        assert not keys.refresh()
        # It is said once, not at every handshake.
        assert len(caplog.messages) == 1 and "does not belong" in caplog.messages[0]
        (folder / "tls.key").write_text(fresh.key_pem)
        assert keys.refresh() and keys.certificate.decode() == fresh.certificate_pem
        (folder / "ca.crt").unlink()
        assert not keys.refresh() and keys.trusts(fresh.certificate)
    assert not [one for one in caplog.messages if "PRIVATE" in one or "BEGIN" in one]


@pytest.mark.pure
def test_kubelets_swap_of_a_folder(tmp_path: Path) -> None:
    for name, ring in (("..1", ONE), ("..2", TWO)):
        write_keys(tmp_path / name, ring)
    data = tmp_path / "..data"
    data.symlink_to("..1")
    keys = ServerKeys(data)
    fresh = tmp_path / "..data_tmp"
    fresh.symlink_to("..2")
    fresh.rename(data)
    assert keys.refresh() and keys.authorities_pem.decode() == TWO.bundle


@pytest.mark.pure
def test_a_swap_between_two_files_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubelet mounts a Secret: the files are links through `..data`, which is swapped after the first file was read."""
    for name, ring in (("..1", ONE), ("..2", TWO)):
        write_keys(tmp_path / name, ring)
    (tmp_path / "..data").symlink_to("..1")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    read, reads = ServerKeys._read, 0

    def swap_after_the_first(*given: Any) -> bytes:
        nonlocal reads
        data = read(*given)
        reads += 1
        if reads == 1:
            fresh = tmp_path / "..data_tmp"
            fresh.symlink_to("..2")
            fresh.rename(tmp_path / "..data")
        return data

    monkeypatch.setattr(ServerKeys, "_read", swap_after_the_first)
    keys = ServerKeys(tmp_path)
    assert keys.authorities_pem.decode() == ONE.bundle
    assert keys.refresh() and keys.authorities_pem.decode() == TWO.bundle


@pytest.mark.pure
@pytest.mark.parametrize("broken", ["tls.crt", "tls.key", "ca.crt"])
def test_what_cannot_be_used_is_named(tmp_path: Path, broken: str) -> None:
    write_keys(tmp_path, ONE)
    (tmp_path / broken).unlink()
    with pytest.raises(KeysError, match=broken):
        ServerKeys(tmp_path)
    (tmp_path / broken).write_text("")
    with pytest.raises(KeysError, match=broken):
        ServerKeys(tmp_path)
    (tmp_path / broken).write_text("x")
    with pytest.raises(KeysError, match="PEM") as error:
        ServerKeys(tmp_path)
    assert "PRIVATE" not in str(error.value)


@pytest.mark.pure
def test_rsa_keys_of_others_are_served(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    template = issue_server(ONE.current, **PLACE).certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(template.subject)
        .issuer_name(template.issuer)
        .serial_number(1)
        .public_key(key.public_key())
        .not_valid_before(template.not_valid_before_utc)
        .not_valid_after(template.not_valid_after_utc)
    )
    certificate = builder.sign(ONE.current.key, template.signature_hash_algorithm)
    write_keys(tmp_path, ONE, Pair(certificate, key))
    assert ServerKeys(tmp_path).number == 1


@pytest.mark.wire
async def test_every_handshake_shows_the_present_certificate(tmp_path: Path) -> None:
    async with Loopback(tmp_path / "keys") as loopback:
        loopback.fleets.publish(FLEET, shards_of({"a": "1"}))
        async with loopback.proxy() as open_before:
            await open_before.take()
            serials = set()
            for _ in range(3):
                pair = issue_server(loopback.ring.current, **PLACE)
                write_keys(loopback.folder, loopback.ring, pair)
                # Nobody is told: the handshake itself looks.
                serials.add(await _shown(loopback))
                assert pair.certificate.serial_number in serials
            assert len(serials) == 3
            loopback.fleets.publish(FLEET, shards_of({"a": "2"}))
            await open_before.take()  # open streams go on


async def _shown(loopback: Loopback) -> int:
    """Return the serial number of the certificate that the server shows now."""
    context = ssl.create_default_context(cadata=loopback.ring.bundle)
    context.set_alpn_protocols(["h2"])
    pair = client_pair(loopback.ring)
    both = loopback.folder / "client.pem"
    both.write_text(pair.certificate_pem + pair.key_pem)
    context.load_cert_chain(both)
    _, writer = await asyncio.open_connection(
        "127.0.0.1", loopback.certificates.port, ssl=context, server_hostname="edge-gateway"
    )
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(found).serial_number


@pytest.mark.wire
async def test_clients_believe_the_named_controller_alone(tmp_path: Path) -> None:
    """What a proxy checks: the authority and the name."""
    async with Loopback(tmp_path / "keys") as loopback:
        loopback.fleets.publish(FLEET, shards_of({"a": "1"}))
        pair = client_pair(loopback.ring)
        async with open_channel(loopback.certificates, TWO.bundle, pair) as channel:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await channel.channel_ready()
        assert len(read_bundle(loopback.ring.bundle)) == 1
        assert loopback.server.counts.opened == 0
