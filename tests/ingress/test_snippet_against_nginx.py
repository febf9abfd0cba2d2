"""Lines of configuration-snippet against real nginx: the same status, Location, headers of the answer and headers at the backend."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.test_ingress import PREFIX, arguments, ingress

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
]

#: Lines that both serve, without modules that Debian's nginx lacks.
SNIPPETS = {
    "headers": "add_header X-A 'b c' always;\nproxy_set_header X-Tenant shop;",
    "success": "add_header X-A b;",
    "near": "allow 127.0.0.0/8;\nallow 10.0.0.0/8;\ndeny all;",
    "far": "allow 10.0.0.0/8;\ndeny all;\nadd_header X-A b always;",
    "denied": "deny 127.0.0.1;",
    "others": "deny 10.0.0.1;\nallow all;",
    "nobody": "deny all;",
    "moved": "return 301 https://else.test/b?c=d;\nadd_header X-A b always;",
    "seen": "return 303 http://else.test;",
    "gone": "return 410;\ndeny all;",
    "whole": "return 301 https://else.test$request_uri;",
    "named": 'if ($host = "named.test") { return 302 https://else.test$request_uri; }',
    "other": 'if ($host = "named.test") { return 302 https://else.test$request_uri; }',
    "shape": 'if ($host ~* "^SHAPE\\.") { return 403; }\nadd_header X-A b always;',
    "method": "if ($request_method !~ ^(POST|PUT)$ ) { return 405; }\ndeny all;",
    "tenant": 'if ($http_x_tenant != "shop") { return 404; }\nreturn 410;',
    "agent": "if ($http_x_tenant ~ s.o) { return 307 https://$host/a; }\nif ($scheme = http) { return 409; }",
    "empty": "return 204;",
    "quiet": "# nothing\naccess_log off;\nproxy_buffering off;",
}
_STARTUP = 20.0
Seen = tuple[int, str | None, str | None, list[bytes]]


@contextmanager
def nginx(port: int, origin: int) -> Iterator[None]:
    """Serve a host for each snippet."""
    servers = "\n".join(
        f"server {{ listen 127.0.0.1:{port}; server_name {name}.test;\n"
        f"location / {{\n{text}\nproxy_pass http://127.0.0.1:{origin}; }} }}"
        for name, text in SNIPPETS.items()
    )
    with tempfile.TemporaryDirectory(prefix="snippets.") as folder:
        paths = "".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = (
            f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
            f"events {{}}\nhttp {{ access_log off; proxy_http_version 1.1; {paths}\n{servers}\n}}"
        )
        config = Path(folder) / "nginx.conf"
        config.write_text(text)
        process = subprocess.Popen(["nginx", "-p", folder, "-c", str(config)])
        try:
            end = time.monotonic() + _STARTUP
            while True:
                assert process.poll() is None and time.monotonic() < end
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(10)


def answer(message: Message) -> bytes:
    """The status that the path asks for."""
    return response(b"page", int(message.target[1:4]))


def ask(port: int, name: str, status: int, origin: RecordingOrigin) -> Seen:
    """One request; what its client and its backend get."""
    method, headers = ("GET", []) if status == 200 else ("POST", [("X-Tenant", "shop")])
    with Client(("127.0.0.1", port)) as client:
        found = client.request(method, f"/{status}?a=b", host=f"{name}.test", headers=headers)
    origin.turn()
    sent = origin.take().messages
    tenants = [value for one in sent for value in one.values(b"x-tenant")]
    return found.status, found.value("location"), found.value("x-a"), tenants


def test_no_difference() -> None:
    ports = free_port(), free_port()
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ingress-nginx-controller", "namespace": "ingress-nginx"},
        "data": {"allow-snippet-annotations": "true", "annotations-risk-level": "Critical"},
    }
    with RecordingOrigin(answer) as origin:
        made = [ingress(name) for name in SNIPPETS]
        for one, text in zip(made, SNIPPETS.values(), strict=True):
            one["metadata"]["annotations"][f"{PREFIX}configuration-snippet"] = text
        objects = [settings, *made, *make.service("web", [("127.0.0.1", origin.port)])]
        with Gateway(objects, arguments=arguments(ports[1])), nginx(ports[0], origin.port):
            for name in SNIPPETS:
                for status in (200, 404, 500):
                    expected, got = (ask(port, name, status, origin) for port in ports)
                    assert got == expected, (name, status)
