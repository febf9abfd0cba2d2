"""OIDC: oidc of a SecurityPolicy: login of browsers at an identity provider.

In: parts of SecurityPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway
gives them, except `claimToHeaders`, which is edgefast's own.
Source: OpenID Connect Core 1.0, Discovery 1.0, RP-Initiated Logout 1.0.
Must never: hold a client secret: it is in a Secret, which is named here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.edge.jwt import ClaimToHeader
from edgefast.api.model.fields import AS_SET, Duration, Element, HTTPHeaderName, expects
from edgefast.api.model.reference import (
    BackendObjectReference,
    BackendRef,
    SecretObjectReference,
)

EndpointURL = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2048,
        pattern=r"^https?://[!-~]+\Z",
        extra=expects("a URL such as https://login.example.com/authorize"),
    ),
]
LocalPath = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1024,
        pattern=r"^/[-A-Za-z0-9/._~!$&'()*+,;=:@]*\Z",
        extra=expects("a path such as /logout"),
    ),
]


class OIDCProvider(Element, frozen=True, kw_only=True):
    """The identity provider."""

    issuer: Annotated[
        EndpointURL,
        Meta(
            description="Issuer, exactly as the provider's discovery document has it. The proxy fetches "
            "`/.well-known/openid-configuration` below it, and the keys that the document names."
        ),
    ]
    authorization_endpoint: Annotated[
        EndpointURL | None,
        Meta(
            description="URL to which browsers are redirected. Absent: the URL of the discovery document."
        ),
    ] = None
    token_endpoint: Annotated[
        EndpointURL | None,
        Meta(
            description="URL from which the proxy requests tokens. Absent: the URL of the discovery document."
        ),
    ] = None
    end_session_endpoint: Annotated[
        EndpointURL | None,
        Meta(
            description="URL to which `logoutPath` redirects. Absent: the URL of the discovery document, "
            "if it has one."
        ),
    ] = None
    backend_ref: Annotated[
        BackendObjectReference | None,
        Meta(
            description="Backend that gets the proxy's requests to the provider, in place of the URLs' "
            "hosts. Set this or `backendRefs`."
        ),
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...], Meta(max_length=1, description="The same as a list with one entry.")
    ] = ()


class OIDCCookieConfig(Element, frozen=True, kw_only=True):
    """Attributes of the session cookies."""

    same_site: Annotated[
        Literal["Lax", "Strict", "None"],
        Meta(
            description="Attribute SameSite. Strict: a link from another site starts a new login, which the provider "
            "usually completes without a form."
        ),
    ] = "Lax"


class OIDCDenyRedirectHeader(Element, frozen=True, kw_only=True):
    """A header of requests that are not redirected."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, not case-sensitive.")]
    type: Annotated[
        Literal["Exact", "Prefix", "Suffix"],
        Meta(description="How `value` is compared, case-sensitive."),
    ] = "Exact"
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)],
        Meta(description="Value, or the beginning or end of it."),
    ]


class OIDCDenyRedirect(Element, frozen=True, kw_only=True):
    """Requests without a session that get 401 in place of a redirect."""

    headers: Annotated[
        tuple[OIDCDenyRedirectHeader, ...],
        Meta(
            min_length=1,
            max_length=16,
            description="Headers. One match is enough. Requests of scripts, gRPC and WebSockets always "
            "get 401.",
        ),
    ]


class OIDCTokenForwarding(Element, frozen=True, kw_only=True):
    """The ID token in requests to the backend."""

    header: Annotated[
        HTTPHeaderName,
        Meta(
            description="Request header to the backend with the ID token; in Authorization it follows "
            "`Bearer `. edgefast removes this header from client requests."
        ),
    ]


class OIDC(Element, frozen=True, kw_only=True):
    """Login of browsers at an identity provider. A browser without a session is redirected, other clients get 401."""

    provider: Annotated[OIDCProvider, Meta(description="The identity provider.")]
    client_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(description="Client id at the provider. Set this or `clientIDRef`."),
    ] = field(default=None, name="clientID")
    client_id_ref: Annotated[
        SecretObjectReference | None,
        Meta(description="A Secret with the client id under `client-id`."),
    ] = field(default=None, name="clientIDRef")
    client_secret: Annotated[
        SecretObjectReference,
        Meta(
            description="A Secret with the client's secret under `client-secret`. A Secret in another "
            "namespace needs a ReferenceGrant."
        ),
    ]
    scopes: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=253)], ...],
        Meta(
            max_length=32,
            extra=AS_SET,
            description="Requested scopes. `openid` is always one of them.",
        ),
    ] = ()
    resources: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=2048)], ...],
        Meta(max_length=16, extra=AS_SET, description="Requested resources (RFC 8707)."),
    ] = ()
    redirect_url: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2048)] | None,
        Meta(
            description="Callback URL that the client has at the provider, such as "
            "https://shop.example.com/oauth2/callback. The policy must apply to its path. Absent: `/oauth2/callback` "
            "at the host of the request."
        ),
    ] = field(default=None, name="redirectURL")
    logout_path: Annotated[
        LocalPath,
        Meta(
            description="Path that ends the session and redirects to the provider's end session endpoint. "
            "A request from another site gets 403."
        ),
    ] = "/logout"
    deny_redirect: Annotated[
        OIDCDenyRedirect | None,
        Meta(description="Requests that get 401 in place of a redirect to the provider."),
    ] = None
    cookie_domain: Annotated[
        Annotated[
            str,
            Meta(
                max_length=253,
                pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z",
                extra=expects("a domain such as example.com"),
            ),
        ]
        | None,
        Meta(
            description="Domain of the cookies, for a session at all of its hosts. Absent: the host of "
            "the request alone (`__Host-`)."
        ),
    ] = None
    cookie_config: Annotated[
        OIDCCookieConfig | None, Meta(description="Attributes of the session cookies.")
    ] = None
    refresh_token: Annotated[
        bool,
        Meta(
            description="True: the proxy refreshes tokens before they expire, if the provider gives a "
            "refresh token."
        ),
    ] = True
    csrf_token_ttl: Annotated[
        Duration, Meta(description="Time limit for one login at the provider, 10s to 1h.")
    ] = field(default="10m", name="csrfTokenTTL")
    default_token_ttl: Annotated[
        Duration,
        Meta(
            description="Lifetime of tokens whose response has no `expires_in`. 0s: until the ID token "
            "expires."
        ),
    ] = field(default="0s", name="defaultTokenTTL")
    default_refresh_token_ttl: Annotated[
        Duration,
        Meta(
            description="Lifetime of a session after its last refresh, 1m to 8760h. A session ends at the "
            "latest after 4 times this, counted from its login."
        ),
    ] = field(default="168h", name="defaultRefreshTokenTTL")
    pass_through_auth_header: Annotated[
        bool,
        Meta(
            description="A request with a token for `jwt` of this policy skips the login; `jwt` decides. "
            "Other requests require a session only. `jwt.optional` and `jwt.failOpen` must be false."
        ),
    ] = False
    forward_access_token: Annotated[
        bool,
        Meta(
            description="The backend gets the access token in Authorization after `Bearer `. An access "
            "token that does not fit into the cookies is not sent."
        ),
    ] = False
    forward_id_token: Annotated[
        OIDCTokenForwarding | None, Meta(description="The backend gets the ID token.")
    ] = field(default=None, name="forwardIDToken")
    claim_to_headers: Annotated[
        tuple[ClaimToHeader, ...],
        Meta(max_length=32, description="Claims of the ID token that the backend gets as headers."),
    ] = ()
