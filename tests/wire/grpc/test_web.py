"""Browsers' calls: gRPC-Web, binary and text, from a hand-written client over HTTP/1.1 and HTTP/2 to a real server of gRPC."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from wire.grpc.backend import GrpcBackend
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.site import Site
from wire.http2.client import H2Client

ORIGIN = "https://app.test"
BINARY, TEXT = "application/grpc-web+proto", "application/grpc-web-text+proto"


@dataclass(frozen=True)
class Answer:
    """What a browser makes of it."""

    fields: dict[str, str]
    messages: list[bytes]
    trailers: dict[str, str]


class WebClient:
    """Calls over one protocol, in one of the two forms."""

    def __init__(self, port: int, *, http2: bool, text: bool) -> None:
        self.port, self.http2, self.text = port, http2, text

    def call(self, method: str, *messages: bytes, **more: str) -> Answer:
        """One call of test.Calls, from its messages to its trailers."""
        body = b"".join(b"\0" + len(one).to_bytes(4, "big") + one for one in messages)
        if self.text:
            body = b64encode(body)
        fields = [("content-type", TEXT if self.text else BINARY), ("x-grpc-web", "1")]
        fields += [(name.replace("_", "-"), value) for name, value in more.items()]
        status, got, found = self._post(f"/test.Calls/{method}", fields, body)
        assert status == 200
        assert got["content-type"] == (TEXT if self.text else BINARY)
        if self.text:
            quads = (found[at : at + 4] for at in range(0, len(found), 4))
            found = b"".join(b64decode(quad, validate=True) for quad in quads)
        return Answer(got, *self._frames(found))

    def _post(
        self, path: str, fields: list[tuple[str, str]], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        if self.http2:
            with H2Client(self.port) as client:
                number = client.ask(fields, end=False, method="POST", path=path)
                client.body(number, body)
                answer = client.finish(number)
                assert answer.ended and not answer.trailers
                return (
                    answer.status,
                    {k.decode(): v.decode() for k, v in answer.fields},
                    answer.body,
                )
        with Client(("127.0.0.1", self.port)) as plain:
            got = plain.request("POST", path, "a", fields, body)
            return got.status, {k.decode(): v.decode() for k, v in got.headers}, got.body

    @staticmethod
    def _frames(body: bytes) -> tuple[list[bytes], dict[str, str]]:
        messages = []
        while body and not body[0] & 0x80:
            size = int.from_bytes(body[1:5], "big")
            messages.append(body[5 : 5 + size])
            body = body[5 + size :]
        assert int.from_bytes(body[1:5], "big") == len(body) - 5
        pairs = (line.partition(":") for line in body[5:].decode().split("\r\n") if line)
        return messages, {name: value.strip() for name, _, value in pairs}


@pytest.fixture(scope="module")
def backend() -> Iterator[GrpcBackend]:
    with GrpcBackend() as running:
        yield running


@pytest.fixture(scope="module")
def site(backend: GrpcBackend) -> Iterator[Site]:
    cors = {"allowOrigins": [ORIGIN], "allowHeaders": ["*"], "allowMethods": ["POST"]}
    objects = [
        make.route(
            "web", [make.rule("origin", filters=[{"type": "CORS", "cors": cors}])], ["web.test"]
        ),
        make.grpc_route("calls", [make.rule("origin")], ["a"]),
        *make.service("origin", [("127.0.0.1", backend.port)], app_protocol="kubernetes.io/h2c"),
    ]
    with Site(objects, settings={"grpc": {"web": True}}) as running:
        yield running


@pytest.fixture(params=["1.1", "2"])
def http2(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "2")


@pytest.fixture(params=["binary", "text"])
def client(request: pytest.FixtureRequest, site: Site, http2: bool) -> WebClient:
    return WebClient(site.port, http2=http2, text=request.param == "text")


def test_unary(client: WebClient) -> None:
    for message in (b"hello", b"", bytes(range(256)) * 4096):
        answer = client.call("Echo", message, my_mark="1")
        assert answer.messages == [message]
        assert answer.fields["backend"] == "one"
        assert answer.trailers["grpc-status"] == "0"
        assert (answer.trailers["behind"], answer.trailers["my-mark"]) == ("one", "1")


def test_cors(site: Site) -> None:
    """A browser asks before it calls; an HTTPRoute with that filter answers."""
    asks = [
        ("origin", ORIGIN),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,x-grpc-web"),
    ]
    answer = site.ask("OPTIONS", "/test.Calls/Echo", "web.test", asks)
    assert (answer.status, answer.value("access-control-allow-origin")) == (204, ORIGIN)
    body = b"\0\0\0\0\2hi"
    called = site.ask(
        "POST", "/test.Calls/Echo", "web.test", [("content-type", BINARY), ("origin", ORIGIN)], body
    )
    assert called.value("access-control-allow-origin") == ORIGIN
    assert called.body.startswith(body + b"\x80")
