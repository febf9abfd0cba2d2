"""OIDC: rules about oidc of a SecurityPolicy, each with its CEL twin for the CRD.

In: parts of `oidc`. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL, or look into a Secret.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.oidc import OIDC, OIDCProvider
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds of a login in progress, and of a session.
LEAST_LOGIN, MOST_LOGIN = 10_000, 3_600_000
LEAST_SESSION, MOST_SESSION = 60_000, 31_536_000_000


@BOOK.on(
    OIDC,
    "client_id",
    "client_id_ref",
    cel="has(self.clientID) != has(self.clientIDRef)",
    message="exactly one of clientID and clientIDRef must be set",
)
def check_client(one: OIDC) -> Iterable[Violation]:
    """The client has one id."""
    if one.client_id is None and one.client_id_ref is None:
        return (Violation(("clientID",), "Required", "this or clientIDRef"),)
    if one.client_id is not None and one.client_id_ref is not None:
        return (Violation(("clientID",), "Forbidden", "together with clientIDRef"),)
    return ()


@BOOK.on(
    OIDC,
    "forward_access_token",
    "forward_id_token",
    cel="!self.forwardAccessToken || !has(self.forwardIDToken) || "
    "self.forwardIDToken.header.lowerAscii() != 'authorization'",
    message="forwardAccessToken and forwardIDToken cannot both use Authorization",
)
def check_forwarding(one: OIDC) -> Iterable[Violation]:
    """One header has one token."""
    given = one.forward_id_token
    if one.forward_access_token and given is not None and given.header.lower() == "authorization":
        message = "Authorization contains the access token"
        return (Violation(("forwardIDToken", "header"), "Forbidden", message),)
    return ()


@BOOK.on(
    OIDC,
    "csrf_token_ttl",
    cel="duration(self.csrfTokenTTL) >= duration('10s') && duration(self.csrfTokenTTL) <= duration('1h')",
    message="csrfTokenTTL must be 10s to 1h",
)
def check_login_lifetime(one: OIDC) -> Iterable[Violation]:
    """People need time to log in, and a stolen state must expire."""
    if LEAST_LOGIN <= parse_duration(one.csrf_token_ttl) <= MOST_LOGIN:
        return ()
    return (
        Violation(("csrfTokenTTL",), "Invalid", f'"{one.csrf_token_ttl}" (expected 10s to 1h)'),
    )


@BOOK.on(
    OIDC,
    "default_refresh_token_ttl",
    cel="duration(self.defaultRefreshTokenTTL) >= duration('1m') && "
    "duration(self.defaultRefreshTokenTTL) <= duration('8760h')",
    message="defaultRefreshTokenTTL must be 1m to 8760h",
)
def check_session_lifetime(one: OIDC) -> Iterable[Violation]:
    """A session ends."""
    if LEAST_SESSION <= parse_duration(one.default_refresh_token_ttl) <= MOST_SESSION:
        return ()
    message = f'"{one.default_refresh_token_ttl}" (expected 1m to 8760h)'
    return (Violation(("defaultRefreshTokenTTL",), "Invalid", message),)


@BOOK.on(
    OIDCProvider,
    "backend_ref",
    "backend_refs",
    cel="!has(self.backendRef) || !has(self.backendRefs) || size(self.backendRefs) == 0",
    message="only one of backendRef and backendRefs can be set",
)
def check_backend(one: OIDCProvider) -> Iterable[Violation]:
    """The provider is at one place."""
    if one.backend_ref is not None and one.backend_refs:
        return (Violation(("backendRef",), "Forbidden", "together with backendRefs"),)
    return ()


@BOOK.on(
    OIDCProvider,
    "issuer",
    "backend_ref",
    "backend_refs",
    cel="self.issuer.startsWith('https://') || has(self.backendRef) || "
    "(has(self.backendRefs) && size(self.backendRefs) > 0)",
    message="issuer must use https, unless a backend is set",
)
def check_issuer(one: OIDCProvider) -> Iterable[Violation]:
    """An observer of the network could answer as the provider."""
    named = one.backend_ref is not None or one.backend_refs
    if not named and not one.issuer.startswith("https://"):
        return (Violation(("issuer",), "Invalid", "expected https://, unless a backend is set"),)
    return ()
