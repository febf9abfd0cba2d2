"""What is refused keeps its place closed, on the wire: no broader rule or listener answers in its stead."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

HTTP, HTTPS = free_port(), free_port()


def build(origin: int, authority: Authority) -> list[make.Object]:
    """A sound site beside which something of every kind is refused."""
    refused = make.path("/(shop|admin)/(?!public).*", "RegularExpression")
    pair = authority.issue(["near.test", "other.test"])
    mistyped = make.gateway("mistyped", [make.listener(HTTP, "near", "near.test")])
    mistyped["spec"]["listener"] = 7
    return [
        make.gateway("web", [make.listener(HTTP)]),
        make.gateway("safe", [make.listener(HTTPS, "any", "", ["pair"])]),
        make.gateway("bare", [make.listener(HTTPS, "near", "near.test", ["nowhere"])]),
        mistyped,
        make.route("front", [make.rule("origin", matches=[make.path("/"), make.path("/shop")])]),
        make.route("safe", [make.rule("origin")], parent="safe"),
        make.route("expression", [make.rule("origin", matches=[{**refused, "method": "POST"}])]),
        make.route("twice", [make.rule("origin", matches=[make.path("/one")])]),
        make.route("twice", [make.rule("origin", matches=[make.path("/one"), make.path("/two")])]),
        make.tls_secret("pair", pair.certificate, pair.key),
        *make.service("origin", [("127.0.0.1", origin)]),
    ]


@pytest.fixture(scope="module", autouse=True)
def gateway(authority: Authority) -> Iterator[Gateway]:
    with (
        RecordingOrigin(echo("origin")) as origin,
        Gateway(build(origin.port, authority)) as running,
    ):
        yield running


def status(method: str, target: str, host: str = "a.test") -> int:
    """One request in plain text."""
    with Client(("127.0.0.1", HTTP)) as client:
        return client.request(method, target, host, []).status


def test_what_a_refused_expression_may_have_been_for_answers_500() -> None:
    """Also below longer prefixes of other rules; its method still has to fit."""
    assert status("POST", "/shop/cart") == status("POST", "/admin") == 500
    assert status("GET", "/shop/cart") == 200


def test_what_only_the_second_route_of_a_name_was_for_answers_500() -> None:
    """The first one is served."""
    assert status("GET", "/one") == 200
    assert status("GET", "/two/deep") == 500


def test_the_hostname_of_a_gateway_that_cannot_be_read_answers_404() -> None:
    """And not what a listener for any host of that port would say."""
    assert status("GET", "/", "near.test") == 404
    assert status("GET", "/", "other.test") == 200


def test_the_hostname_of_a_listener_without_certificate_ends_the_handshake(
    authority: Authority,
) -> None:
    """And shows no certificate of a broader listener; its host is not served on another name's connection either."""
    context = authority.client_context()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Client(("127.0.0.1", HTTPS), tls=context, sni="near.test").close()
    with Client(("127.0.0.1", HTTPS), tls=context, sni="other.test") as client:
        assert client.request("GET", "/", "other.test", []).status == 200
    with Client(("127.0.0.1", HTTPS), tls=context, sni="other.test") as client:
        assert client.request("GET", "/", "near.test", []).status == 421
