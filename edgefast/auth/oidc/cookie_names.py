"""Cookie names: the names of the cookies of one client, and the scope of their keys.

In: ir.Oidc. Out: the base names of its sessions and of its logins in progress, and what tells clients
apart. Policies share sessions only if all is the same that decides how a user logs in, which tokens a
session has, and how long it is valid. The owner of a browser can copy a cookie to another host, so a
session of a policy that requires less must not be valid at one that requires more.
The names do not depend on the secret: a digest of it in clear would let anyone test guesses.
Source: RFC 6265bis section 4.1.3: no other host can set a cookie with the prefix `__Host-`.
"""

from __future__ import annotations

from edgefast.auth.oidc.scope import scope_of
from edgefast.ir.oidc import Oidc

__all__ = ["client_scope", "session_name", "state_domain", "state_name"]


def client_scope(spec: Oidc) -> bytes:
    """Return a digest of all that decides which tokens a session may have, and which provider gets them."""
    return scope_of(*_public_parts(spec), spec.client_secret)


def session_name(spec: Oidc) -> str:
    """Return the name of the first cookie of a session; further ones have a number behind it."""
    return _name(spec, "session", spec.cookie_domain)


def state_name(spec: Oidc) -> str:
    """Return what the names of cookies of logins in progress begin with."""
    return _name(spec, "login", state_domain(spec))


def state_domain(spec: Oidc) -> str:
    """Return the domain of the cookies of logins in progress; "": the host of the request alone.

    A sibling of the host can set a cookie with a domain, and so give a browser its own login. Only a
    callback at another host requires it.
    """
    return spec.cookie_domain if spec.callback_origin else ""


def _public_parts(spec: Oidc) -> tuple[str, ...]:
    return (
        spec.remote.issuer,
        spec.remote.cluster,
        spec.client_id,
        spec.authorization_endpoint,
        spec.token_endpoint,
        " ".join(sorted(spec.scopes)),
        " ".join(sorted(spec.resources)),
        spec.cookie_domain,
        "access" if spec.forward_access_token else "",
        "refresh" if spec.refresh else "",
        f"{spec.token_lifetime} {spec.session_lifetime}",
    )


def _name(spec: Oidc, kind: str, domain: str) -> str:
    prefix = "__Secure-" if domain else "__Host-"
    tag = scope_of(*_public_parts(spec)).hex()[:8]
    return f"{prefix}edge-{kind}-{tag}"
