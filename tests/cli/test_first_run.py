"""The first commands as a reader types them: `edgefast demo`, `edgefast run --to`, `edgefast init`, in real processes."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import pytest

from cli.calling import call
from examples.running import get
from wire.harness.certificates import Authority
from wire.harness.ports import free_port
from wire.harness.programs import ALONE

pytestmark = pytest.mark.wire

START = 90.0  # seconds: ceiling for a start on a busy machine with sanitizers
END = 30.0
_SERVE = "from edgefast.cli.main import main; main()"


class Running:
    """A command of edgefast in a process group of its own, like a job of a terminal."""

    def __init__(
        self, folder: Path, arguments: list[str], script: str, environment: Mapping[str, str]
    ) -> None:
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script, *arguments],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + START
        while text not in self.log:
            assert self.process.poll() is None and time.monotonic() < end, self.log
            time.sleep(0.02)

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def interrupt(self) -> int:
        """Send what Ctrl-C on a terminal sends; returns the exit status."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(END)


@contextlib.contextmanager
def running(
    folder: Path,
    *arguments: str,
    script: str = _SERVE,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Running]:
    one = Running(folder, list(arguments), script, environment)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(END)
            one.process.kill()
        one.process.wait(END)


@contextlib.contextmanager
def origin(name: str, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve a page with this name; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"{name} {self.headers['host']}".encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

        def handle_error(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:  # a handshake that the gateway refuses
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(END)


def proxy_options() -> list[str]:
    """Options of `edgefast run` that keep parallel tests apart."""
    return [
        *("--workers", "1", "--admin", "off", "--metrics", "off"),
        *("--ready", f"127.0.0.1:{free_port()}", "--min-drain", "0", "--drain-timeout", "2"),
    ]


def leave_the_minute() -> None:
    """Wait for the next minute when this one ends soon: the limit of the demo would begin again."""
    left = 60 - time.time() % 60
    if left < 15:
        time.sleep(left)


def run_line(line: str) -> str:
    done = subprocess.run(
        ["bash", "-euc", line.replace("curl ", "curl -sS --max-time 20 ", 1)],
        capture_output=True,
        text=True,
        timeout=END,
        env=ALONE,
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def test_demo(tmp_path: Path) -> None:
    usual = (free_port(), free_port(), free_port())
    script = f"import edgefast.cli.demo as demo; demo._PORTS = {usual}; {_SERVE}"
    with socket.create_server(("127.0.0.1", usual[0])), running(tmp_path, "demo", script=script) as one:  # fmt: skip
        one.wait_for("Ctrl-C ends the demo.")
        text = one.log
        lines = re.findall(r"^  (curl .*)$", text, re.M)
        assert len(lines) == 5
        assert f":{usual[0]}/" not in text, "a port in use is replaced"
        assert f"https://localhost:{usual[1]}/" in text and f":{usual[2]}/console/" in text
        leave_the_minute()
        web, api, secure, limited, private = map(run_line, lines)
        assert "service: web\n" in web and "path: /\n" in web
        assert "service: api\n" in api and "path: /api/users\n" in api
        assert "service: web\n" in secure and "x-forwarded-proto: https\n" in secure
        assert limited.split() == ["200", "200", "200", "429"]
        assert "x-user: demo\n" in private
        status = run_line("curl -o /dev/null -w '%{http_code}' " + lines[4].split()[-1])
        assert status == "401"
        assert get(usual[2], "/console/")[0] == 200
        (authority,) = re.findall(r"--cacert (\S+)", text)
        folder = Path(authority).parent
        assert [path.name for path in folder.iterdir()] == ["ca.crt"]
        dump = get(usual[2], "/dump")[1].decode()
        for shown in (one.log, Path(authority).read_text(), dump):
            assert "PRIVATE KEY" not in shown
        children = one.children()
        assert children
        assert one.interrupt() == 0, one.log
        assert not folder.exists()
        for pid in children:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert " error " not in one.log and "Traceback" not in one.log, one.log


def test_to_serves_http_and_https_backends(tmp_path: Path) -> None:
    authority, other = Authority(), Authority("another")
    pair = authority.issue(["shop.example.com"])
    for name, data in (("cert.pem", pair.certificate), ("key.pem", pair.key), ("ca.pem", authority.pem)):  # fmt: skip
        (tmp_path / name).write_bytes(data)
    port = free_port()
    good = authority.server_context(authority.issue(["localhost"]))
    bad = other.server_context(other.issue(["localhost"]))
    with origin("plain") as plain, origin("secure", good) as secure, origin("forged", bad) as forged:  # fmt: skip
        backends = (f"http://127.0.0.1:{plain}", f"https://localhost:{secure}")
        options = [one for url in backends for one in ("--to", url)]
        options += ["--to-ca", "ca.pem", "--tls", "cert.pem,key.pem", "--host", "shop.example.com"]
        with running(tmp_path, "run", *options, "--listen", f"127.0.0.1:{port}", *proxy_options()) as one:  # fmt: skip
            one.wait_for("ready in")
            context = authority.client_context()
            answers = {ask(port, "shop.example.com", context) for _ in range(20)}
            host = "shop.example.com"
            assert answers == {(200, f"plain {host}"), (200, f"secure {host}")}, one.log
            assert ask(port, "other.example.com", context, "shop.example.com")[0] in (404, 421)
            assert one.interrupt() == 0, one.log
        # The authority of this certificate differs from --to-ca and from those of the system.
        for trust in (["--to-ca", "ca.pem"], []):
            port = free_port()
            options = ["--to", f"https://localhost:{forged}", *trust]
            with running(tmp_path, "run", *options, "--listen", f"127.0.0.1:{port}", *proxy_options()) as one:  # fmt: skip
                one.wait_for("ready in")
                status, body = get(port, "/")
                assert status in (502, 503) and b"forged" not in body, one.log


def test_the_authorities_of_the_system_verify_https_backends(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    port = free_port()
    # The TLS library reads the authorities of the system from this file.
    environment = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    context = authority.server_context(authority.issue(["localhost"]))
    with origin("secure", context) as secure:
        options = ["--to", f"https://localhost:{secure}", "--rewrite-host"]
        options += ["--listen", f"127.0.0.1:{port}", *proxy_options()]
        with running(tmp_path, "run", *options, environment=environment) as one:
            one.wait_for("ready in")
            assert get(port, "/") == (200, b"secure localhost"), one.log


def ask(port: int, host: str, context: ssl.SSLContext, sni: str = "") -> tuple[int, str]:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=END)
    with contextlib.closing(connection):
        raw = socket.create_connection(("127.0.0.1", port), END)
        connection.sock = context.wrap_socket(raw, server_hostname=sni or host)
        connection.request("GET", "/", headers={"host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_init_is_served(tmp_path: Path) -> None:
    folder = tmp_path / "gateway"
    assert call("init", str(folder)).status == 0
    port = free_port()
    with origin("web") as backend:
        for path, old, new in (("gateway.yaml", "port: 8080", f"port: {port}"), ("backend.yaml", "port: 3000", f"port: {backend}")):  # fmt: skip
            text = (folder / path).read_text()
            assert text.count(old) == 1
            (folder / path).write_text(text.replace(old, new))
        with running(folder, "run", "-f", ".", *proxy_options()) as one:
            one.wait_for("ready in")
            for path in ("/", "/admin"):
                status, body = get(port, path)
                assert (status, body.split()[0]) == (200, b"web"), one.log
            assert one.interrupt() == 0, one.log
