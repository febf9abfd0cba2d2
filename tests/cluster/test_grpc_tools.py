"""What people call and load services of gRPC with: grpcurl (reflection, every kind of call) and ghz, through the proxy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from cluster.grpc_site import NAME, GrpcSite, Identity
from cluster.tools.missing import built
from cluster.tools.versions import GRPC_HOME
from wire.harness.go_programs import go_server

SERVICE = "grpc.testing.TestService"
CALLS = 4000
WAYS = ("plain", "tls")
UNSENT = ("the connection is draining", "transport is closing")
MOST_UNSENT = 3  # of CALLS, on some 13 connections; one in ten runs has one


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return Identity(tmp_path_factory.mktemp("grpc"))


@pytest.fixture(scope="module")
def site(identity: Identity) -> Iterator[GrpcSite]:
    with ExitStack() as stack:
        shown = (f"-cert={identity.certificate}", f"-key={identity.key}")
        plain = stack.enter_context(go_server("grpc-serves"))
        tls = stack.enter_context(go_server("grpc-serves", *shown))
        yield stack.enter_context(GrpcSite(identity, plain.port, tls.port, 300, 2))


def grpcurl(site: GrpcSite, identity: Identity, way: str, *words: str) -> str:
    """What it prints."""
    options, port = ["-plaintext"], site.plain
    if way == "tls":
        options, port = ["-cacert", str(identity.trusted), "-authority", NAME], site.tls
    command = [built(GRPC_HOME / "grpcurl"), *options]
    *more, verb = words
    done = subprocess.run(
        [*command, *more, f"127.0.0.1:{port}", *verb.split()],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def messages(said: str) -> list[Any]:
    """JSON documents one after the other."""
    found, decoder = [], json.JSONDecoder()
    while said := said.lstrip():
        document, end = decoder.raw_decode(said)
        found.append(document)
        said = said[end:]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_grpcurl(site: GrpcSite, identity: Identity, way: str) -> None:
    def call(method: str, *asked: Any) -> list[Any]:
        data = "".join(map(json.dumps, asked))
        return messages(grpcurl(site, identity, way, "-d", data, f"{SERVICE}/{method}"))

    assert SERVICE in grpcurl(site, identity, way, "list").splitlines()
    assert "rpc UnaryCall" in grpcurl(site, identity, way, f"describe {SERVICE}")
    assert call("EmptyCall") == [{}]
    (answer,) = call("UnaryCall", {"responseSize": 1000})
    assert len(answer["payload"]["body"]) > 1000
    sizes = [{"size": size} for size in (1, 100, 70_000)]
    assert len(call("StreamingOutputCall", {"responseParameters": sizes})) == 3
    parts = [{"payload": {"body": "aGVsbG8="}}] * 5
    assert call("StreamingInputCall", *parts) == [{"aggregatedPayloadSize": 25}]
    both = [{"responseParameters": [{"size": size}]} for size in (1, 2, 3)]
    assert len(call("FullDuplexCall", *both)) == 3
    refused = {"responseStatus": {"code": 7, "message": "100% no"}}
    said = grpcurl(site, identity, way, "-d", json.dumps(refused), f"{SERVICE}/UnaryCall")
    assert "PermissionDenied" in said and "100% no" in said
    assert "Unimplemented" in grpcurl(site, identity, way, f"{SERVICE}/UnimplementedCall")


@pytest.mark.parametrize("way", WAYS)
def test_ghz(site: GrpcSite, identity: Identity, way: str) -> None:
    """Many calls on few connections, which come to their end after 300 of them: each that was sent has its answer."""
    options, port = ["--insecure"], site.plain
    if way == "tls":
        options, port = ["--cacert", str(identity.trusted), "--cname", NAME], site.tls
    command = [built(GRPC_HOME / "ghz"), *options, "--call", f"{SERVICE}.UnaryCall"]
    command += ["--data", '{"responseSize": 2000}', "--total", str(CALLS), "--format", "json"]
    command += ["--concurrency", "20", "--connections", "4", "--timeout", "60s"]
    before = site.metric("edgefast_requests_total")
    done = subprocess.run(
        [*command, f"127.0.0.1:{port}"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    # One worker of it may make a call more than it was told.
    assert report["count"] >= CALLS
    # grpc-go gives calls to a connection that has read GOAWAY, drops them unsent and tries again once only: a call that this befalls
    # twice has failed without a frame of it on the wire.
    errors = report["errorDistribution"] or {}
    assert errors.keys() <= {f"rpc error: code = Unavailable desc = {why}" for why in UNSENT}
    assert sum(errors.values()) <= MOST_UNSENT
    served = report["statusCodeDistribution"]["OK"]
    assert served + sum(errors.values()) == report["count"]
    site.wait_until(
        lambda: site.metric("edgefast_requests_total") - before == served,
        f"{served} requests at the proxy",
    )
