"""Logins: the result of an OIDC unit for a request.

In: ir.Oidc, the request's head as it came. Out: an `AuthenticationResult`: the redirect of a browser
to the identity provider, 401 for other clients. None where only a running proxy knows, because the
request has a session cookie. The twin of auth/oidc/login_client.py. Must never: show a client
secret or a cookie.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.auth.oidc.cookie_names import session_name
from edgefast.auth.oidc.login_state import parse_callback
from edgefast.auth.oidc.navigation import is_navigation
from edgefast.diagnostics.redact import show_query
from edgefast.explain.head import Head
from edgefast.explain.tokens import AuthenticationResult

__all__ = ["describe_login", "headers_of_login", "verify_login"]


def verify_login(login: ir.Oidc, head: Head, *, has_session: bool) -> AuthenticationResult | None:
    """Judge a request as a worker does; `has_session`: it has the first cookie of a session."""
    path = head.path.decode("latin-1")
    method = head.method.decode("latin-1")
    if path == login.logout_path and method in ("GET", "POST"):
        why = f"{login.logout_path} ends the session and redirects to the identity provider"
        return AuthenticationResult(status=302 if method == "GET" else 303, why=why)
    query = (head.query or b"").decode("latin-1")
    if path == login.callback_path and method == "GET" and parse_callback(query) is not None:
        return None
    if has_session:
        return None
    headers = {
        one.name.decode("latin-1").lower(): one.value.decode("latin-1") for one in head.lines
    }
    if not is_navigation(method, headers):
        why = "it has no session, and is not a navigation of a browser (Accept: text/html)"
        return AuthenticationResult(why=why)
    for one in login.denied_redirects:
        if one.header in headers:
            why = f"it has no session, and header {one.header} may deny the redirect"
            return AuthenticationResult(why=why)
    target = show_query(login.authorization_endpoint) or f"the provider {login.remote.issuer}"
    why = f"it has no session: the browser is redirected to {target}"
    return AuthenticationResult(status=302, why=why)


def headers_of_login(login: ir.Oidc) -> tuple[str, ...]:
    """Return the headers that the unit sets for the backend."""
    names = [name for name, _ in login.claim_headers]
    names += [login.id_token_header] if login.id_token_header else []
    return (*names, *(["authorization"] if login.forward_access_token else []))


def describe_login(login: ir.Oidc) -> str:
    """Return what the unit requires."""
    message = (
        f"requires a session of client {login.client_id} at {login.remote.issuer} (cookie {session_name(login)}), "
        f"callback {login.callback_origin}{login.callback_path}, logout {login.logout_path}"
    )
    names = headers_of_login(login)
    return f"{message}, sent to the backend in {', '.join(names)}" if names else message
