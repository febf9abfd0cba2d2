"""No way out of the product shows a credential that a route has: every command, every answer of a running proxy, its log."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from cli.calling import call
from controller.admin import plain_fleet
from edgefast import ir
from edgefast.table.redacted import hide_fleet
from proxy.command import Start, gateway, gateway_class, save, start
from tests.support import documents
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

__all__ = ["start"]

#: Everything secret in the objects below has this in it, and nothing else has.
MARK = "5ecret"
SET = f"Bearer {MARK}-of-the-filter"
LOOKS = f"{MARK}0f86d081884c7d659a2feaa0c55ad015a3"
KEY = f"{MARK}-key-of-a-client"
SENT = "of-the-client"
#: Of a password; no way out shows it either, nor the digest of a key.
HASH = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="
#: What checks of health say and await, and how it looks where bytes are shown.
SAID = f"{MARK} of an endpoint"
ENCODED = base64.b64encode(SAID.encode()).decode()


def objects(port: int, backend: int) -> list[dict[str, Any]]:
    """A rule that sets credentials both ways, one that compares with them, a limit for one and one for each of them."""
    text = (
        f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: default}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [a.test]
  rules:
  - matches: [{{path: {{value: /set}}}}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier:
        set: [{{name: Authorization, value: {SET}}}, {{name: x-plain, value: seen}}]
        add: [{{name: x-upstream, value: {LOOKS}}}, {{name: Cookie, value: id={MARK}}}]
    - type: ResponseHeaderModifier
      responseHeaderModifier:
        set: [{{name: Set-Cookie, value: session={MARK}}}]
    - type: ExtensionRef
      extensionRef: {{group: gateway.edge.io, kind: RateLimitFilter, name: keys}}
    backendRefs: [{{name: web, port: 80}}]
  - matches:
    - path: {{value: /match}}
      headers: [{{name: X-Api-Key, value: {KEY}}}]
    - path: {{value: /match}}
      headers: [{{name: x-auth-token, type: RegularExpression, value: "{MARK}.*"}}]
      queryParams: [{{name: access_token, value: {MARK}-query}}]
    backendRefs:
    - name: web
      port: 80
      filters:
      - type: RequestHeaderModifier
        requestHeaderModifier: {{set: [{{name: x-api-key, value: {MARK}-of-the-backend}}]}}
  - {{name: who, matches: [{{path: {{value: /who}}}}], backendRefs: [{{name: web, port: 80}}]}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {{name: keys, namespace: default}}
spec:
  type: Global
  global:
    rules:
    - clientSelectors: [{{headers: [{{name: x-api-key, type: Distinct}}, {{name: x-user, type: Distinct}}]}}]
      limit: {{requests: 5, unit: Year}}
    - clientSelectors: [{{headers: [{{name: x-auth-token, value: {MARK}-limited}}]}}]
      limit: {{requests: 5, unit: Year}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: keys, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}}]
  authorization:
    defaultAction: Allow
    rules:
    - {{name: theirs, action: Deny, principal: {{headers: [{{name: x-api-key, values: [{MARK}-stolen, {MARK}-old]}}]}}}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: who, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: who}}]
  apiKeyAuth:
    credentialRefs: [{{name: clients}}]
    extractFrom: [{{headers: [x-key], params: [given], cookies: [given]}}]
  basicAuth: {{users: {{name: users}}}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {{name: asked, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}}]
  healthCheck:
    active:
      type: HTTP
      interval: 1h
      initialJitter: 1m
      overrides: {{port: 1}}
      http:
        path: /well?token={MARK}-query
        method: POST
        requestBody: {{type: Text, text: {SAID}}}
        expectedResponse: {{type: Text, text: {SAID}}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {{name: said, namespace: default}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web, sectionName: who}}]
  healthCheck:
    active:
      type: TCP
      interval: 1h
      initialJitter: 1m
      overrides: {{port: 1}}
      tcp: {{send: {{type: Text, text: {SAID}}}, receive: {{type: Text, text: {SAID}}}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: clients, namespace: default}}
stringData: {{ann: {MARK}-key-of-ann}}
---
apiVersion: v1
kind: Secret
metadata: {{name: users, namespace: default}}
stringData: {{.htpasswd: "ann:{HASH}"}}
---
"""
        + documents.backend("web", "default", target=f"port: {backend}", address="127.0.0.1")
        + f"""---
apiVersion: gateway.edge.io/v1alpha1
kind: EdgeProxy
metadata: {{name: logs, namespace: default}}
spec:
  accessLog:
    template: '%REQ(:PATH)% "%REQ(X-API-KEY)%" "%REQ(X-NONE?AUTHORIZATION)%" "%RESP(SET-COOKIE)%" "%REQ(X-USER)%"'
  tracing:
    endpoint: http://127.0.0.1:{backend}
    attributes: {{x-api-key: {MARK}-attribute, team: shop}}
"""
    )
    own = gateway_class()
    own["spec"]["parametersRef"] = {
        "group": "gateway.edge.io",
        "kind": "EdgeProxy",
        "name": "logs",
        "namespace": "default",
    }
    return [own, gateway(port), *yaml.safe_load_all(text)]


