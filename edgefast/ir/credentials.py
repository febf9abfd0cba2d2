"""Credentials: the authentication of clients, and the trusted keys and passwords, in the IR.

In: written by `translate` only. Out: parts of a `PolicyUnit` (policy.py). Names of headers are
lower case. Durations are milliseconds.
Must never: hold a credential in clear, or print more of users and keys than their number.
"""

from __future__ import annotations

from edgefast.ir.telemetry import Struct


class CredentialExtractors(Struct, frozen=True, gc=False):
    """Where a request may carry a credential, in the order in which they are looked at: headers, cookies, query parameters."""

    headers: tuple[
        tuple[str, str], ...
    ] = ()  # (name, prefix that is taken off, "" or such as "Bearer ")
    cookies: tuple[str, ...] = ()
    params: tuple[str, ...] = ()


# --- names and passwords, keys --------------------------------------------------------------------------------------


class BasicAuth(Struct, frozen=True, gc=False):
    """Names and passwords (SecurityPolicy basicAuth; RFC 7617)."""

    users: tuple[
        tuple[str, str], ...
    ] = ()  # sorted; (name, hash as in htpasswd: {SHA}, $apr1$, $2y$)
    forward_header: str = ""  # of the request to the backend: the user's name; "": none

    def __repr__(self) -> str:
        return f"BasicAuth({len(self.users)} users, <redacted>)"


class ApiKeyAuth(Struct, frozen=True, gc=False):
    """Keys of clients (SecurityPolicy apiKeyAuth)."""

    clients: tuple[tuple[bytes, str], ...] = ()  # sorted; (SHA-256 of the key, client id)
    places: CredentialExtractors = CredentialExtractors()
    forward_header: str = ""  # of the request to the backend: the client id; "": none
    sanitize: bool = False  # the backend does not get the key

    def __repr__(self) -> str:
        return f"ApiKeyAuth({len(self.clients)} clients, <redacted>)"


# --- tokens ---------------------------------------------------------------------------------------------------------


class RemoteKeys(Struct, frozen=True, gc=False):
    """A set of keys that the agent fetches (RFC 7517 5)."""

    uri: str  # https, or http where `cluster` names who is asked
    cluster: str = ""  # Cluster.name; "": the uri's host, with the system's bundle
    every: int = 300_000
    retry: int = 1_000  # after a failure, at least
    allowed: tuple[
        str, ...
    ] = ()  # of the uri's host, as in Cluster; with `cluster` those of the cluster apply
    issuer: str = (
        ""  # not "": the uri has a discovery document of this issuer, which names the keys
    )


class JwtProvider(Struct, frozen=True, gc=False):
    """One issuer of tokens."""

    name: str
    issuer: str = ""  # "": any
    audiences: tuple[str, ...] = ()  # one of them; (): any
    keys: bytes = (
        b""  # a JSON Web Key Set as edgefast/auth/jwt/key_set.py writes it, b"" with `remote`
    )
    remote: RemoteKeys | None = None
    places: CredentialExtractors = CredentialExtractors(
        headers=(("authorization", "Bearer "),), params=("access_token",)
    )
    claim_headers: tuple[
        tuple[str, str], ...
    ] = ()  # (header of the request to the backend, path of the claim, "a.b")
    require_expiration: bool = True  # a token without `exp` is refused


class Jwt(Struct, frozen=True, gc=False):
    """Signed tokens (SecurityPolicy jwt; RFC 7519): any provider's will do."""

    providers: tuple[JwtProvider, ...] = ()
    optional: bool = False  # no token passes, a bad one does not
    fail_open: bool = False  # a bad one passes as none; its claims are nobody's


class AccessClaim(Struct, frozen=True, gc=False):
    """A claim that a token must have."""

    name: str  # path, "a.b"
    values: tuple[str, ...]  # sorted; one of them
    array: bool = False  # the claim is a list, one of whose elements is one of them


class AccessToken(Struct, frozen=True, gc=False):
    """What a token must say (SecurityPolicy authorization principal.jwt): all of it."""

    provider: str  # JwtProvider.name
    scopes: tuple[str, ...] = ()  # all of them in claim "scope" or "scp"
    claims: tuple[AccessClaim, ...] = ()
    unit: str = ""  # of this unit's providers; "": of those of whichever holds
