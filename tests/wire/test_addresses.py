"""Two Gateways on one port at different addresses: what comes to an address meets its Gateway, over HTTP, TLS and TCP."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from contextlib import ExitStack

from cryptography import x509

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

ONE, TWO = "127.0.0.1", "127.0.0.2"


def _gateway(name: str, ports: Sequence[int], addresses: Sequence[str]) -> list[make.Object]:
    away = {"type": "RequestRedirect", "requestRedirect": {"hostname": f"{name}.test"}}
    plain, secure, stream = ports
    listeners = [
        make.listener(plain),
        make.listener(secure, "https", secrets=[name]),
        make.listener(stream, "tcp", protocol="TCP"),
    ]
    return [
        make.gateway(name, listeners, addresses=[{"value": one} for one in addresses]),
        make.route(name, [make.rule(filters=[away])], parent=name),
        make.route(name, [make.rule(name)], parent=name)
        | {"kind": "TCPRoute", "apiVersion": "gateway.networking.k8s.io/v1"},
    ]


def _ask(host: str, ports: Sequence[int], authority: Authority) -> tuple[str | None, str, str]:
    """Return the location of a redirect, the name in the certificate, and the origin behind TCP."""
    with Client((host, ports[0])) as client:
        location = client.request("GET", "/", "a.test").value("location")
    context = authority.client_context()
    context.check_hostname = False
    with Client((host, ports[1]), tls=context, sni=None) as client:
        assert isinstance(client.sock, ssl.SSLSocket)
        shown = x509.load_der_x509_certificate(client.sock.getpeercert(binary_form=True) or b"")
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (name,) = names.get_values_for_type(x509.DNSName)
    with Client((host, ports[2])) as client:
        origin = json.loads(client.request("GET", "/", "a.test").body)["origin"]
    return location, name, origin


def test_gateways_of_one_port_have_an_address_each() -> None:
    authority, ports = Authority(), [free_port() for _ in range(3)]
    with ExitStack() as stack:
        common: list[make.Object] = []
        for name in ("one", "two"):
            pair = authority.issue([f"{name}.test"])
            origin = stack.enter_context(RecordingOrigin(echo(name)))
            common.append(make.tls_secret(name, pair.certificate, pair.key))
            common += make.service(name, [("127.0.0.1", origin.port)])
        one, two = (
            (f"http://{name}.test:{ports[0]}/", f"{name}.test", name) for name in ("one", "two")
        )
        apart = [*common, *_gateway("one", ports, [ONE]), *_gateway("two", ports, [TWO])]
        gateway = stack.enter_context(Gateway(apart, bind=("0.0.0.0",), workers=2))
        for host, told in ((ONE, one), (TWO, two)):
            assert _ask(host, ports, authority) == told
        # The first gets the other's address too, then all of the machine; then it is as before.
        for addresses in ([ONE, TWO], []):
            gateway.apply([*common, *_gateway("one", ports, addresses)])
            for host in (ONE, TWO):
                assert _ask(host, ports, authority) == one
        gateway.apply(apart)
        for host, told in ((ONE, one), (TWO, two)):
            assert _ask(host, ports, authority) == told
