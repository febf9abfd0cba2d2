"""Login client: what a policy with `oidc` does with a request, a callback and the tokens of a provider.

In: ir.Oidc, requests, metadata and tokens of the provider, the outcome of the ID token's check
(edgefast/auth/jwt), the time. Out: one of

    Admission   the request has a session; header lines for its backend, cookies for its answer
    Reply       the answer: a redirect to the provider or back from it, 401, 403, 503
    TokenCall   tokens are required first; `finish` decides with them

A session needs no provider: it stays valid while the provider is down.
Source: OpenID Connect Core 1.0 sections 3.1.2.7, 3.1.3.7 and 12.2; RP-Initiated Logout 1.0.
Must never: admit a request without a session, or reveal more of a failure than one word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from edgefast.auth.jwt.claim_access import header_lines
from edgefast.auth.jwt.compact import Malformed, read_token
from edgefast.auth.jwt.token_check import LINES_LIMIT
from edgefast.auth.oidc.cookie_cipher import CookieCipher, SecretRing
from edgefast.auth.oidc.cookie_names import client_scope, session_name, state_name
from edgefast.auth.oidc.login_session import (
    LoginSession,
    join_chunks,
    names_of_session,
    open_session,
    seal_session,
)
from edgefast.auth.oidc.login_state import (
    LoginState,
    authorization_url,
    name_of_state,
    oldest_states,
    open_state,
    parse_callback,
    seal_state,
    start_state,
)
from edgefast.auth.oidc.navigation import is_navigation, is_same_site
from edgefast.auth.oidc.provider_metadata import ProviderMetadata
from edgefast.auth.oidc.token_response import TokenResponse
from edgefast.ir.oidc import DeniedRedirect, Oidc

__all__ = ["Admission", "LoginClient", "LoginRequest", "Reply", "TokenCall"]

#: Seconds before the end of tokens when new ones are requested: at most this, and a part of their life.
_AHEAD = 60.0
_AHEAD_PART = 5
#: Seconds that a session with valid tokens goes on after its refresh failed, until the next try.
_AGAIN = 10.0
#: A session ends this many session lifetimes after its login, however often it is refreshed.
_LIFETIMES = 4
#: Seconds that tokens count at most.
_LONGEST = 400 * 86_400.0
#: Characters of an ID token that logout sends to the provider.
_HINT_LIMIT = 4096
#: Statuses of a Reply for an ID token that is not good, by the word of its check; others are 401.
_STATUS = {"audience": 403, "keys": 503, "busy": 503}
#: Words of failures that end by themselves.
_LATER = ("provider", "keys", "busy")


class LoginRequest(NamedTuple):
    """A request without a known session."""

    method: str
    origin: str  # "https://shop.example.com"
    path: str  # as the router matched it
    query: str  # "": none
    target: str  # path and query as they came
    headers: Mapping[str, str]  # lower case
    cookies: dict[str, str]
    grpc: bool = False


class Admission(NamedTuple):
    """The request has a session."""

    claims: dict[str, Any]
    lines: bytes  # header lines for the backend
    until: float  # Unix seconds; the same cookies mean the same until then; 0.0: this time only
    cookies: tuple[str, ...] = ()  # values of Set-Cookie


class Reply(NamedTuple):
    """The answer of the proxy."""

    status: int
    word: str  # for logs
    location: str = ""
    cookies: tuple[str, ...] = ()
    page: bool = False  # a page that goes to `location`, in place of a redirect
    revocation: TokenCall | None = None  # of a refresh token; the answer does not wait for it


class TokenCall(NamedTuple):
    """Tokens that the provider has to give."""

    code: str = ""  # of a login, with these
    redirect_uri: str = ""
    verifier: str = ""
    refresh_token: str = ""  # or of a session
    state: LoginState | None = None
    session: LoginSession | None = None
    revokes: bool = False  # the refresh token, in place of a refresh

    def __repr__(self) -> str:
        return "TokenCall(<redacted>)"


class LoginClient:
    """One client at one provider."""

    def __init__(self, spec: Oidc, ring: SecretRing, random: Callable[[int], bytes]) -> None:
        self.spec = spec
        self.issuer = spec.remote.issuer
        self._random = random
        self.scope = client_scope(spec)
        self._cipher = CookieCipher(ring, self.scope, random)
        self.session_name, self.state_name = session_name(spec), state_name(spec)
        self.session_names = names_of_session(self.session_name)

    def owns(self, cookie: str) -> bool:
        """Tell whether a cookie belongs to this client: backends never get it."""
        return cookie in self.session_names or cookie.startswith(self.state_name + "-")

    def chunks(self, cookies: Mapping[str, str]) -> str:
        """Return the sealed session of a request; "": it has none."""
        return join_chunks(self.session_name, cookies)

    # --- a request --------------------------------------------------------------------------------------------------

    def decide(
        self, request: LoginRequest, metadata: ProviderMetadata | None, now: float
    ) -> Admission | Reply | TokenCall:
        """Decide about a request; `metadata` None: nothing is known of the provider."""
        if request.path == self.spec.logout_path and request.method in ("GET", "POST"):
            return self._log_out(request, metadata, now)
        if request.path == self.spec.callback_path and request.method == "GET":
            callback = parse_callback(request.query)
            if callback is not None:
                return self._on_callback(request, metadata, now)
        opened = open_session(self._cipher, self.chunks(request.cookies), now)
        if opened is None:
            return self._start(request, metadata, now, "missing")
        session = opened.session
        if session.refresh_at and now >= session.refresh_at:
            return TokenCall(refresh_token=session.refresh_token, session=session)
        if now >= session.expires:
            return self._start(request, metadata, now, "expired")
        return self._admit(session, now, fresh=opened.stale, request=request)

    def _start(
        self, request: LoginRequest, metadata: ProviderMetadata | None, now: float, word: str
    ) -> Reply:
        """Send a browser to the provider."""
        if request.grpc or not is_navigation(request.method, request.headers):
            return Reply(401, word)
        if any(_is_denied(one, request.headers) for one in self.spec.denied_redirects):
            return Reply(401, word)
        if metadata is None:
            return Reply(503, "provider")
        spec = self.spec
        redirect_uri = (spec.callback_origin or request.origin) + spec.callback_path
        lifetime = spec.login_lifetime / 1000
        state = start_state(
            request.origin, request.target, redirect_uri, now, lifetime, self._random
        )
        value = seal_state(self._cipher, state)
        if not value:
            return Reply(503, "cookie_keys")
        endpoint = spec.authorization_endpoint or metadata.authorization_endpoint
        name = name_of_state(self.state_name, state.id)
        gone = oldest_states(self.state_name, request.cookies, len(name) + len(value))
        cookies = [self._cookie(name, value, lifetime, "Lax"), *map(self._removed, gone)]
        location = authorization_url(endpoint, spec.client_id, spec.scopes, spec.resources, state)
        return Reply(302, word, location, tuple(cookies))

    def _on_callback(
        self, request: LoginRequest, metadata: ProviderMetadata | None, now: float
    ) -> Reply | TokenCall:
        callback = parse_callback(request.query)
        assert callback is not None
        state = open_state(self._cipher, self.state_name, request.cookies, callback.state, now)
        if state is None or state.redirect_uri != self._callback_uri(request, state):
            if open_session(self._cipher, self.chunks(request.cookies), now) is not None:
                return Reply(302, "state", "/")  # a page that was called again
            return Reply(400, "state")
        if metadata is None:  # it decides whether `iss` is required
            return Reply(503, "provider")
        removed = (self._removed(name_of_state(self.state_name, state.id)),)
        if (callback.issuer or metadata.names_issuer) and callback.issuer != self.issuer:
            return Reply(401, "issuer", cookies=removed)
        if callback.error:
            busy = callback.error in ("server_error", "temporarily_unavailable")
            return Reply(503 if busy else 403, "refused", cookies=removed)
        return TokenCall(callback.code, state.redirect_uri, state.verifier, state=state)

    def _callback_uri(self, request: LoginRequest, state: LoginState) -> str:
        """Return the address at which the callback came, with the scheme that the browser used."""
        scheme = state.redirect_uri.partition("://")[0]
        return f"{scheme}://{request.origin.partition('://')[2]}{request.path}"

    def _log_out(
        self, request: LoginRequest, metadata: ProviderMetadata | None, now: float
    ) -> Reply:
        if not is_same_site(request.origin, request.headers):
            return Reply(403, "cross_site")
        opened = open_session(self._cipher, self.chunks(request.cookies), now)
        here = request.origin + "/"
        end = self.spec.end_session_endpoint or (metadata.end_session_endpoint if metadata else "")
        location = here
        if end:
            fields = {"client_id": self.spec.client_id, "post_logout_redirect_uri": here}
            token = opened.session.id_token if opened is not None else ""
            if token and len(token) <= _HINT_LIMIT:
                fields = {"id_token_hint": token, **fields}
            location = f"{end}{'&' if '?' in end else '?'}{urlencode(fields)}"
        names = [one for one in request.cookies if self.owns(one)] or [self.session_name]
        cookies = tuple(map(self._removed, names))
        token = opened.session.refresh_token if opened is not None else ""
        revocation = None
        if token and metadata is not None and metadata.revocation_endpoint:
            revocation = TokenCall(refresh_token=token, revokes=True)
        status = 302 if request.method == "GET" else 303
        return Reply(status, "logout", location, cookies, revocation=revocation)

    # --- tokens -----------------------------------------------------------------------------------------------------

    def finish(
        self,
        request: LoginRequest,
        call: TokenCall,
        response: TokenResponse,
        claims: dict[str, Any] | None,
        now: float,
    ) -> Admission | Reply:
        """Decide with tokens; `claims`: of the verified ID token, None if the response has none."""
        if call.state is not None:
            return self._log_in(request, call.state, response, claims, now)
        session = call.session
        assert session is not None
        if claims is not None:
            before = _claims_of(session.id_token)
            same = all(claims.get(one) == before.get(one) for one in ("iss", "sub"))
            if not same or self._why_not(claims, None):
                return self._end(request, "subject")
        made = self._make(response, claims, session, now)
        admission = self._admit(made, now, fresh=True, request=request)
        if isinstance(admission, Admission) and not admission.cookies:
            return self._end(request, "session_size")  # its refresh token is used up
        return admission

    def _log_in(
        self,
        request: LoginRequest,
        state: LoginState,
        response: TokenResponse,
        claims: dict[str, Any] | None,
        now: float,
    ) -> Reply:
        removed = self._removed(name_of_state(self.state_name, state.id))
        word = self._why_not(claims, state.nonce) if claims is not None else "id_token"
        if word:
            return Reply(401, word, cookies=(removed,))
        session = self._make(response, claims, None, now)
        cookies = self._session_cookies(session, now, request.cookies)
        if not cookies:
            return Reply(500, "session_size", cookies=(removed,))
        target = "/" + state.target.lstrip("/\\")  # "//other.example" is another host
        if state.origin.partition("://")[2] != request.origin.partition("://")[2]:
            target = state.origin + target
        strict = self.spec.same_site == "Strict"
        return Reply(200 if strict else 302, "login", target, (removed, *cookies), page=strict)

    def on_failure(
        self,
        request: LoginRequest,
        call: TokenCall,
        metadata: ProviderMetadata | None,
        now: float,
        *,
        rejected: bool,
        word: str = "provider",
        sent: bool = True,
    ) -> Admission | Reply:
        """Decide without tokens.

        `rejected`: the provider does not accept the code or token; `sent`: it may have got the code,
        which is valid once. A login goes on if it did not.
        """
        if call.state is not None:
            name = name_of_state(self.state_name, call.state.id)
            cookies = (self._removed(name),) if sent else ()
            if rejected:
                return Reply(403, "code", cookies=cookies)
            return Reply(_STATUS.get(word, 401) if word != "provider" else 503, word, "", cookies)
        session = call.session
        assert session is not None
        if now < session.expires:  # another replica may have used the refresh token before
            return self._admit(session, now, fresh=False, request=request, last=now + _AGAIN)
        if rejected or word not in _LATER:
            return self._end(request, "expired", metadata, now)
        return Reply(503, word)

    def _end(
        self,
        request: LoginRequest,
        word: str,
        metadata: ProviderMetadata | None = None,
        now: float = 0.0,
    ) -> Reply:
        """End a session; the browser logs in again where it can."""
        reply = (
            self._start(request, metadata, now, word) if metadata is not None else Reply(401, word)
        )
        names = [one for one in self.session_names if one in request.cookies]
        return reply._replace(cookies=(*reply.cookies, *map(self._removed, names)))

    def _why_not(self, claims: dict[str, Any], nonce: str | None) -> str:
        """Return why a verified ID token is not for this login, "" if it is."""
        if nonce is not None and claims.get("nonce") != nonce:
            return "nonce"
        party, audience = claims.get("azp"), claims.get("aud")
        several = isinstance(audience, list) and len(audience) > 1
        if (party is not None or several) and party != self.spec.client_id:
            return "azp"
        subject = claims.get("sub")
        return "" if isinstance(subject, str) and subject else "subject"

    def _make(
        self,
        response: TokenResponse,
        claims: dict[str, Any] | None,
        before: LoginSession | None,
        now: float,
    ) -> LoginSession:
        spec = self.spec
        whole = spec.session_lifetime / 1000
        life = float(response.expires_in) or spec.token_lifetime / 1000
        if not life:
            expiry = claims.get("exp") if claims is not None else None
            life = 60.0
            if isinstance(expiry, int | float):
                life = max(1.0, min(expiry, now + _LONGEST) - now)
        life = min(life, whole)
        refresh = response.refresh_token or (before.refresh_token if before is not None else "")
        refresh = refresh if spec.refresh else ""
        began = before.began if before is not None else now
        limit = began + _LIFETIMES * whole
        ends = min(now + (whole if refresh else life), limit)
        if before is not None and not response.refresh_token:
            ends = max(before.ends, min(now + life, limit))
        return LoginSession(
            id_token=response.id_token or (before.id_token if before is not None else ""),
            access_token=response.access_token if spec.forward_access_token else "",
            refresh_token=refresh,
            began=began,
            expires=now + life,
            refresh_at=now + life - min(_AHEAD, life / _AHEAD_PART) if refresh else 0.0,
            ends=ends,
        )

    # --- a session --------------------------------------------------------------------------------------------------

    def _admit(
        self,
        session: LoginSession,
        now: float,
        *,
        fresh: bool,
        request: LoginRequest,
        last: float = 0.0,
    ) -> Admission | Reply:
        """`fresh`: the browser gets new cookies; `last`: Unix seconds, look again then."""
        claims = _claims_of(session.id_token)
        lines = header_lines(self.spec.claim_headers, claims)
        if len(lines) > LINES_LIMIT:
            return Reply(401, "claims_size")  # a part of them would be another statement
        if session.access_token and self.spec.forward_access_token:
            lines += b"authorization: Bearer %b\r\n" % session.access_token.encode()
        if self.spec.id_token_header:
            name = self.spec.id_token_header
            prefix = "Bearer " if name == "authorization" else ""
            lines += f"{name}: {prefix}{session.id_token}\r\n".encode()
        if fresh:
            cookies = self._session_cookies(session, now, request.cookies)
            return Admission(claims, lines, 0.0, cookies)
        until = min(last or session.refresh_at or session.expires, session.ends)
        return Admission(claims, lines, until)

    def _session_cookies(
        self, session: LoginSession, now: float, there: Iterable[str]
    ) -> tuple[str, ...]:
        """Return what a browser gets for a session; (): it cannot be kept."""
        made = seal_session(self._cipher, self.session_name, session)
        if made is None:
            return ()
        life, site = session.ends - now, self.spec.same_site
        cookies = [self._cookie(name, value, life, site) for name, value in made]
        used = {name for name, _ in made}
        gone = [one for one in self.session_names if one in there and one not in used]
        return (*cookies, *map(self._removed, gone))

    def _cookie(self, name: str, value: str, life: float, site: str) -> str:
        shared = name.startswith("__Secure-")
        domain = f"; Domain={self.spec.cookie_domain}" if shared else ""
        flags = f"Path=/; Secure; HttpOnly; SameSite={site}; Max-Age={max(0, int(life))}{domain}"
        return f"{name}={value}; {flags}"

    def _removed(self, name: str) -> str:
        return self._cookie(name, "", 0, "Lax")


def _claims_of(token: str) -> dict[str, Any]:
    """Return the claims of an ID token that was verified when its session began."""
    try:
        return read_token(token.encode()).claims
    except Malformed:
        return {}


def _is_denied(one: DeniedRedirect, headers: Mapping[str, str]) -> bool:
    value = headers.get(one.header)
    if value is None:
        return False
    if one.match == "exact":
        return value == one.value
    return value.startswith(one.value) if one.match == "prefix" else value.endswith(one.value)
