"""Where requests go: Backend objects, unix sockets, IPv6, names, and TLS to backends with CA, name and client certificate."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from origin.answers import answer_target
from origin.recording import RecordingOrigin
from origin.scripted import ScriptedOrigin, serving
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.site import Site, shared


def to_backend(backend: make.Object, *more: make.Object) -> list[make.Object]:
    """Everything to one Backend."""
    ref = make.backend_ref("target", kind="Backend")
    return [make.route("all", [make.rule(ref)]), backend, *more]


def test_backend_by_address() -> None:
    """`ip`, IPv4."""
    with RecordingOrigin() as origin:
        target = make.backend("target", [{"ip": {"address": "127.0.0.1", "port": origin.port}}])
        with shared(to_backend(target)) as site:
            assert site.ask("GET", "/x").body == b"/x"


def test_backend_by_name() -> None:
    """`fqdn`, resolved by the system."""
    with RecordingOrigin() as origin:
        named = [{"fqdn": {"hostname": "localhost", "port": origin.port}}]
        with shared(to_backend(make.backend("target", named))) as site:
            site.wait_until(lambda: site.ask("GET", "/x").status == 200, "the name's address")
            assert all(site.ask("GET", "/x").body == b"/x" for _ in range(20))


def test_clients_over_ipv6() -> None:
    """`--bind ::1` beside 127.0.0.1: the client's IPv6 address is told."""
    with RecordingOrigin() as origin:
        objects = [make.route("all", [make.rule("origin")])]
        objects += make.service("origin", [("127.0.0.1", origin.port)])
        with Site(objects, bind=("127.0.0.1", "::1")) as site:
            origin.take()
            with site.client(host="::1") as client:
                assert client.request("GET", "/", "[::1]").status == 200
            origin.turn()
            (message,) = origin.take().messages
            assert message.value(b"x-forwarded-for") == b"::1"
            assert message.value(b"x-edge-internal") == b"true"
            assert message.value(b"host") == b"[::1]"
            assert site.ask().status == 200


# --- TLS to backends --------------------------------------------------------------------------------------------------


class TlsOrigin:
    """An origin that notes the names of its handshakes."""

    def __init__(self, authority: Authority, names: list[str], *, ask_client: bool = False) -> None:
        self.names: list[str | None] = []
        self.context = authority.server_context(authority.issue(names), ask_client=ask_client)
        self.context.sni_callback = self._note
        self.origin = ScriptedOrigin(serving(answer_target), tls=self.context)

    def _note(self, sock: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        self.names.append(name)


@pytest.fixture
def tls_origin(authority: Authority) -> Iterator[TlsOrigin]:
    made = TlsOrigin(authority, ["backend.test"])
    with made.origin:
        yield made


def authority_map(authority: Authority) -> make.Object:
    """The CA bundle as a user would write it."""
    return make.config_map("ca", {"ca.crt": authority.pem.decode()})


CA = {"group": "", "kind": "ConfigMap", "name": "ca"}


def tls_backend(origin: ScriptedOrigin, hostname: str, **tls: object) -> make.Object:
    """A Backend that speaks TLS."""
    endpoints = [{"ip": {"address": "127.0.0.1", "port": origin.port}}]
    return make.backend(
        "target", endpoints, {"hostname": hostname, "caCertificateRefs": [CA], **tls}
    )


def test_tls_to_a_backend(tls_origin: TlsOrigin, authority: Authority) -> None:
    """The name goes out as SNI and is checked; connections are kept."""
    objects = to_backend(tls_backend(tls_origin.origin, "backend.test"), authority_map(authority))
    with shared(objects) as site:
        for number in range(10):
            answer = site.ask("POST", f"/{number}", body=b"x" * 50_000)
            assert answer.status == 200 and answer.body == b"/%d" % number
    assert set(tls_origin.names) == {"backend.test"}
    assert len(tls_origin.origin.connections) <= 2


def test_an_authority_of_the_whole_cluster(tls_origin: TlsOrigin, authority: Authority) -> None:
    """A ClusterTrustBundle of a file is trusted like a ConfigMap, and no more."""
    name = "example.com:internal:v1"
    ref = {"group": "certificates.k8s.io", "kind": "ClusterTrustBundle", "name": name}
    target = tls_backend(tls_origin.origin, "backend.test", caCertificateRefs=[ref])
    for trusted, statuses in ((authority, {200}), (Authority("stranger"), {502, 503})):
        bundle: make.Object = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "ClusterTrustBundle",
            "metadata": {"name": name},
            "spec": {"trustBundle": trusted.pem.decode()},
        }
        with shared(to_backend(target, bundle)) as site:
            assert site.ask("POST", body=b"secret").status in statuses


def test_client_certificate_for_a_backend(authority: Authority) -> None:
    """clientCertificateRef is shown to the backend that demands one."""
    made = TlsOrigin(authority, ["backend.test"], ask_client=True)
    pair = authority.issue(["proxy.test"], client=True)
    secret = make.tls_secret("own", pair.certificate, pair.key)
    with made.origin:
        target = tls_backend(made.origin, "backend.test", clientCertificateRef={"name": "own"})
        with shared(to_backend(target, authority_map(authority), secret)) as site:
            assert site.ask("GET", "/with").body == b"/with"
        with shared(
            to_backend(tls_backend(made.origin, "backend.test"), authority_map(authority))
        ) as site:
            assert site.ask("GET", "/without").status in (502, 503)


def policy(service: str, hostname: str, sans: list[make.Object] | None = None) -> make.Object:
    """A BackendTLSPolicy for a Service."""
    validation: make.Object = {"hostname": hostname, "caCertificateRefs": [CA]}
    if sans:
        validation["subjectAltNames"] = sans
    return {
        "apiVersion": f"{make.GROUP}/v1", "kind": "BackendTLSPolicy",
        "metadata": {"name": "tls", "namespace": "default"},
        "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": service}],
                 "validation": validation},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "sans", "works"),
    [
        (["backend.test"], None, True),
        (["other.test"], None, False),
        (["other.test"], [{"type": "Hostname", "hostname": "other.test"}], True),
        (["backend.test"], [{"type": "Hostname", "hostname": "other.test"}], False),
        (["spiffe://a/b"], [{"type": "URI", "uri": "spiffe://a/b"}], True),
        (["spiffe://a/c"], [{"type": "URI", "uri": "spiffe://a/b"}], False),
    ],
)
def test_backend_tls_policy(
    names: list[str], sans: list[make.Object] | None, works: bool, authority: Authority
) -> None:
    """hostname is the SNI and the name checked, unless subjectAltNames say what to check."""
    made = TlsOrigin(authority, names)
    with made.origin:
        objects = [
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", made.origin.port)]),
            policy("origin", "backend.test", sans),
            authority_map(authority),
        ]
        with shared(objects) as site:
            assert (site.ask().status == 200) == works
        assert set(made.names) == {"backend.test"}


def test_backend_certificate_renewed(authority: Authority) -> None:
    """The CA bundle is exchanged: new connections follow it."""
    other = Authority("next")
    made = TlsOrigin(other, ["backend.test"])
    with made.origin:
        target = tls_backend(made.origin, "backend.test")
        with shared(to_backend(target, authority_map(authority))) as site:
            assert site.ask().status in (502, 503)
            site.use(to_backend(target, authority_map(other)))
            assert site.ask("GET", "/x").body == b"/x"
