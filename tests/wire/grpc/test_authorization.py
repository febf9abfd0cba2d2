"""SecurityPolicies and the standard's filter before a real authorisation service of gRPC, in clear text and in TLS; and one that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from core.policy.checkmessages import headers_of
from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.grpc.authorization import AuthorizationServer
from wire.grpc.backend import CEILING, GrpcBackend, refused
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.site import Site

TESTS = Path(__file__).parents[2]
INSIDE = "auth.inside.test"


def answer(message: Message) -> bytes:
    return response(b"behind", head=message.method == b"HEAD")


def policy(name: str, service: str, kind: str = "HTTPRoute", **more: Any) -> make.Object:
    """A route's policy that asks a service."""
    target = {"group": "gateway.networking.k8s.io", "kind": kind, "name": name}
    asked = {"grpc": {"backendRef": {"name": service, "port": 80}}, "timeout": "1s", **more}
    return {
        "apiVersion": "gateway.edge.io/v1alpha1",
        "kind": "SecurityPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"targetRefs": [target], "extAuth": asked},
    }


def filtered(service: str) -> make.Object:
    """The standard's filter."""
    asked = {"protocol": "GRPC", "backendRef": {"name": service, "port": 80}, "grpc": {}}
    return {"type": "ExternalAuth", "externalAuth": asked}


class World:
    """All that runs."""

    def __init__(self, site: Site, origin: RecordingOrigin, server: AuthorizationServer) -> None:
        self.site, self.origin, self.server = site, origin, server
        self.mortal: subprocess.Popen[bytes]
        self.mortal_port = 0

    def start_mortal(self) -> None:
        """The service that is killed, and comes back on its port."""
        command = [sys.executable, "-m", "wire.grpc.authorization", str(self.mortal_port)]
        self.mortal = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(TESTS)}
        )
        assert self.mortal.stdout is not None
        with self.mortal.stdout as told:
            self.mortal_port = int(told.readline())

    def ask(self, host: str, token: str, *, method: str = "GET", body: bytes = b"") -> Any:
        with Client(("127.0.0.1", self.site.port)) as client:
            headers = [("authorization", f"Bearer {token}"), ("x-user", "evil")]
            return client.request(method, "/a?b", host=host, headers=headers, body=body)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    authority = Authority()
    with (
        RecordingOrigin(answer) as origin,
        AuthorizationServer() as plain,
        AuthorizationServer(authority.issue([INSIDE])) as inside,
        GrpcBackend() as calls,
    ):
        made = World.__new__(World)
        made.mortal_port = 0
        made.start_mortal()
        try:
            hosts = ("plain", "tls", "mortal", "open")
            objects = [
                *(make.route(one, [make.rule("origin")], [f"{one}.test"]) for one in hosts),
                make.route(
                    "filter", [make.rule("origin", filters=[filtered("plain")])], ["filter.test"]
                ),
                make.grpc_route("calls", [make.rule("calls")], ["calls.test"]),
                policy("plain", "plain", bodyToExtAuth={"maxRequestBytes": 10}),
                policy("tls", "tls"),
                policy("mortal", "mortal", statusOnError=503),
                policy("open", "mortal", failOpen=True),
                policy("calls", "plain", "GRPCRoute"),
                *make.service("origin", [("127.0.0.1", origin.port)]),
                *make.service("plain", [("127.0.0.1", plain.port)], 80, "kubernetes.io/h2c"),
                *make.service("tls", [("127.0.0.1", inside.port)], 80, "https"),
                *make.service("mortal", [("127.0.0.1", made.mortal_port)]),
                *make.service("calls", [("127.0.0.1", calls.port)]),
                make.tls_policy("tls", INSIDE),
                make.config_map("ca", {"ca.crt": authority.pem.decode()}),
            ]
            with Site(objects) as site:
                made.site, made.origin, made.server = site, origin, plain
                yield made
        finally:
            made.mortal.kill()
            made.mortal.wait()


@pytest.mark.parametrize("host", ["plain", "tls", "mortal", "open", "filter"])
def test_who_is_known_enters_and_nobody_else(world: World, host: str) -> None:
    world.origin.take()
    got = world.ask(f"{host}.test", "good-me")
    assert (got.status, got.body, got.value("x-judged")) == (200, b"behind", "yes")
    (message,) = world.origin.take().messages
    assert message.values(b"x-user") == [b"me"] and message.values(b"authorization") == []
    for method in ("GET", "POST", "HEAD", "DELETE"):
        got = world.ask(f"{host}.test", "bad", method=method)
        assert (got.status, got.value("www-authenticate")) == (401, "Bearer")
        assert got.body == (b"" if method == "HEAD" else b"who are you?")
    world.origin.turn()
    assert world.origin.take().messages == []


def test_what_a_real_server_reads(world: World) -> None:
    world.server.asked.clear()
    assert world.ask("plain.test", "good-me", method="POST", body=b"12345").status == 200
    (asked,) = world.server.asked
    http = asked.attributes.request.http
    assert (http.method, http.host, http.path, http.body, http.size) == (
        *("POST", "plain.test", "/a?b", "12345", 5),
    )
    assert headers_of(asked)["x-user"] == "evil"
    assert asked.attributes.source.address.socket_address.address == "127.0.0.1"
    assert world.ask("plain.test", "good-me", method="POST", body=b"x" * 11).status == 413
    assert len(world.server.asked) == 1


def test_a_call_is_judged(world: World) -> None:
    options = [("grpc.default_authority", "calls.test"), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{world.site.port}", options) as channel:
        echo = channel.unary_unary("/test.Calls/Echo")
        good = [("authorization", "Bearer good-me")]
        assert echo(b"hello", timeout=CEILING, metadata=good) == b"hello"
        error = refused(lambda: echo(b"hello", timeout=CEILING))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert error.details() == "who are you?"
        error = refused(
            lambda: echo(b"x", timeout=CEILING, metadata=[("authorization", "Bearer fail")])
        )
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
