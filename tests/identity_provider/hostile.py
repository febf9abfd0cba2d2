"""A provider that keeps the rules until a test switches one off.

In: `Switches`, which a test changes while it runs. Out: an issuer on loopback, and every call that reached it.
It checks what a careful provider checks: client credentials, PKCE, redirect URI, one use of each code and of each
refresh token. Must never wait longer than HOLD for a test that does not release it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_plus, urlencode

from identity_provider.hostile_tokens import sign, signing_key
from identity_provider.login_page import login_page
from identity_provider.provider import USER, Client
from identity_provider.web_server import Answer, Call, WebServer
from wire.harness.ports import free_port

HOLD = 60.0  # seconds
ENDPOINTS = {
    "/.well-known/openid-configuration": "discovery",
    "/keys": "keys",
    "/authorize": "authorize",
    "/token": "token",
    "/logout": "logout",
}
_JSON = {"content-type": "application/json", "cache-control": "no-store"}


@dataclass
class Switches:
    """Faults of the provider; the defaults are right. A value None removes a claim, a field or a parameter."""

    claims: dict[str, Any] = field(default_factory=dict)  # of ID tokens
    algorithm: str = "RS256"  # see hostile_tokens.sign
    publish_key: bool = True  # False: signs with a key that it does not publish
    id_token_bytes: int = 0  # least size of an ID token
    access_token_bytes: int = 0
    refresh_token_bytes: int = 0
    token_fields: dict[str, Any] = field(default_factory=dict)  # of answers of the token endpoint
    refresh: Literal["rotate", "keep", "refuse"] = "rotate"
    seconds: int = 3600  # how long access tokens and ID tokens are valid
    clock_offset: int = 0  # seconds that its clock is ahead
    callback: dict[str, str | None] = field(default_factory=dict)  # of redirects to the client
    metadata: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)  # endpoint -> in place of its answer
    held: set[str] = field(default_factory=set)  # endpoints that do not answer before `release`
    login_form: bool = False  # False: every browser is signed in as USER


@dataclass
class _Grant:
    client: Client
    user: str
    nonce: str
    challenge: str
    redirect_uri: str
    scope: str


class HostileProvider:
    """Use `stop` at the end. With `listening=False` its port is closed until `start`."""

    def __init__(
        self,
        *,
        host: str = "localhost",
        context: ssl.SSLContext | None = None,
        listening: bool = True,
    ) -> None:
        self._port = free_port()
        self.issuer = f"{'https' if context else 'http'}://{host}:{self._port}"
        self._context = context
        self.switches = Switches()
        self.calls: list[Call] = []
        self.reused_refresh_tokens = 0
        self._key = 0
        self._published = [0]
        self._clients: dict[str, Client] = {}
        self._codes: dict[str, _Grant] = {}
        self._refresh_tokens: dict[str, _Grant] = {}
        self._used_refresh_tokens: set[str] = set()
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server: WebServer | None = None
        if listening:
            self.start()

    # --- what a test does ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen."""
        self._released = threading.Event()
        self._server = WebServer(self._answer, self._port, self._context)

    def stop(self) -> None:
        """Close the port; calls that are held end without an answer."""
        self._released.set()
        if self._server is not None:
            self._server.close()
            self._server = None

    def reset(self) -> None:
        """Switch everything back; keys, clients and tokens stay."""
        self.release()
        self.switches = Switches()
        self.calls.clear()
        self.reused_refresh_tokens = 0

    def register(self, redirect_uri: str, after_logout: str) -> Client:
        """Register a client; see `IdentityProvider`."""
        client = Client(
            f"client-{len(self._clients)}", secrets.token_urlsafe(24), redirect_uri, after_logout
        )
        self._clients[client.id] = client
        return client

    def rotate_keys(self, *, keep: bool = True) -> None:
        """Sign with a new key. `keep`: the keys before are still published."""
        self._key += 1
        self._published = [*(self._published if keep else []), self._key]

    def release(self) -> None:
        """Answer the calls that are held, and hold no more."""
        self.switches.held = set()
        before, self._released = self._released, threading.Event()
        before.set()

    def count(self, endpoint: str) -> int:
        """Return how many calls an endpoint got; "other" is any other path."""
        return sum(call.endpoint == endpoint for call in self.calls)

    def wait_for_calls(self, endpoint: str, number: int, deadline: float = 20.0) -> None:
        """Wait until an endpoint got so many calls; AssertionError after the deadline (seconds)."""
        end = time.monotonic() + deadline
        while self.count(endpoint) < number:
            assert time.monotonic() < end, f"{self.count(endpoint)} calls of {endpoint}"
            time.sleep(0.01)

    def last(self, endpoint: str) -> Call:
        """Return the newest call of an endpoint."""
        return next(call for call in reversed(self.calls) if call.endpoint == endpoint)

    # --- endpoints ----------------------------------------------------------------------------------------------

    def _answer(self, call: Call) -> Answer | None:
        call.endpoint = ENDPOINTS.get(call.path, "other")
        released = self._released
        with self._lock:
            self.calls.append(call)
        if call.endpoint in self.switches.held:
            released.wait(HOLD)
            if self._server is None:
                return None
        if (own := self.switches.answers.get(call.endpoint)) is not None:
            return own
        with self._lock:
            if call.endpoint == "other":
                return Answer(404)
            answer: Answer = getattr(self, f"_{call.endpoint}")(call)
            return answer

    def _discovery(self, _: Call) -> Answer:
        metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _json(_replace(metadata, self.switches.metadata))

    def _keys(self, _: Call) -> Answer:
        numbers = self._published
        if not self.switches.publish_key:
            numbers = [number for number in numbers if number != self._key]
        keys = [
            signing_key(algorithm, number).as_dict(private=False)
            for number in numbers
            for algorithm in ("RS256", "ES256")
        ]
        return _json({"keys": keys})

    def _authorize(self, call: Call) -> Answer:
        asked = call.query
        client = self._clients.get(asked.get("client_id", ""))
        if client is None or asked.get("redirect_uri") != client.redirect_uri:
            return Answer(400, b"unknown client or redirect URI")
        if asked.get("code_challenge_method") != "S256" or asked.get("response_type") != "code":
            return Answer(400, b"not a code flow with PKCE S256")
        if self.switches.login_form and "username" not in call.form:
            return login_page()
        code = secrets.token_urlsafe(24)
        self._codes[code] = _Grant(
            client,
            call.form.get("username", USER),
            asked.get("nonce", ""),
            asked["code_challenge"],
            client.redirect_uri,
            asked.get("scope", ""),
        )
        given = {"code": code, "state": asked.get("state", ""), "iss": self.issuer}
        query = urlencode(_replace(given, self.switches.callback))
        mark = "&" if "?" in client.redirect_uri else "?"
        return Answer(302, headers={"location": f"{client.redirect_uri}{mark}{query}"})

    def _token(self, call: Call) -> Answer:
        client = self._authenticate(call)
        if client is None:
            return _error("invalid_client", 401)
        form = call.form
        if form.get("grant_type") == "refresh_token":
            return self._refresh(client, form.get("refresh_token", ""))
        grant = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            grant is None
            or grant.client != client
            or form.get("redirect_uri") != grant.redirect_uri
            or challenge != grant.challenge
        ):
            return _error("invalid_grant")
        return self._tokens(grant, grant.nonce)

    def _refresh(self, client: Client, token: str) -> Answer:
        if token in self._used_refresh_tokens:
            self.reused_refresh_tokens += 1
        grant = self._refresh_tokens.get(token)
        if grant is None or grant.client != client or self.switches.refresh == "refuse":
            return _error("invalid_grant")
        if self.switches.refresh == "keep":
            return self._tokens(grant, None, refresh_token=None)
        del self._refresh_tokens[token]
        self._used_refresh_tokens.add(token)
        return self._tokens(grant, None)

    def _tokens(self, grant: _Grant, nonce: str | None, **fields: Any) -> Answer:
        switches = self.switches
        now = int(time.time()) + switches.clock_offset
        claims = {
            "iss": self.issuer,
            "sub": grant.user,
            "aud": grant.client.id,
            "iat": now,
            "exp": now + switches.seconds,
            "nonce": nonce,
            "email": f"{grant.user}@example.com",
            "groups": ["staff"],
        }
        refresh_token = _token_text(switches.refresh_token_bytes)
        self._refresh_tokens[refresh_token] = grant
        given = {
            "token_type": "Bearer",
            "expires_in": switches.seconds,
            "scope": grant.scope,
            "access_token": _token_text(switches.access_token_bytes),
            "refresh_token": refresh_token,
            "id_token": self._id_token(_replace(claims, switches.claims), grant.client),
        }
        return _json(_replace(_replace(given, fields), switches.token_fields))

    def _id_token(self, claims: dict[str, Any], client: Client) -> str:
        switches = self.switches
        present = {name: value for name, value in claims.items() if value is not None}
        token = sign(present, switches.algorithm, self._key, client.secret)
        missing = switches.id_token_bytes - len(token)
        if missing > 0:
            # Base64 makes four characters of three; token_hex makes two of each byte.
            present["padding"] = secrets.token_hex(missing * 3 // 8 + 1)
            token = sign(present, switches.algorithm, self._key, client.secret)
        return token

    def _authenticate(self, call: Call) -> Client | None:
        name, secret = call.form.get("client_id", ""), call.form.get("client_secret", "")
        scheme, _, credentials = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            raw = base64.b64decode(credentials).decode()
            name, secret = map(unquote_plus, raw.split(":", 1))
        client = self._clients.get(name)
        return client if client is not None and client.secret == secret else None

    def _logout(self, call: Call) -> Answer:
        target = call.query.get("post_logout_redirect_uri", "")
        if not call.query.get("id_token_hint") or not self._is_known(target):
            return Answer(400, b"no id_token_hint, or an unknown post_logout_redirect_uri")
        more = {"state": call.query["state"]} if "state" in call.query else {}
        return Answer(302, headers={"location": f"{target}?{urlencode(more)}" if more else target})

    def _is_known(self, target: str) -> bool:
        return any(one.after_logout == target for one in self._clients.values())


def _token_text(size: int) -> str:
    text = secrets.token_urlsafe(32)
    return text + secrets.token_hex(max(0, size - len(text) + 1) // 2)


def _replace(values: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    merged = {**values, **other}
    return {name: value for name, value in merged.items() if value is not None}


def _json(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), dict(_JSON))


def _error(name: str, status: int = 400) -> Answer:
    return _json({"error": name}, status)