COMMANDS: dict[str, tuple[str, ...]] = {
    "ir": ("translate", "-f"),
    "ir as JSON": ("translate", "-o", "json", "-f"),
    "ir as a table": ("translate", "-o", "table", "-f"),
    "status": ("translate", "--to", "status", "-f"),
    "infra": ("translate", "--to", "infra", "-f"),
    "check": ("check", "-f"),
    "set": ("explain", "GET", "http://a.test:8080/set", "-f"),
    "set as JSON": ("explain", "-o", "json", "GET", "http://a.test:8080/set", "-f"),
    "not matched": (
        *("explain", "-H", "x-api-key: other", "-H", "x-auth-token: other"),
        *("GET", "http://a.test:8080/match", "-f"),
    ),
    "nobody": (
        *("explain", "-H", "x-key: wrong", "-H", "authorization: Basic d3Jvbmc6d3Jvbmc="),
        *("GET", "http://a.test:8080/who?given=wrong", "-f"),
    ),
    "limited": ("explain", "-H", "x-auth-token: other", "GET", "http://a.test:8080/set", "-f"),
}


def _shows(text: str) -> bool:
    """Tell whether a text has anything of what nobody is to see."""
    return any(one in text for one in (MARK, HASH[5:], ENCODED))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_shows_one(name: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    save(file, *objects(8080, 80))
    outcome = call(*COMMANDS[name], str(file))
    assert MARK in file.read_text()
    assert not _shows(outcome.out + outcome.err)
    if name in ("ir", "set", "set as JSON"):
        assert "seen" in outcome.out and f"<{len(SET)} characters, not shown>" in outcome.out
    if name in ("set", "nobody"):
        assert f"{len(SAID)} bytes" in outcome.out
    if name == "not matched":
        assert f"x-api-key: other != <{len(KEY)} characters, not shown>" in outcome.out


def test_no_difference_shows_one(tmp_path: Path) -> None:
    """An example request needs the credential: whoever has it puts it in."""
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    found = objects(8080, 80)
    save(one, *found)
    save(other, *(item for item in found if item["kind"] != "Service"))
    outcome = call("diff", str(one), str(other))
    assert "x-auth-token: <" in outcome.out and "access_token=<" in outcome.out
    assert MARK not in outcome.out + outcome.err


MISTAKES: dict[str, dict[str, Any]] = {
    "a line break": {"filters": [{"name": "Authorization", "value": f"Bearer {MARK}\n"}]},
    "by its looks": {"filters": [{"name": "x-up", "value": f"Bearer {MARK}\n"}]},
    "a number": {"filters": [{"name": "x-api-key", "value": 5551234}]},
    "an expression": {"headers": [{"name": "x-api-key", "value": f"({MARK}"}]},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_no_message_of_a_mistake_shows_one(name: str, tmp_path: Path) -> None:
    file, wrong = tmp_path / "a.yaml", MISTAKES[name]
    found = objects(8080, 80)
    rule = found[2]["spec"]["rules"][0]
    if "headers" in wrong:
        rule["matches"] = [{"headers": [{"type": "RegularExpression", **wrong["headers"][0]}]}]
    else:
        rule["filters"][0]["requestHeaderModifier"]["set"] = wrong["filters"]
    save(file, *found)
    for command in (("check",), ("translate", "--to", "status")):
        outcome = call(*command, "-f", str(file))
        assert "value: " in outcome.out + outcome.err
        assert MARK not in outcome.out + outcome.err
        assert "5551234" not in outcome.out + outcome.err


def test_the_controllers_dump_hides_the_same() -> None:
    ops = ir.HeaderOps(set=(("authorization", SET),), add=(("x-plain", "seen"),))
    rule = ir.Rule(route="ns/web", index=0, request_headers=ops)
    host = ir.VirtualHost(listener="ns/gw/l", hostname="*", rules=(rule,), entries=())
    fleet = ir.Fleet(name="one", virtual_hosts=(host,))
    shown = json.dumps(plain_fleet(fleet))
    assert MARK not in shown and "seen" in shown
    assert hide_fleet(ir.Fleet(name="none")) == ir.Fleet(name="none")


def test_a_running_proxy_shows_none(start: Start, tmp_path: Path) -> None:
    """Its dump, limits, explanations, console and log; it explains what matches compare with all the same."""
    port, backend = free_port(), free_port()
    save(tmp_path / "a.yaml", *objects(port, backend))
    with socket.create_server(("127.0.0.1", backend)) as server:
        run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
        run.wait_ready()
        secrets = {"x-api-key": f"{MARK}-{SENT}", "authorization": f"Basic {MARK}", "x-user": "ann"}
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            lines = "".join(f"{name}: {value}\r\n" for name, value in secrets.items())
            client.sendall(f"GET /set HTTP/1.1\r\nHost: a.test:{port}\r\n{lines}\r\n".encode())
            up, _ = server.accept()
            with up:
                assert SET.encode() in up.recv(65536)
                up.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                assert b"session=" in client.recv(65536)
        run.until(lambda: "/set" in run.logged, "line of the log")
        length = f"<{len(secrets['x-api-key'])} bytes, not shown>"
        assert f'/set "{length}"' in run.logged and '"ann"' in run.logged

        shown: dict[str, str] = {}
        base = f"http://a.test:{port}"
        asks = {
            "/explain?": {"method": "GET", "url": f"{base}/set"},
            "/console/api/explain?": {"url": f"{base}/match", "headers": "x-api-key: no"},
            "/console/api/search?": {"q": "/match"},
            "/console/api/limits?": {},
            "/console/api/counters?": {},
            "/console/api/changes?": {},
            "/dump?": {},
            "/limits?": {},
        }
        for path, query in asks.items():
            status, shown[path] = run.get(run.admin, path + urlencode(query))
            assert status == 200, (path, shown[path])
        found = json.loads(shown["/console/api/search?"])["rows"]
        for row in found:
            path = "/console/api/node?" + urlencode({"id": row["row"]["id"]})
            shown[path] = run.get(run.admin, path)[1]
        assert found and "x-api-key: <" in "".join(shown.values())
        (row,) = json.loads(shown["/limits?"])["counters"]
        assert row["values"]["x-user"] == "ann"
        assert row["values"]["x-api-key"].startswith(f"<{len(secrets['x-api-key'])} characters")

        # The proxy itself compares: the request is told as it was asked, and what it gets as it would.
        key = ("explain", "--admin", f"127.0.0.1:{run.admin}", "-o", "json", "GET")
        taken = call(*key, f"{base}/match", "-H", f"x-api-key: {KEY}")
        lost = call(*key, f"{base}/match", "-H", "x-api-key: no")
        assert json.loads(taken.out)["rule"]["index"] == 1
        assert "rule" not in json.loads(lost.out)
        shown["lost"] = lost.out
        counted = json.loads(
            call(
                *key, f"{base}/set", "-H", f"x-api-key: {secrets['x-api-key']}", "-H", "x-user: ann"
            ).out
        )
        assert [one.get("used") for one in counted["limits"]] == [1, None]

        save(
            tmp_path / "a.yaml",
            *(one for one in objects(port, backend) if one["kind"] != "Service"),
        )
        run.until(
            lambda: json.loads(run.get(run.admin, "/console/api/changes")[1])["steps"], "change"
        )
        shown["/changes"] = run.get(run.admin, "/console/api/changes")[1]
        assert "access_token=<" in shown["/changes"]
    shown["log"], shown["stderr"] = run.logged, run.said
    for name, text in shown.items():
        assert not _shows(text), name
