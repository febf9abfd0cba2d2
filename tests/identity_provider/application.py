"""An application that signs its users in by itself, with `RelyingParty`: the model for tests of logins.

In: a provider and a registered client. Out: an HTTPS origin. Every path but CALLBACK, LOGOUT and OPEN needs a session; a
page names its user and its path. Sessions live in this process; instances that share a `Sessions` are replicas.
It keeps the rules that the tests state: a transaction cookie for each login, return URLs of its own origin alone,
401 for requests that are no navigation.
"""

from __future__ import annotations

import html
import secrets
import ssl
import threading
import time
from dataclasses import dataclass, field
from http.cookies import SimpleCookie

from identity_provider.provider import Client
from identity_provider.relying_party import Login, Refused, RelyingParty, Tokens
from identity_provider.site import CALLBACK, LOGINS, LOGOUT, OPEN, show
from identity_provider.web_server import Answer, Call, WebServer

AHEAD = 1.0  # seconds: how long before the end of an ID token it is refreshed
_TRANSACTION = "__Host-login-"
_SESSION = "__Host-session"
_ATTRIBUTES = "; Path=/; Secure; HttpOnly; SameSite=Lax"
_HTML = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store"}


@dataclass
class _Session:
    """One user. `changed` is held during a refresh: only one request sends the refresh token."""

    tokens: Tokens
    changed: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, party: RelyingParty) -> None:
        """Get new tokens if those that it has expire within AHEAD."""
        with self.changed:
            if self.tokens.claims["exp"] - AHEAD <= time.time():
                self.tokens = party.refresh(self.tokens)


@dataclass
class Sessions:
    """The sessions of all replicas."""

    by_cookie: dict[str, _Session] = field(default_factory=dict)
    logins: dict[str, tuple[Login, str]] = field(default_factory=dict)  # by state, with the path


class Application:
    """Use `stop` at the end; `host` is a name that browsers of these tests resolve to loopback."""

    def __init__(
        self,
        host: str,
        context: ssl.SSLContext,
        *,
        port: int = 0,
        sessions: Sessions | None = None,
    ) -> None:
        self._sessions = sessions or Sessions()
        self._party: RelyingParty | None = None
        self._server = WebServer(self._answer, port, context)
        self.port = self._server.port
        self.origin = f"https://{host}:{self.port}"

    def use(self, issuer: str, client: Client, *, skew: int = 5) -> None:
        """Sign users in at this provider from now on."""
        before = self._party
        self._party = RelyingParty(issuer, client, skew=skew)
        if before is not None:
            before.close()

    def stop(self) -> None:
        """Close the port."""
        self._server.close()
        if self._party is not None:
            self._party.close()

    def _answer(self, call: Call) -> Answer:
        assert self._party is not None
        cookies = {
            name: one.value for name, one in SimpleCookie(call.headers.get("cookie", "")).items()
        }
        try:
            if call.path == CALLBACK:
                return self._finish(self._party, call, cookies)
            if call.path == LOGOUT:
                return self._log_out(self._party, call, cookies)
            if call.path == OPEN:
                return show("", call.path)
            session = self._open(self._party, cookies.get(_SESSION, ""))
            if session is None:
                return self._begin(self._party, call, cookies)
            return show(session.tokens.claims["email"].partition("@")[0], call.path)
        except Refused as refused:
            status = 503 if refused.args[0] in ("unreachable", "timeout", "status") else 401
            return Answer(status, html.escape(str(refused)).encode(), dict(_HTML))

    def _open(self, party: RelyingParty, cookie: str) -> _Session | None:
        session = self._sessions.by_cookie.get(cookie)
        if session is not None:
            try:
                session.refresh(party)
            except Refused:  # a new login
                self._sessions.by_cookie.pop(cookie, None)
                return None
        return session

    def _begin(self, party: RelyingParty, call: Call, cookies: dict[str, str]) -> Answer:
        if call.headers.get("sec-fetch-mode", "navigate") != "navigate" or call.method != "GET":
            return Answer(401, headers={"www-authenticate": "Bearer", "cache-control": "no-store"})
        login = party.begin()
        self._sessions.logins[login.state] = (login, call.target)
        names = [name for name in cookies if name.startswith(_TRANSACTION)]
        open_logins = [name.removeprefix(_TRANSACTION) for name in names]
        oldest_first = [state for state in self._sessions.logins if state in open_logins]
        dropped = oldest_first[: max(0, len(open_logins) - LOGINS + 1)]
        set_cookies = [f"{_TRANSACTION}{login.state}=1{_ATTRIBUTES}; Max-Age=600"]
        set_cookies += [f"{_TRANSACTION}{state}={_ATTRIBUTES}; Max-Age=0" for state in dropped]
        return _redirect(login.url, *set_cookies)

    def _finish(self, party: RelyingParty, call: Call, cookies: dict[str, str]) -> Answer:
        state = call.query.get("state", "")
        login, path = self._sessions.logins.get(state, (None, ""))
        if login is None or f"{_TRANSACTION}{state}" not in cookies:
            raise Refused("state")
        del self._sessions.logins[state]
        tokens = party.finish(call.target, login)
        session = secrets.token_urlsafe(24)
        self._sessions.by_cookie[session] = _Session(tokens)
        # An absolute URL: browsers read `/\\host` as `//host`.
        return _redirect(
            f"{self.origin}{path}",
            f"{_SESSION}={session}{_ATTRIBUTES}",
            f"{_TRANSACTION}{state}={_ATTRIBUTES}; Max-Age=0",
        )

    def _log_out(self, party: RelyingParty, call: Call, cookies: dict[str, str]) -> Answer:
        if call.headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site"):
            return Answer(403)
        session = self._sessions.by_cookie.pop(cookies.get(_SESSION, ""), None)
        clear = f"{_SESSION}={_ATTRIBUTES}; Max-Age=0"
        return _redirect(party.logout_url(session.tokens) if session else OPEN, clear)


def _redirect(location: str, *cookies: str) -> Answer:
    return Answer(302, headers={"location": location, "cache-control": "no-store"}, cookies=cookies)
