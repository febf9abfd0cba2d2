"""A relying party of OpenID Connect Core 1.0: code flow with PKCE, refresh and logout, with Authlib and joserfc.

In: an issuer and a registered client. Out: URLs for the browser, verified tokens; `Refused` with the reason for
anything that a relying party must not accept. It is the oracle of these tests: it keeps every rule of section 3.1.3.7.
"""

from __future__ import annotations

import secrets
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.oauth2.client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from identity_provider.provider import Client
from identity_provider.user_agent import UserAgent

SCOPES = "openid email profile offline_access"
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA", "Ed25519")
#: The addresses of an application that no test connects to.
CALLBACK = "http://app.test/oauth2/callback"
AFTER_LOGOUT = "http://app.test/goodbye"
_DEADLINE = 60.0  # seconds for an answer of the provider, on a busy machine


class Refused(Exception):
    """The first argument is the reason as one word."""


@dataclass(frozen=True)
class Login:
    """One login between its start and its callback."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True)
class Tokens:
    """Verified tokens of one user."""

    claims: dict[str, Any]
    id_token: str
    access_token: str
    refresh_token: str


class RelyingParty:
    """Use as a context manager. `skew` is the tolerance of clocks in seconds."""

    def __init__(
        self,
        issuer: str,
        client: Client,
        *,
        trust: ssl.SSLContext | None = None,
        skew: int = 0,
    ) -> None:
        self._issuer, self._client, self._skew = issuer, client, skew
        self._http = httpx.Client(verify=trust or False, timeout=_DEADLINE)
        self._oauth = OAuth2Client(
            self._http,
            client.id,
            client.secret,
            scope=SCOPES,
            redirect_uri=client.redirect_uri,
            code_challenge_method="S256",
        )
        self._credentials = httpx.BasicAuth(client.id, client.secret)
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> RelyingParty:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_deadline(self, seconds: float) -> None:
        """Wait so long for answers of the provider from now on."""
        self._http.timeout = httpx.Timeout(seconds)

    def close(self) -> None:
        """Close the connections to the provider."""
        self._http.close()

    @property
    def metadata(self) -> dict[str, Any]:
        """The provider's metadata (OpenID Connect Discovery 1.0), fetched once."""
        if not self._metadata:
            found = self._get(f"{self._issuer}/.well-known/openid-configuration")
            if found.get("issuer") != self._issuer:
                raise Refused("issuer-mismatch")
            self._metadata = found
        return self._metadata

    def begin(self) -> Login:
        """Start a login."""
        nonce, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        url, state = self._oauth.create_authorization_url(
            self.metadata["authorization_endpoint"],
            nonce=nonce,
            code_verifier=verifier,
        )
        return Login(url, state, nonce, verifier)

    def finish(self, callback: str, login: Login) -> Tokens:
        """Exchange the code of a callback URL for tokens."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(callback).query).items()}
        if query.get("state") != login.state:
            raise Refused("state")
        if "error" in query:
            raise Refused(query["error"])
        sent = query.get("iss")
        if sent is None and self.metadata.get("authorization_response_iss_parameter_supported"):
            raise Refused("no-iss")
        if sent is not None and sent != self._issuer:
            raise Refused("iss")
        answer = self._ask(
            grant_type="authorization_code",
            code=query.get("code", ""),
            code_verifier=login.verifier,
        )
        for name in ("access_token", "id_token"):
            if name not in answer:
                raise Refused(f"no {name}")
        claims = self._verify(answer["id_token"], login.nonce)
        return Tokens(
            claims,
            answer["id_token"],
            answer["access_token"],
            answer.get("refresh_token", ""),
        )

    def refresh(self, tokens: Tokens) -> Tokens:
        """Get new tokens; an answer without an ID token keeps the one before (section 12.2)."""
        answer = self._ask(grant_type="refresh_token", refresh_token=tokens.refresh_token)
        if "access_token" not in answer:
            raise Refused("no access_token")
        id_token, claims = tokens.id_token, tokens.claims
        if "id_token" in answer:
            id_token = answer["id_token"]
            claims = self._verify(id_token, None)
            if claims["sub"] != tokens.claims["sub"]:
                raise Refused("sub")
        return Tokens(
            claims,
            id_token,
            answer["access_token"],
            answer.get("refresh_token", tokens.refresh_token),
        )

    def logout_url(self, tokens: Tokens) -> str:
        """Return where the browser goes for a logout (OpenID Connect RP-Initiated Logout 1.0)."""
        query = {
            "id_token_hint": tokens.id_token,
            "post_logout_redirect_uri": self._client.after_logout,
        }
        return f"{self.metadata['end_session_endpoint']}?{urlencode(query)}"

    def _ask(self, **form: str) -> dict[str, Any]:
        url = self.metadata["token_endpoint"]
        try:
            if form["grant_type"] == "refresh_token":
                # The granted scopes stay: a provider refuses those that it did not grant (RFC 6749 section 6).
                told = self._oauth.refresh_token(
                    url, form["refresh_token"], auth=self._credentials, scope=None
                )
            else:
                told = self._oauth.fetch_token(url, auth=self._credentials, **form)
            return dict(told)
        except AuthlibBaseError as error:
            raise Refused(error.error or "token") from error
        except httpx.TimeoutException as error:
            raise Refused("timeout") from error
        except (httpx.HTTPError, ValueError) as error:
            raise Refused("token") from error

    def _get(self, url: str) -> dict[str, Any]:
        try:
            answer = self._http.get(url)
            if answer.status_code != 200:
                raise Refused("status")
            return dict(answer.json())
        except httpx.TimeoutException as error:
            raise Refused("timeout") from error
        except (httpx.HTTPError, ValueError) as error:
            raise Refused("unreachable") from error

    def _verify(self, id_token: str, nonce: str | None) -> dict[str, Any]:
        published: Any = self._get(self.metadata["jwks_uri"])
        try:
            keys = KeySet.import_key_set(published)
            claims = jwt.decode(id_token, keys, algorithms=list(ALGORITHMS)).claims
        except (JoseError, ValueError) as error:
            raise Refused("signature") from error
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        now = time.time()
        checks = {
            "iss": claims.get("iss") == self._issuer,
            "aud": self._client.id in audiences,
            "azp": claims.get("azp", self._client.id) == self._client.id,
            "exp": claims.get("exp", 0) + self._skew > now,
            "iat": claims.get("iat", now + 1e9) - self._skew <= now + 1,
            "nonce": nonce is None or claims.get("nonce") == nonce,
            "sub": bool(claims.get("sub")),
        }
        for name, is_right in checks.items():
            if not is_right:
                raise Refused(name)
        return dict(claims)


def sign_in(agent: UserAgent, party: RelyingParty) -> Tokens:
    """Log a browser in at CALLBACK."""
    login = party.begin()
    return party.finish(agent.follow(login.url, until=CALLBACK).url, login)
