"""Cases of the v1.7.0 suite for TLSRoute, by name, with real handshakes through a controller's proxies."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.controller_parts import Origin
from cluster.newer import grow_older
from cluster.world.apiserver import ApiServer
from tests.support.manifest import manifest
from wire.harness.certificates import Authority
from wire.harness.ports import free_port

EXACT, WILD, FRONT = "abc.example.com", "*.example.com", "tls.example.com"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def bench(newest: ApiServer, authority: Authority) -> Iterator[Bench]:
    names = [EXACT, FRONT]
    origins = [Origin(name, authority.issue(names)) for name in ("one", "two")]
    shown = authority.issue([FRONT])
    with Bench(newest) as made:
        made.add_class()
        for origin, name in zip(origins, ("v1", "v2"), strict=True):
            made.add_backend(name, origin.port)
        made.add_backend("inside", origins[0].port)
        secret = {"tls.crt": shown.certificate.decode(), "tls.key": shown.key.decode()}
        made.api.apply(
            manifest(f"Secret {made.namespace}/shown", type="kubernetes.io/tls", stringData=secret)
        )
        passed = {"mode": "Passthrough"}
        ended = {"mode": "Terminate", "certificateRefs": [{"name": "shown"}]}
        listeners = []
        for name, hostname, tls in (
            ("exact", EXACT, passed),
            ("wild", WILD, passed),
            ("ended", FRONT, ended),
        ):
            made.ports[name] = free_port()
            listeners.append(
                {
                    "name": name,
                    "protocol": "TLS",
                    "port": made.ports[name],
                    "hostname": hostname,
                    "tls": tls,
                }
            )
        spec = {"gatewayClassName": made.gateway_class, "listeners": listeners}
        made.apply("Gateway", "gw", spec)
        fleet = made.fleet()
        made.give_address(fleet)
        made.start_proxy(fleet)
        made.set_pods(fleet, f"{fleet}-0")
        yield made
    for origin in origins:
        origin.close()


def ask(bench: Bench, authority: Authority, listener: str, name: str) -> str:
    """Ask who is behind a listener for a server name; why not, when nobody answers."""
    context = ssl.create_default_context(cadata=authority.pem.decode())
    try:
        with (
            socket.create_connection(("127.0.0.1", bench.ports[listener]), 10) as bare,
            context.wrap_socket(bare, server_hostname=name) as inside,
        ):
            connection = http.client.HTTPConnection(name)
            connection.sock = inside
            connection.request("GET", "/")
            return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"


def attach(bench: Bench, name: str, listener: str, hostname: str, backend: str) -> Any:
    spec = {
        "parentRefs": [{"name": "gw", "sectionName": listener}],
        "hostnames": [hostname],
        "rules": [{"backendRefs": [{"name": backend, "port": 80}]}],
    }
    return bench.apply("TLSRoute", name, spec)


def test_multiple_routes_attachment_same_hostname_intersection(
    bench: Bench, authority: Authority
) -> None:
    """TLSRouteMultipleRoutesAttachmentSameHostnameIntersection: the names that routes have decide, not their age."""
    older = [
        attach(bench, "older-exact", "exact", WILD, "v1"),
        attach(bench, "older-wild", "wild", "*.com", "v1"),
    ]
    grow_older(*older)
    attach(bench, "newer-exact", "exact", EXACT, "v2")
    attach(bench, "newer-wild", "wild", WILD, "v2")
    for listener in ("exact", "wild"):
        wait_for(
            f"the younger route has {listener}",
            lambda listener=listener: ask(bench, authority, listener, EXACT) == "two",
        )
        for name in ("older", "newer"):
            bench.expect_condition("TLSRoute", f"{name}-{listener}", "Accepted", "True")


def test_backend_tls_policy_terminate(bench: Bench, authority: Authority) -> None:
    """BackendTLSPolicyTLSRouteTerminate: what was decrypted goes on under the policy's name and authority."""
    bench.apply("ConfigMap", "ca", None, "v1", data={"ca.crt": authority.pem.decode()})
    refs = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    spec = {
        "targetRefs": [{"group": "", "kind": "Service", "name": "inside"}],
        "validation": {"hostname": EXACT, "caCertificateRefs": refs},
    }
    bench.apply("BackendTLSPolicy", "inside", spec)
    attach(bench, "ended", "ended", FRONT, "inside")
    wait_for("it is served", lambda: ask(bench, authority, "ended", FRONT) == "one")
    bench.expect_condition("BackendTLSPolicy", "inside", "Accepted", "True")
    bench.expect_condition("BackendTLSPolicy", "inside", "ResolvedRefs", "True")
