"""An authorisation server as a process of its own: `python authserver.py` prints its port and judges by the token it is shown.

In: requests. Out: 200 with `x-user` for "Bearer good-...", 401 for all others. Must never: let anybody else pass.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Any method."""

    protocol_version = "HTTP/1.1"

    def judge(self) -> None:
        """Answer by the token."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        token = self.headers.get("authorization", "")
        good = token.startswith("Bearer good-")
        self.send_response(200 if good else 401)
        if good:
            self.send_header("x-user", token.removeprefix("Bearer good-"))
        else:
            self.send_header("www-authenticate", "Bearer")
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = judge

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """One that many may connect to at once."""

    request_queue_size = 128


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
