"""The tests' own client of the API: a connection that was kept for minutes is not taken for one that is there."""

from __future__ import annotations

import http.server
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.world.api import Api, Server
from proxy.pki import Authority


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers one request on each connection and ends it, without having said so: an API server ends idle ones."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    authority = Authority()
    pair = authority.issue("127.0.0.1")
    for name, data in (("ca", authority.bundle), ("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(data)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    _Answers.bodies = []
    with http.server.HTTPServer(("127.0.0.1", 0), _Answers) as served:
        served.socket = context.wrap_socket(served.socket, server_side=True)
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Server("127.0.0.1", served.server_port, tmp_path / "ca")
        served.shutdown()
        thread.join()


def test_a_connection_that_was_ended_meanwhile_loses_no_request(server: Server) -> None:
    api = Api(server)
    body = {"of": "x" * 100_000}  # in a write of its own, after the head
    for _ in range(3):
        assert api.post("/things", body) == {}
        kept: socket.socket = api._mine.connection.sock
        assert select.select([kept], [], [], 10)[0], "the server keeps the connection"
    assert len(_Answers.bodies) == 3
    api.close()
