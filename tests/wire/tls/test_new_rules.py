"""A port that begins to ask for certificates: connections made before that go on with what is under way, and no further."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.http2.client import H2Client

NAME = "a.test"


class Site(Gateway):
    """Two ports; one of them can ask for certificates."""

    def __init__(self, origin: int) -> None:
        self.authority = Authority()
        self.pair = self.authority.issue([NAME])
        self.port, self.other = free_port(), free_port()
        self._origin = origin
        super().__init__(self.build(asks=False))

    def build(self, *, asks: bool) -> list[make.Object]:
        ca = {"group": "", "kind": "ConfigMap", "name": "clients"}
        validation = {"caCertificateRefs": [ca], "mode": "AllowValidOnly"}
        rule = {"tls": {"frontend": {"default": {"validation": validation}}}} if asks else {}
        return [
            make.gateway("web", [make.listener(self.port, "a", "", ["pair"])], **rule),
            make.gateway("other", [make.listener(self.other, "a", "", ["pair"])]),
            make.config_map("clients", {"ca.crt": self.authority.pem.decode()}),
            make.tls_secret("pair", self.pair.certificate, self.pair.key),
            *(make.route(name, [make.rule("origin")], parent=name) for name in ("web", "other")),
            *make.service("origin", [("127.0.0.1", self._origin)]),
        ]

    def h1(self, port: int) -> Client:
        tls = self.authority.client_context(None, alpn=("http/1.1",))
        return Client(("127.0.0.1", port), tls=tls, sni=NAME)

    def h2(self, port: int) -> H2Client:
        return H2Client(port, tls=self.authority.client_context(None, alpn=("h2",)), sni=NAME)


@pytest.fixture
def site() -> Iterator[Site]:
    with RecordingOrigin() as origin, Site(origin.port) as running:
        yield running


def test_connections_from_before(site: Site) -> None:
    with (
        site.h1(site.port) as old,
        site.h2(site.port) as new,
        site.h1(site.other) as untouched,
        site.h2(site.other) as untouched_too,
    ):
        for one in (old, untouched):
            assert one.request("GET", "/", NAME).status == 200
        for two in (new, untouched_too):
            assert two.get(authority=NAME).status == 200
        old.expect("POST")
        old.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\n")
        under_way = new.ask(method="POST", authority=NAME, end=False)
        site.apply(site.build(asks=True))
        new.read(lambda: bool(new.goaways))
        new.body(under_way, b"body")
        assert new.finish(under_way).status == 200
        new.read_to_end()
        assert {code for code, _ in new.goaways} == {0}
        old.send(b"body")
        answer = old.read_response()
        assert (answer.status, answer.value("connection")) == (200, "close")
        old.read_to_end()
        assert old.ended == "eof"
        assert untouched.request("GET", "/", NAME).status == 200
        assert untouched_too.get(authority=NAME).status == 200
        assert not untouched_too.goaways
