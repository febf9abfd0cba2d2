"""`edgefast proxy` as a process and the controller's own server: certificates in one mode, tokens in the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgefast.table import Shards
from edgefast.xds.batch import Mirror
from proxy.command import Process, Start, mark_of
from proxy.living import until
from proxy.shards import make_fleet
from tests.controller.xds_server.jwt import Reviewer, make_token
from tests.controller.xds_server.loopback import FLEET, POD, Loopback, client_pair
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def table(port: int, mark: str) -> Shards:
    shards = make_fleet(port, mark=mark)
    return Shards(shards.resources, Mirror(shards).version)


async def follow(loopback: Loopback, run: Process, port: int) -> None:
    """Tables go through, and are acknowledged when they are served."""
    for mark in ("v1", "v2"):
        wanted = table(port, mark)
        loopback.fleets.publish(FLEET, wanted)

        def acked(version: str = wanted.version) -> bool:
            assert run.process.poll() is None, run.said
            ack = loopback.fleets.acks(FLEET).get(POD)
            return ack is not None and ack.version == version and not ack.refused

        await until(acked, f"an answer to {mark}")
        assert await asyncio.to_thread(mark_of, port) == mark


def begin(start: Start, address: object, folder: Path, *credentials: str) -> Process:
    given = ["--xds", str(address), "--server-name", "edge-gateway", "--node", POD]
    given += ["--ca", str(folder / "ca.crt"), "--workers", "2", *credentials]
    return start(*given, serve="proxy")


async def test_a_fleet_with_certificates(start: Start, tmp_path: Path) -> None:
    port = free_port()

    async with Loopback(tmp_path / "keys") as loopback:
        loopback.fleets.publish(FLEET, table(port, "v0"))
        pair = client_pair(loopback.ring)
        (tmp_path / "ca.crt").write_text(loopback.ring.bundle)
        (tmp_path / "tls.crt").write_text(pair.certificate_pem)
        (tmp_path / "tls.key").write_text(pair.key_pem)
        shown = ("--cert", str(tmp_path / "tls.crt"), "--key", str(tmp_path / "tls.key"))
        run = begin(start, loopback.certificates, tmp_path, *shown)
        await follow(loopback, run, port)
    # The controller has ended the stream in order; its tables stay.
    await asyncio.to_thread(run.until, lambda: "the table stays" in run.said, "a word on it")
    assert await asyncio.to_thread(mark_of, port) == "v2"
    assert (await asyncio.to_thread(run.get, run.ready, "/ready"))[0] == 200


async def test_a_fleet_with_tokens_and_one_that_is_replaced(start: Start, tmp_path: Path) -> None:
    port = free_port()
    reviewer = Reviewer()

    async with Loopback(tmp_path / "keys", reviewer) as loopback:
        loopback.fleets.publish(FLEET, table(port, "v0"))
        (tmp_path / "ca.crt").write_text(loopback.ring.bundle)
        file = tmp_path / "token"
        # At first it is none that the API server knows.
        file.write_text(make_token(jti="one"))
        run = begin(start, loopback.tokens, tmp_path, "--token", str(file))
        await asyncio.to_thread(
            run.until, lambda: "UNAUTHENTICATED" in run.said, "a word on the refusal"
        )
        assert (await asyncio.to_thread(run.get, run.ready, "/ready"))[0] == 503
        file.write_text(reviewer.accept(make_token(jti="two")) + "\n")
        await follow(loopback, run, port)
        for secret in ("one", "two"):
            assert make_token(jti=secret).split(".")[1][:40] not in run.said
