"""An identity provider for tests: a real HTTP server with keys of its own, which a test can make misbehave.

In: a discovery request, an authorization request that a test hands over (`authorize`), a code or a refresh token. Out: tokens as OpenID
Connect Core has them. It verifies PKCE, the client's secret and the redirect URI, accepts a code once, and rotates refresh tokens.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.auth.jwt import issuer

CLIENT, SECRET = "shop", "p%ss word:1"


class Provider:
    """One provider. Attributes are what a test changes."""

    def __init__(self) -> None:
        self.keys = [issuer.jwk("ES256", kid="one")]
        self.signs_with = (0, "one")
        self.claims: dict[str, Any] = {}  # over those of an ID token; None takes one away
        self.response: dict[str, Any] = {}  # over the members of a token response
        self.document: dict[str, Any] = {}  # over the members of the discovery document
        self.lifetime: int | None = 300
        self.token_status = 200
        self.delay = 0.0
        self.down = False
        self.codes: dict[str, dict[str, str]] = {}
        self.refresh_tokens: set[str] = set()
        self.posts: list[dict[str, str]] = []
        self.revoked: list[dict[str, str]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._get(self)

            def do_POST(self) -> None:
                provider._post(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self.issuer = f"http://127.0.0.1:{self.port}/realm"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- the browser's side ---------------------------------------------------------------------------------------

    def authorize(self, location: str) -> dict[str, str]:
        """Log in at the address to which the proxy redirects; returns the parameters of the callback."""
        parts = urlsplit(location)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        wanted = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert wanted["response_type"] == "code" and wanted["client_id"] == CLIENT
        assert wanted["code_challenge_method"] == "S256" and "openid" in wanted["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = wanted
        return {"code": code, "state": wanted["state"]}

    # --- the proxy's side -----------------------------------------------------------------------------------------

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        if self.down:
            return self._send(request, 503, {})
        if request.path == "/realm/.well-known/openid-configuration":
            document = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "end_session_endpoint": f"{self.issuer}/end",
                "revocation_endpoint": f"{self.issuer}/revoke",
                **self.document,
            }
            return self._send(request, 200, document)
        if request.path == "/realm/keys":
            return self._send(request, 200, {"keys": self.keys})
        return self._send(request, 404, {})

    def _post(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("content-length", "0"))
        form = {name: one[0] for name, one in parse_qs(request.rfile.read(length).decode()).items()}
        if request.path != "/realm/revoke":
            self.posts.append(form)
        if self.delay:
            time.sleep(self.delay)
        if self.down:
            return self._send(request, 503, {})
        if self.token_status != 200:
            return self._send(request, self.token_status, {"error": "invalid_request"})
        scheme, _, pair = request.headers.get("authorization", "").partition(" ")
        name, _, secret = b64decode(pair).decode().partition(":")
        if scheme != "Basic" or (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            return self._send(request, 401, {"error": "invalid_client"})
        if request.path == "/realm/revoke":
            self.revoked.append(form)
            return self._send(request, 200, {})
        if form["grant_type"] == "authorization_code":
            wanted = self.codes.pop(form["code"], None)
            made = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            if (
                wanted is None
                or made.rstrip(b"=").decode() != wanted["code_challenge"]
                or form["redirect_uri"] != wanted["redirect_uri"]
            ):
                return self._send(request, 400, {"error": "invalid_grant"})
            return self._send(request, 200, self._tokens(wanted["nonce"]))
        if form["refresh_token"] not in self.refresh_tokens:
            return self._send(request, 400, {"error": "invalid_grant"})
        self.refresh_tokens.remove(form["refresh_token"])
        return self._send(request, 200, self._tokens(None))

    def _tokens(self, nonce: str | None) -> dict[str, Any]:
        now = int(time.time())
        said = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "jane",
            "iat": now,
            "exp": now + (self.lifetime or 300),
            "nonce": nonce,
            **self.claims,
        }
        number, kid = self.signs_with
        refresh = secrets.token_urlsafe(16)
        self.refresh_tokens.add(refresh)
        made = {
            "token_type": "Bearer",
            "access_token": f"access-{secrets.token_urlsafe(8)}",
            "refresh_token": refresh,
            "expires_in": self.lifetime,
            "id_token": issuer.token("ES256", number, {"kid": kid}, **said).decode(),
            **self.response,
        }
        return {name: value for name, value in made.items() if value is not None}

    def _send(self, request: BaseHTTPRequestHandler, status: int, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode()
        request.send_response(status)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
