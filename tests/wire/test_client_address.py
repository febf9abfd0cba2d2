"""`clientAddress` and `headers` of an EdgeProxy, from YAML to the backend. Their rules: core/exchange/test_clientaddress, test_forwarded_headers."""

from __future__ import annotations

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client, build_request
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.preambles import V1


def test_proxy_protocol_and_a_hop() -> None:
    """The source that PROXY names is the peer, the hop before it is believed; a request without it is refused."""
    port = free_port()
    settings = {
        "proxyProtocol": "required",
        "proxyProtocolCIDRs": ["127.0.0.1/32"],
        "trustedHops": 1,
    }
    with RecordingOrigin() as origin:
        objects = [
            make.gateway("web", [make.listener(port)], "settings"),
            make.edge_proxy("settings", clientAddress=settings),
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Gateway(objects):
            forwarded = [("X-Forwarded-For", "1.1.1.1")]
            with Client(("127.0.0.1", port), first=V1) as client:
                assert client.request("GET", "/", headers=forwarded).status == 200
            with Client(("127.0.0.1", port)) as client:
                client.expect("GET")
                client.send(build_request())
                assert all(one.status == 400 for one in client.read_to_end(5))
            origin.turn()
            (message,) = origin.take().messages
    assert (message.value(b"x-forwarded-for") or b"").replace(b" ", b"") == b"1.1.1.1,192.0.2.7"
    assert message.value(b"x-edge-external-address") == b"1.1.1.1"
    assert message.value(b"x-edge-internal") is None


def test_headers_about_the_client() -> None:
    """`spec.headers` reaches the backend in place of what the client sent."""
    port = free_port()
    settings = {
        "forwarded": ["X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Port", "X-Scheme"],
        "xForwardedFor": "Overwrite",
        "requestID": "PreserveOrGenerate",
    }
    with RecordingOrigin() as origin:
        objects = [
            make.gateway("web", [make.listener(port)], "settings"),
            make.edge_proxy("settings", headers=settings),
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Gateway(objects), Client(("127.0.0.1", port)) as client:
            forged = [(name, "192.0.2.9") for name in ("X-Real-IP", "X-Forwarded-For", "X-Scheme")]
            sent = [*forged, ("X-Request-ID", "mine")]
            assert client.request("GET", "/", headers=sent).status == 200
            origin.turn()
            (message,) = origin.take().messages
    assert message.value(b"x-real-ip") == b"127.0.0.1"
    assert message.value(b"x-forwarded-for") == b"127.0.0.1"
    assert message.value(b"x-forwarded-port") == str(port).encode()
    assert message.value(b"x-forwarded-host") == message.value(b"host")
    assert message.value(b"x-scheme") == b"http"
    assert message.value(b"x-request-id") == b"mine"
