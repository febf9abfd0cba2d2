"""An identity provider for the row about logins, and the cookies of a session at each proxy.

In: a proxy with its policy. Out: the value of `Cookie` with a session: of edgefast by a login at this provider, of Envoy with its
documented cookies, which the bench writes with the HMAC secret. Both sessions have the same tokens. The provider runs in the bench's
process, and nothing is asked of it while a proxy is measured.
Source: envoy.extensions.filters.http.oauth2.v3, OpenID Connect Core 1.0. Must never be looked at by requests of a load.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from bench.credentials import make_key_set, sign
from bench.peers.peer import Running
from bench.policy_ranges import CLIENT

CLIENT_ID, CLIENT_SECRET, HMAC_SECRET = "bench", "bench-secret", "bench-hmac-secret"
CALLBACK = "/get/kept/callback"
_SECONDS = 3600
_ACCESS, _REFRESH = "3f2c9a4e7b1d" * 4, "8e5d0c6a2f4b" * 4


class _Handler(BaseHTTPRequestHandler):
    """Discovery, keys and tokens; each code is the nonce of its login."""

    def do_GET(self) -> None:
        """Answer with the discovery document, or the keys."""
        issuer = get_issuer()
        document = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "jwks_uri": f"{issuer}/keys",
        }
        self._send(make_key_set() if self.path == "/keys" else json.dumps(document))

    def do_POST(self) -> None:
        """Answer with tokens."""
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        tokens = {
            "token_type": "Bearer",
            "access_token": _ACCESS,
            "refresh_token": _REFRESH,
            "id_token": make_id_token(form["code"][0]),
            "expires_in": _SECONDS,
        }
        self._send(json.dumps(tokens))

    def _send(self, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@cache
def get_port() -> int:
    """Start the provider once; it ends with the process."""
    server = ThreadingHTTPServer((CLIENT, 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def get_issuer() -> str:
    """The provider's issuer, which is also where it answers."""
    return f"http://{CLIENT}:{get_port()}"


def make_id_token(nonce: str) -> str:
    """An ID token about as large as those of providers."""
    now = int(time.time())
    claims = {
        "iss": get_issuer(),
        "aud": CLIENT_ID,
        "sub": "5f0c8a52-7a57-4a5c-9d0c-6a1f3f4f8b11",
        "iat": now,
        "exp": now + _SECONDS,
        "nonce": nonce,
        "email": "ann@example.com",
        "groups": ["staff", "sales", "admins"],
    }
    return sign(claims, "ES256")


def find_cookies(running: Running) -> str:
    """The cookies of a session; "" if the proxy gives none."""
    host = running.setup.scenario.make_route(0).host
    if running.peer.name == "envoy":
        return _write_envoy_cookies(host)
    status, headers = _get(running, "/get/kept", {"Host": host, "Accept": "text/html"})
    if status != 302:
        return ""
    asked = parse_qs(urlsplit(headers.get("location", [""])[0]).query)
    state = headers["set-cookie"][0].partition(";")[0]
    query = urlencode({"code": asked["nonce"][0], "state": asked["state"][0]})
    status, headers = _get(running, f"{CALLBACK}?{query}", {"Host": host, "Cookie": state})
    cookies = [one.partition(";")[0] for one in headers.get("set-cookie", []) if "session" in one]
    return "; ".join(cookies) if status == 302 else ""


def _get(running: Running, path: str, headers: dict[str, str]) -> tuple[int, dict[str, list[str]]]:
    client = http.client.HTTPConnection(CLIENT, running.setup.port, timeout=5)
    try:
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        answer.read()
        found: dict[str, list[str]] = {}
        for name, value in answer.getheaders():
            found.setdefault(name.lower(), []).append(value)
        return answer.status, found
    except (OSError, http.client.HTTPException):
        return 0, {}
    finally:
        client.close()


def _write_envoy_cookies(host: str) -> str:
    expires = str(int(time.time()) + _SECONDS)
    tokens = (_ACCESS, make_id_token("n" * 22), _REFRESH)
    text = "\n".join((host, expires, *tokens)).encode()
    digest = hmac.new(HMAC_SECRET.encode(), text, hashlib.sha256).digest()
    names = ("BearerToken", "IdToken", "RefreshToken")
    cookies = [
        f"OauthHMAC={base64.b64encode(digest).decode()}",
        f"OauthExpires={expires}",
        *(f"{name}={_encrypt(one)}" for name, one in zip(names, tokens, strict=True)),
    ]
    return "; ".join(cookies)


def _encrypt(token: str) -> str:
    """As Envoy does by default: AES-256-CBC, its key the SHA-256 of the HMAC secret."""
    vector = os.urandom(16)
    padder = PKCS7(128).padder()
    padded = padder.update(token.encode()) + padder.finalize()
    key = hashlib.sha256(HMAC_SECRET.encode()).digest()
    cipher = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    made = vector + cipher.update(padded) + cipher.finalize()
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()
