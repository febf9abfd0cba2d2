"""What is refused keeps its place closed, on the wire: no broader rule or listener answers in its stead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

HTTP = free_port()


def build(origin: int) -> list[make.Object]:
    """A sound site beside which something of every kind is refused."""
    refused = make.path("/(shop|admin)/(?!public).*", "RegularExpression")
    return [
        make.gateway("web", [make.listener(HTTP)]),
        make.route("front", [make.rule("origin", matches=[make.path("/"), make.path("/shop")])]),
        make.route("expression", [make.rule("origin", matches=[{**refused, "method": "POST"}])]),
        *make.service("origin", [("127.0.0.1", origin)]),
    ]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with RecordingOrigin(echo("origin")) as origin, Gateway(build(origin.port)) as running:
        yield running


def status(method: str, target: str, host: str = "a.test") -> int:
    """One request."""
    with Client(("127.0.0.1", HTTP)) as client:
        return client.request(method, target, host, []).status


@pytest.mark.usefixtures("gateway")
def test_what_a_refused_expression_may_have_been_for_answers_500() -> None:
    """Also below longer prefixes of other rules; its method still has to fit."""
    assert status("POST", "/shop/cart") == status("POST", "/admin") == 500
    assert status("GET", "/shop/cart") == 200
