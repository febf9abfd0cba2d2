"""XBackends in files: a name outside, plain and in TLS with an authority, a name and a client certificate. Refused ones: translate/test_goldens (xbackend-*)."""

from __future__ import annotations

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.site import shared
from wire.test_backends import CA, TlsOrigin, authority_map

GROUP = "gateway.networking.x-k8s.io"
REF = {"group": GROUP, "kind": "XBackend", "name": "target"}


def to_name(port: int, *more: make.Object, **spec: object) -> list[make.Object]:
    """Everything to localhost."""
    target: make.Object = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "XBackend",
        "metadata": {"name": "target", "namespace": "default"},
        "spec": {
            "type": "ExternalHostname",
            "port": {"number": port},
            "externalHostname": {"hostname": "localhost"},
            **spec,
        },
    }
    return [make.route("all", [make.rule(REF)]), target, *more]


def validation(hostname: str) -> dict[str, object]:
    return {"hostname": hostname, "caCertificateRefs": [CA]}


def test_a_name() -> None:
    with RecordingOrigin() as origin:
        with shared(to_name(origin.port)) as site:
            site.wait_until(lambda: site.ask("GET", "/x").status == 200, "the name's address")
            assert all(site.ask("GET", "/x").body == b"/x" for _ in range(10))


def test_tls(authority: Authority) -> None:
    """The name of `validation` goes out and is checked, whatever the name is that is resolved."""
    origin = TlsOrigin(authority, ["backend.test"])
    tls = {"mode": "ServerOnly", "validation": validation("backend.test")}
    with origin.origin:
        objects = to_name(origin.origin.port, authority_map(authority), tls=tls)
        with shared(objects) as site:
            site.wait_until(lambda: site.ask("GET", "/x").status == 200, "the name's address")
            assert site.ask("POST", "/y", body=b"x" * 50_000).body == b"/y"
    assert set(origin.names) == {"backend.test"}


def test_a_client_certificate(authority: Authority) -> None:
    """It is shown with mode ClientAndServer; one that is not there closes the rule."""
    origin = TlsOrigin(authority, ["backend.test"], ask_client=True)
    own = authority.issue(["proxy.test"], client=True)
    tls = {
        "mode": "ClientAndServer",
        "clientCertificateRef": {"name": "mine"},
        "validation": validation("backend.test"),
    }
    with origin.origin:
        objects = to_name(origin.origin.port, authority_map(authority), tls=tls)
        with shared(objects) as site:
            assert site.ask("GET", "/x").status == 500
        secret = make.tls_secret("mine", own.certificate, own.key)
        with shared([*objects, secret]) as site:
            site.wait_until(lambda: site.ask("GET", "/x").status == 200, "the name's address")
            assert site.ask("GET", "/x").body == b"/x"
