"""An admin server that answers what a test gives it, for the commands that ask one."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class AdminServer:
    """Use as a context manager."""

    def __init__(self, answers: dict[str, Any]) -> None:
        """`answers`: by path with query, or without for any; a value is JSON with status 200, a pair is (status, bytes)."""
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                plain = self.path.partition("?")[0]
                answer = answers.get(self.path, answers.get(plain, (404, b"not here\n")))
                status, body = (
                    answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())
                )
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.address = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
