"""Cookie names: the names of the cookies of one client.

In: ir.Oidc. Out: the base names of its sessions and of its logins in progress. Policies with the
same issuer, client and cookie domain have the same names, and share sessions.
Source: RFC 6265bis section 4.1.3: no other host can set a cookie with the prefix `__Host-`.
"""

from __future__ import annotations

from edgefast.auth.oidc.cookie_cipher import scope_of
from edgefast.ir.oidc import Oidc

__all__ = ["session_name", "state_name"]


def session_name(spec: Oidc) -> str:
    """Return the name of the first cookie of a session; further ones have a number behind it."""
    return _name(spec, "session")


def state_name(spec: Oidc) -> str:
    """Return what the names of cookies of logins in progress begin with."""
    return _name(spec, "login")


def _name(spec: Oidc, kind: str) -> str:
    prefix = "__Secure-" if spec.cookie_domain else "__Host-"
    tag = scope_of(spec.remote.issuer, spec.client_id, spec.cookie_domain).hex()[:8]
    return f"{prefix}edge-{kind}-{tag}"
