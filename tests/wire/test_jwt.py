"""Signed tokens in front of a real proxy, with the keys that their issuer publishes: what gets in while they change."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import yaml

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from proxy.command import Process, gateway, gateway_class, save
from tests.auth.jwt import issuer
from wire.harness.client import Client
from wire.harness.ports import free_port

ISSUER = "https://issuer.test"


def answer(message: Message) -> bytes:
    return response(b"behind", head=message.method == b"HEAD")


class Published:
    """An issuer's keys over HTTP; `keys` are those that it publishes."""

    def __init__(self) -> None:
        self.keys = [issuer.jwk("ES256", kid="one")]
        self.asked = 0
        published = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                published.asked += 1
                body = json.dumps({"keys": published.keys}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def token(number: int, kid: str, **claims: Any) -> str:
    now = int(time.time())
    said = {"iss": ISSUER, "aud": "web", "iat": now, "exp": now + 300, **claims}
    return issuer.token("ES256", number, {"kid": kid}, **said).decode()


def service(name: str, port: int) -> list[dict[str, Any]]:
    text = f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{port: {port}}}]
endpoints: [{{addresses: [127.0.0.1]}}]
"""
    return list(yaml.safe_load_all(text))


def objects(port: int, backend: int, keys: int) -> list[dict[str, Any]]:
    text = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: tokens, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  jwt:
    providers:
    - name: login
      issuer: https://issuer.test
      audiences: [web]
      remoteJWKS: {uri: "http://issuer/keys", backendRefs: [{name: issuer, port: 80}]}
      claimToHeaders: [{header: x-sub, claim: sub}]
  authorization:
    rules:
    - {action: Allow, principal: {jwt: {provider: login, claims: [{name: role, values: [staff]}]}}}
"""
    parts = [*yaml.safe_load_all(text), *service("web", backend), *service("issuer", keys)]
    return [gateway_class(), gateway(port), *parts]


Front = tuple[int, RecordingOrigin, Published, Process]


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    tmp_path = tmp_path_factory.mktemp("front")
    port, keys = free_port(), Published()
    with RecordingOrigin(answer) as origin:
        file = tmp_path / "a.yaml"
        save(file, *objects(port, origin.port, keys.port))
        run = Process(tmp_path, "-f", str(file), "--workers", "2")
        try:
            run.wait_ready()
            yield port, origin, keys, run
        finally:
            assert run.stop() == 0
            keys.close()


def ask(port: int, text: str, **more: str) -> int:
    with Client(("127.0.0.1", port)) as client:
        headers = [("authorization", f"Bearer {text}"), *more.items()]
        return client.request("GET", "/", headers=headers).status


def test_keys_that_are_fetched_let_in_whom_they_should(front: Front) -> None:
    port, origin, keys, run = front
    good = token(0, "one", sub="ann", role="staff")
    assert ask(port, good, **{"x-sub": "root"}) == 200
    (message,) = origin.take().messages
    assert message.values(b"x-sub") == [b"ann"]
    assert ask(port, token(0, "one", sub="ann", role="guest")) == 403
    assert ask(port, token(1, "one", role="staff")) == 401
    assert ask(port, token(0, "one", role="staff", aud="shop")) == 403
    assert ask(port, token(0, "one", role="staff", exp=int(time.time()) - 100)) == 401
    assert ask(port, "") == 401
    assert origin.take().messages == [] and keys.asked == 1
    _, page = run.get(run.metrics, "/metrics")
    assert 'edgefast_jwks_fetch_failing{policy="default/tokens",provider="login"} 0' in page
