"""The pages that Hydra's operator writes: a login form; consent and logout are accepted at once.

Each page reports to Hydra's admin API, and redirects to the URL of its answer.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

FORM = (
    "<!doctype html><title>Sign in</title><form method=post>"
    "<input name=username><input name=password type=password><button>Sign in</button></form>"
)
_DEADLINE = 20.0


class HydraPages:
    """A server on loopback; `url` is its address without a path."""

    def __init__(self, admin: str) -> None:
        pages = self
        self._admin = admin

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                form = parse_qs(self.rfile.read(size).decode())
                self._answer({name: values[0] for name, values in form.items()})

            def _answer(self, form: dict[str, str]) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                location = pages.decide(parts.path, query, form)
                body = b"" if location else FORM.encode()
                self.send_response(303 if location else 200)
                if location:
                    self.send_header("location", location)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://localhost:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def decide(self, path: str, query: dict[str, str], form: dict[str, str]) -> str:
        """Return where a request goes on; "" shows the login form."""
        kind = path.strip("/")
        challenge = query[f"{kind}_challenge"]
        if kind == "login":
            asked = self._ask("GET", kind, challenge)
            if asked["skip"]:
                return self._accept(kind, challenge, subject=asked["subject"])
            if "username" not in form:
                return ""
            return self._accept(
                kind, challenge, subject=form["username"], remember=True, remember_for=3600
            )
        if kind == "consent":
            asked = self._ask("GET", kind, challenge)
            claims = {"email": f"{asked['subject']}@example.com", "groups": ["staff"]}
            return self._accept(
                kind,
                challenge,
                grant_scope=asked["requested_scope"],
                grant_access_token_audience=asked["requested_access_token_audience"],
                session={"id_token": claims},
            )
        assert kind == "logout", path
        return self._accept(kind, challenge)

    def _ask(self, method: str, kind: str, challenge: str, step: str = "", **body: Any) -> Any:
        answer = httpx.request(
            method,
            f"{self._admin}/admin/oauth2/auth/requests/{kind}{step}",
            params={f"{kind}_challenge": challenge},
            json=body or None,
            timeout=_DEADLINE,
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _accept(self, kind: str, challenge: str, **body: Any) -> str:
        return str(self._ask("PUT", kind, challenge, "/accept", **body)["redirect_to"])

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
