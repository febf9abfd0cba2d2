"""Parts of a test bench for controllers: a process with its log, an origin, waiting with a deadline."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from wire.harness.certificates import Pair

DEADLINE = 60.0  # seconds: against hangs
GATEWAY_API = "gateway.networking.k8s.io/v1"


def wait_for(what: str, until: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """Poll until something is true; return it."""
    end = time.monotonic() + seconds
    while True:
        found = until()
        if found:
            return found
        assert time.monotonic() < end, f"not after {seconds:g} s: {what}"
        time.sleep(0.02)


def own_address() -> str:
    """Return this machine's address: EndpointSlices may not have loopback ones. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])


class Process:
    """One process with its log in a file."""

    def __init__(self, name: str, folder: Path, *command: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.started_at = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.getcwd()},
            )

    def text(self) -> str:
        """The log of this start."""
        return self.log.read_text()[self.started_at :]

    def find(self, pattern: str) -> str:
        """Wait for a line and return its first group."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, f"{self.name} ended:\n{self.text()[-4000:]}"
            return re.search(pattern, self.text())

        found: re.Match[str] = wait_for(f"{self.name}: {pattern}", look)
        return found.group(1)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Signal it and wait for its end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
            raise


class Origin:
    """An HTTP server that says its name; with a certificate, an HTTPS server that shows it."""

    def __init__(self, name: str, pair: Pair | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = name.encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((own_address(), 0), Handler)
        self._server.daemon_threads = True
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            pair.load_into(context)
            # Handshakes are for the thread of each connection, not for the one that accepts.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
