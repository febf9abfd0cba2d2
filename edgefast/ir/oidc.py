"""OIDC: the login of browsers at an identity provider, in the IR.

In: written by `translate` only. Out: a part of a `PolicyUnit` (policy.py). Durations are
milliseconds, names of headers are lower case.
Must never: print the client secret. It is the one credential in clear of a PolicyUnit, because the
agent sends it to the provider; dumps hide it (edgefast/table/redacted.py).
"""

from __future__ import annotations

from typing import Literal

from edgefast.ir.credentials import RemoteKeys
from edgefast.ir.telemetry import Struct

TextMatch = Literal["exact", "prefix", "suffix"]
SameSite = Literal["Lax", "Strict", "None"]


class DeniedRedirect(Struct, frozen=True, gc=False):
    """A header of requests that get 401 in place of a redirect."""

    header: str
    match: TextMatch
    value: str


class Oidc(Struct, frozen=True, gc=False):
    """Login at an identity provider (SecurityPolicy oidc; OpenID Connect Core 1.0)."""

    remote: RemoteKeys  # the discovery document and its keys; `issuer` is set
    client_id: str
    client_secret: bytes
    authorization_endpoint: str = ""  # "": of the discovery document
    token_endpoint: str = ""
    end_session_endpoint: str = ""
    scopes: tuple[str, ...] = ("openid",)
    resources: tuple[str, ...] = ()
    callback_origin: str = ""  # "https://login.example.com"; "": of the request
    callback_path: str = "/oauth2/callback"
    logout_path: str = "/logout"
    cookie_domain: str = ""  # "": the host of the request alone
    same_site: SameSite = "Lax"
    refresh: bool = True
    login_lifetime: int = 600_000  # of one login in progress
    token_lifetime: int = 0  # where the provider does not tell; 0: that of the ID token
    session_lifetime: int = 604_800_000  # of a session that is refreshed
    pass_through: bool = False  # requests with a token of `jwt` skip the login
    forward_access_token: bool = False
    id_token_header: str = ""  # of the request to the backend; "": none
    claim_headers: tuple[tuple[str, str], ...] = ()  # as in JwtProvider
    denied_redirects: tuple[DeniedRedirect, ...] = ()

    def __repr__(self) -> str:
        return f"Oidc({self.client_id!r} at {self.remote.issuer!r}, <redacted>)"
