"""gRPC over TLS: a client that agrees on HTTP/2 by ALPN, and a backend of a BackendTLSPolicy."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from wire.grpc.backend import CEILING, PLAIN, GrpcBackend
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

NAME = "grpc.test"
INSIDE = "inside.test"


@pytest.fixture(scope="module")
def channel() -> Iterator[grpc.Channel]:
    authority, port = Authority(), free_port()
    shown = authority.issue([NAME])
    with (
        GrpcBackend("plain") as plain,
        GrpcBackend("inside", authority.issue([INSIDE])) as inside,
        GrpcBackend("other", authority.issue(["other.test"])) as other,
    ):
        backends = (plain, inside, other)
        objects = [
            make.gateway("web", [make.listener(port, "https", secrets=["pair"])]),
            make.tls_secret("pair", shown.certificate, shown.key),
            make.config_map("ca", {"ca.crt": authority.pem.decode()}),
            make.grpc_route(
                "calls",
                [make.rule(one.name, matches=[make.method(f"test.{one.name}")]) for one in backends],
                [NAME],
            ),
            *(make.tls_policy(one.name, INSIDE) for one in (inside, other)),
            *(made for one in backends
              for made in make.service(one.name, [("127.0.0.1", one.port)])),
        ]  # fmt: skip
        trusted = grpc.ssl_channel_credentials(authority.pem)
        named = [*PLAIN, ("grpc.ssl_target_name_override", NAME), ("grpc.default_authority", NAME)]
        with (
            Gateway(objects),
            grpc.secure_channel(f"127.0.0.1:{port}", trusted, named) as opened,
        ):
            yield opened


@pytest.mark.parametrize("backend", ["plain", "inside"])
def test_calls(channel: grpc.Channel, backend: str) -> None:
    answer, call = channel.unary_unary(f"/test.{backend}/Echo").with_call(b"hello", timeout=CEILING)
    assert answer == b"hello"
    assert dict(call.initial_metadata())["backend"] == backend
    assert dict(call.trailing_metadata())["behind"] == backend
    large = bytes(1 << 20)
    answers = channel.stream_stream(f"/test.{backend}/Chat")(iter([large]), timeout=CEILING)
    assert [*answers] == [backend.encode() + b": " + large]
