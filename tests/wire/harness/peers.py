"""nginx and haproxy in the place of the proxy: differential peers, and a check of the harness itself.

In: the port of an origin. Out: the same two addresses a `Gateway` has (`web` and `void`). They run with one worker, their
defaults in all that concerns parsing, and no access log. Both are optional elsewhere; the wire suite needs them installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from wire.harness.client import Address, Client, NoResponse
from wire.harness.ports import free_port
from wire.harness.programs import ALONE

_NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/log info;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; }}
  client_header_timeout 5s; client_body_timeout 5s; proxy_read_timeout 5s; lingering_timeout 1s;
  server {{ listen 127.0.0.1:{web} backlog=4096; location / {{
    proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Host $http_host;
    proxy_set_header Connection ""; proxy_request_buffering off; }} }}
  server {{ listen 127.0.0.1:{void} backlog=4096; location / {{ return 404; }} }}
}}
"""

_HAPROXY = """
global
  maxconn 4000
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  timeout http-request 5s
  http-reuse always
frontend web
  bind 127.0.0.1:{web} backlog 4096
  default_backend origin
frontend void
  bind 127.0.0.1:{void} backlog 4096
  http-request return status 404
backend origin
  server s1 127.0.0.1:{origin}
"""


class Peer:
    """A running nginx or haproxy; a context manager."""

    strict = False

    def __init__(self, kind: str, origin: int) -> None:
        self.kind = kind
        self.folder = Path(tempfile.mkdtemp(prefix=f"edgefast-{kind}-"))
        self.web: Address = ("127.0.0.1", free_port())
        self.void: Address = ("127.0.0.1", free_port())
        text = _NGINX if kind == "nginx" else _HAPROXY
        self._config = self.folder / "conf"
        self._config.write_text(
            text.format(folder=self.folder, origin=origin, web=self.web[1], void=self.void[1])
        )
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Peer:
        program = shutil.which(self.kind, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
        assert program, f"{self.kind} is not installed (apt-get install nginx-light haproxy)"
        command = [program, "-c", str(self._config), "-p", str(self.folder)]
        if self.kind == "haproxy":
            command = [program, "-db", "-f", str(self._config)]
        with open(self.folder / "err", "wb") as err:
            self._process = subprocess.Popen(command, stdout=err, stderr=err, env=ALONE)
        end = time.monotonic() + 30
        while True:
            try:
                with Client(self.void, deadline=5) as client:
                    client.request()
                return self
            except (OSError, NoResponse):
                text = (self.folder / "err").read_text()
                assert self._process.poll() is None, f"{self.kind} ended: {text}"
                assert time.monotonic() < end, text
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
