"""Real nginx with the configuration that ingress-nginx would give it, as far as that needs no Lua.

In: objects. Out: a running nginx on loopback that answers `Request`s as `Answer`s. Use it as a context manager; it ends its
own process only. Affinity, shares by weight, connection limits and whatever needs a Lua module are not here.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ingress.message import Answer, AuthCall, Backend, Request, first
from ingress.naive.forwarding import IGNORED
from ingress.nginx_config import AUTH, ESCAPE, ESCAPED, NUMBER, UNESCAPED, UPSTREAM, Run, render
from ingress.nginx_servers import DEFAULT_CERTIFICATE, Model
from ingress.origin import Origin
from proxy.pki import Authority
from wire.harness.ports import free_port

_OWN = frozenset(name.lower() for name in (AUTH, NUMBER, UPSTREAM))
_COMPARED = ("set-cookie", "strict-transport-security", "www-authenticate")
_STARTUP = 20.0  # seconds for nginx to listen
_ANSWER = 10.0  # seconds for one answer
_DEFAULT_PAIR = Authority("default certificate").issue("ingress.local")


class Refused(Exception):
    """nginx does not take the configuration: the text is its message."""


class NginxOracle:
    """nginx serves a set of objects."""

    def __init__(self, items: Iterable[dict[str, Any]], origin: Origin) -> None:
        self.model = Model(items)
        self._origin = origin
        self._number = 0
        self._sockets: dict[tuple[str, str, str], tuple[socket.socket, str]] = {}
        if twice := self.model.duplicates():
            raise Refused(f"duplicate location: {twice}")

    def __enter__(self) -> NginxOracle:
        self._temporary = tempfile.TemporaryDirectory(prefix="ingress-oracle.")
        folder = Path(self._temporary.name)
        self.run = Run(folder, free_port(), free_port(), free_port(), self._origin.port)
        (folder / "default.pem").write_bytes(_DEFAULT_PAIR.certificate + _DEFAULT_PAIR.key)
        self._names = self._fingerprints()
        file = folder / "nginx.conf"
        file.write_text(render(self.model, self.run), "latin-1")
        self._process = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(file)], stderr=subprocess.PIPE
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one, _ in self._sockets.values():
            one.close()
        self._sockets.clear()
        self._process.terminate()
        self._process.wait(10)
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._temporary.cleanup()

    def _wait(self) -> None:
        deadline = time.monotonic() + _STARTUP
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                raise Refused(self._process.stderr.read().decode())
            try:
                socket.create_connection(("127.0.0.1", self.run.https), 1).close()
                return
            except OSError:
                time.sleep(0.002)
        raise Refused("nginx does not listen")

    def _fingerprints(self) -> dict[bytes, str]:
        found = {}
        for name, pem in {
            DEFAULT_CERTIFICATE: _DEFAULT_PAIR.certificate,
            **self.model.certificates,
        }.items():
            found[x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)] = name
        return found

    # ---- requests ----

    def answer(self, request: Request) -> Answer:
        """Ask nginx. `Request.port` stands for the port that it listens on."""
        self._number += 1
        number = str(self._number)
        connection, certificate = self._connect(request)
        connection.sendall(self._head(request, number))
        status, headers, body = _read(connection, head=request.method == "HEAD")
        if first(headers, "connection") == "close" or request.body:
            connection.close()
            del self._sockets[request.scheme, request.sni, request.peer]
        return self._answer(request, status, headers, body, number, certificate)

    def _connect(self, request: Request) -> tuple[socket.socket, str]:
        key = request.scheme, request.sni, request.peer
        if key in self._sockets:
            return self._sockets[key]
        port = self.run.https if request.scheme == "https" else self.run.http
        connection = socket.create_connection(("127.0.0.1", port), _ANSWER, (request.peer, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        certificate = ""
        if request.scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            secured = context.wrap_socket(connection, server_hostname=request.sni or None)
            certificate = self._names[secured.getpeercert(True) or b""]
            connection = secured
        self._sockets[key] = connection, certificate
        return self._sockets[key]

    @staticmethod
    def _head(request: Request, number: str) -> bytes:
        lines = [f"{request.method} {request.target} HTTP/1.{0 if request.http10 else 1}"]
        lines += [f"Host: {request.host}"] if request.host else []
        lines += [f"{name}: {value}" for name, value in (*request.headers, (NUMBER, number))]
        body = b"x" * request.body
        if request.chunked:
            lines.append("Transfer-Encoding: chunked")
            body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        elif request.body:
            lines.append(f"Content-Length: {request.body}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body

    def _answer(
        self,
        request: Request,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
        number: str,
        certificate: str,
    ) -> Answer:
        backend, target, sent = None, "", ()
        if body.startswith(b'{"method"'):
            echoed = json.loads(body)
            target = echoed["target"]
            sent = _compared(echoed["headers"])
            backend = self._backend(first(echoed["headers"], UPSTREAM))
        auth = None
        if number in self._origin.calls:
            method, _, given = self._origin.calls.pop(number)
            auth = AuthCall(first(given, AUTH), method, _compared(given))
        response = sorted(
            (name.lower(), value)
            for name, value in headers
            if name.lower() in _COMPARED
            or name.lower().startswith(("access-control-", "x-custom-"))
        )
        location = first(headers, "location")
        location = re.sub(
            f"{ESCAPE}(.*?){ESCAPED}",
            lambda found: quote(found[1].encode("latin-1"), safe=UNESCAPED),
            location,
        )
        location = self._standard_ports(location, request)
        return Answer(
            status,
            location,
            backend,
            target,
            self._own_port(sent, request),
            tuple(response),
            certificate,
            auth,
        )

    def _backend(self, name: str) -> Backend:
        upstream = self.model.upstreams[name]
        return Backend(
            upstream.namespace, upstream.service, upstream.port, upstream.policy is not None
        )

    def _standard_ports(self, text: str, request: Request) -> str:
        port = self.run.https if request.scheme == "https" else self.run.http
        return text.replace(f":{port}", f":{request.port}", 1)

    def _own_port(
        self, sent: tuple[tuple[str, str], ...], request: Request
    ) -> tuple[tuple[str, str], ...]:
        own, asked = str(self.run.http), str(request.port)
        return tuple(
            (name, asked if name == "x-forwarded-port" and value == own else value)
            for name, value in sent
        )


def _compared(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    kept = [(name.lower(), value) for name, value in headers]
    return tuple(sorted(one for one in kept if one[0] not in _OWN and one[0] not in IGNORED))


def _read(connection: socket.socket, *, head: bool) -> tuple[int, list[tuple[str, str]], bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("nginx closed the connection")
        data += part
    raw, _, body = data.partition(b"\r\n\r\n")
    lines = raw.decode("latin-1").split("\r\n")
    headers = [
        (name, value.strip()) for name, _, value in (one.partition(":") for one in lines[1:])
    ]
    status = int(lines[0].split(" ")[1])
    length = 0 if head or status in (204, 304) else int(first(headers, "content-length") or 0)
    while len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return status, headers, body
