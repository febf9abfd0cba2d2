"""Certificates that are turned away or end a stream, over real TLS."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from controller.certs.authority import sign
from controller.certs.authority_set import Overlap, advance, announce, make_authority_set
from controller.certs.issue import issue_server
from controller.certs.pair import Pair
from controller.xds_server.refusal import Cause
from controller.xds_server.reports import REPORT
from edgefast.api.config.edgegateway import FleetCertificates, FleetRevocation
from edgefast.xds.messages import METHOD
from tests.controller.xds_server.loopback import (
    FLEET,
    POD,
    SYSTEM,
    Loopback,
    client_pair,
    ended,
    open_channel,
    shards_of,
    write_keys,
)
from tests.controller.xds_server.refusing import (
    OTHER,
    OTHER_POD,
    STREAM,
    TABLE,
    UNARY,
    check,
    opening,
    serving,
)

pytestmark = pytest.mark.wire


@pytest.fixture
def loopback(tmp_path: Path) -> contextlib.AbstractAsyncContextManager[Loopback]:
    return serving(tmp_path)


def signed(loopback: Loopback, *names: x509.GeneralName) -> Pair:
    """Return a certificate of the right authority with these alternative names."""
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    return sign(loopback.ring.current, "x", names, now, hour, server=False)


URI = x509.UniformResourceIdentifier
GOOD = f"edge://{SYSTEM}/fleet/{FLEET}"


@pytest.mark.parametrize("what", ["none", "another authority", "expired"])
async def test_a_certificate_that_tls_refuses(loopback: Loopback, what: str) -> None:
    stranger = make_authority_set("edge-gateway", datetime.now(UTC))
    pairs = {
        "none": None,
        "another authority": client_pair(stranger),
        "expired": client_pair(loopback.ring, life=timedelta(minutes=-1)),
    }
    async with loopback.channel(pairs[what]) as channel:
        said = await ended(channel.stream_stream(METHOD)())
    assert said.code == "UNAVAILABLE"
    assert loopback.server.counts.opened == 0


@pytest.mark.parametrize(
    "names",
    [
        (x509.DNSName("edge-gateway"),),
        (x509.DNSName(GOOD),),  # the text, but not as a URI
        (URI(GOOD), URI(f"edge://{SYSTEM}/fleet/{OTHER}")),  # two identities are none
        (URI(f"edge://another/fleet/{FLEET}"),),  # of another controller
        (URI(f"edge://{SYSTEM}/controller"),),
        (URI(f"edge://{SYSTEM}/fleet/{SYSTEM}"),),
        (URI(GOOD + "/"),),
        (URI(GOOD + "?x"),),
        (URI(GOOD.replace("edge-default", "../x")),),
        (URI(GOOD.upper()),),
        (URI(f"spiffe://{SYSTEM}/fleet/{FLEET}"),),
    ],
)
async def test_a_certificate_that_names_no_fleet(
    loopback: Loopback, caplog: Any, names: tuple[x509.GeneralName, ...]
) -> None:
    async with loopback.channel(signed(loopback, *names)) as channel:
        said = await ended(channel.stream_stream(METHOD)())
    check(loopback, said, "PERMISSION_DENIED", "identity", caplog)


@pytest.mark.parametrize(
    "fleet, node, cause",
    [
        (f"{SYSTEM}/edge-gone-1234abcd", "edge-gone-1234abcd-5d9c7-abcde", "unknown_fleet"),
        (f"elsewhere/{FLEET.split('/')[1]}", POD, "unknown_fleet"),
        (FLEET, OTHER_POD, "node"),
        (OTHER, POD, "node"),
        (
            FLEET,
            POD + "\nrefused nobody",
            "node",
        ),  # no pod's name: it would go into logs and statuses
        (FLEET, POD + "-", "node"),
        (FLEET, POD + "-" + "x" * 250, "message"),
    ],
)
async def test_a_certificate_of_another_fleet(
    loopback: Loopback, caplog: Any, fleet: str, node: str, cause: Cause
) -> None:
    async with loopback.channel(client_pair(loopback.ring, fleet)) as channel:
        messages = () if cause == "unknown_fleet" else (opening(node),)
        said = await ended(channel.stream_stream(METHOD)(), *messages)
    code = "INVALID_ARGUMENT" if cause == "message" else "PERMISSION_DENIED"
    check(loopback, said, code, cause, caplog)
    assert not [one for one in caplog.messages if "\n" in one]


@pytest.mark.parametrize("method", [STREAM, UNARY, REPORT, "/"])
async def test_a_good_certificate_and_another_method(
    loopback: Loopback, caplog: Any, method: str
) -> None:
    async with loopback.channel(client_pair(loopback.ring)) as channel:
        said = await ended(channel.stream_stream(method)())
    check(loopback, said, "UNIMPLEMENTED", "method", caplog)


async def test_a_stream_ends_with_its_certificate(loopback: Loopback, caplog: Any) -> None:
    async with loopback.proxy(client_pair(loopback.ring, life=timedelta(seconds=3))) as proxy:
        await proxy.take()
        said = await proxy.end()
    check(loopback, said, "UNAUTHENTICATED", "expired", caplog)
    assert not loopback.fleets.acks(FLEET)[POD].connected


async def test_a_certificate_that_the_configuration_revokes(
    loopback: Loopback, caplog: Any
) -> None:
    """Its open stream ends, and no other opens; other fleets and later certificates are not affected."""
    stolen, now = client_pair(loopback.ring), datetime.now(UTC)
    async with loopback.proxy(stolen) as proxy, loopback.channel(stolen) as channel:
        await proxy.take()
        name, at = FLEET.split("/")[1], now + timedelta(seconds=1)
        entry = FleetRevocation(fleet=name, issued_before=f"{at:%Y-%m-%dT%H:%M:%SZ}")
        loopback.settings = FleetCertificates(revoked=(entry,))
        await loopback.server.recheck()
        said = await proxy.end()
        check(loopback, said, "UNAUTHENTICATED", "revoked", caplog)
        said = await ended(channel.stream_stream(METHOD)(), opening())
        assert said.code == "UNAUTHENTICATED"
    other = client_pair(loopback.ring, OTHER)
    async with loopback.proxy(other, node=OTHER_POD) as proxy:
        await proxy.take()
    fresh = client_pair(loopback.ring, now=at)
    async with loopback.proxy(fresh) as proxy:
        await proxy.take()


async def test_an_authority_that_is_no_longer_trusted(loopback: Loopback, caplog: Any) -> None:
    """Open streams end, new connections fail, and those of the new authority go on."""
    old, now = loopback.ring, datetime.now(UTC)
    both = announce(old, "edge-gateway", now)
    at_once = Overlap(announced=timedelta(), retiring=timedelta())
    new = advance(both, "edge-gateway", now, at_once)
    alone = advance(new, "edge-gateway", now, at_once)
    assert [len(one.trusted) for one in (both, new, alone)] == [2, 2, 1]
    former = client_pair(old)
    async with loopback.proxy(former) as proxy:
        await proxy.take()
        # The overlap: what both authorities signed is good.
        write_keys(loopback.folder, new)
        loopback.ring = new
        async with loopback.proxy(client_pair(new)) as other:
            await other.take()
            assert other.version == TABLE.version
        write_keys(loopback.folder, alone)
        loopback.ring = alone
        assert loopback.server.keys.refresh()
        await loopback.server.recheck()
        said = await proxy.end()
    assert said.code == "UNAUTHENTICATED" or said.code == "ABORTED"
    async with open_channel(loopback.certificates, alone.bundle, former) as channel:
        said = await ended(channel.stream_stream(METHOD)(), opening())
    assert said.code == "UNAVAILABLE"
    async with loopback.proxy(client_pair(alone)) as proxy:
        await proxy.take()


async def test_a_revoked_authority_ends_an_open_stream(loopback: Loopback, caplog: Any) -> None:
    async with loopback.proxy() as proxy:
        await proxy.take()
        write_keys(loopback.folder, make_authority_set("edge-gateway", datetime.now(UTC)))
        assert loopback.server.keys.refresh()
        # A message of the stream finds it out, whoever else has looked or not.
        loopback.fleets.publish(FLEET, shards_of({"a": "new"}))
        said = await proxy.end()
    check(loopback, said, "UNAUTHENTICATED", "revoked", caplog)
    assert proxy.version == TABLE.version  # nothing more was sent


async def test_the_replicas_port_is_for_replicas_alone(loopback: Loopback, caplog: Any) -> None:
    pair = client_pair(loopback.ring)
    async with loopback.channel(pair, loopback.replicas) as channel:
        said = await ended(channel.stream_stream(REPORT)())
    check(loopback, said, "PERMISSION_DENIED", "identity", caplog)
    now = datetime.now(UTC)
    place = {"name": "edge-gateway", "domain": "cluster.local"}
    own = issue_server(loopback.ring.current, namespace=SYSTEM, now=now, **place)
    async with loopback.channel(own, loopback.replicas) as channel:
        said = await ended(channel.stream_stream(METHOD)())
        assert said.code == "UNIMPLEMENTED"
        said = await ended(channel.stream_stream(REPORT)(), b"\xc1")
        assert said.code == "INVALID_ARGUMENT"
    foreign = issue_server(loopback.ring.current, namespace="other", now=now, **place)
    async with loopback.channel(foreign, loopback.replicas) as channel:
        said = await ended(channel.stream_stream(REPORT)())
        assert said.code == "PERMISSION_DENIED"


@pytest.fixture(autouse=True)
def _has_received(caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="edgefast.controller.push")
