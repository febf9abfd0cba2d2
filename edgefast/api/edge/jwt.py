"""JWT: jwt of a SecurityPolicy: issuers, their keys, claims.

In: parts of SecurityPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway
gives them.
Source: RFC 7519 (tokens), RFC 7517 (key sets), RFC 6750 (where they are).
Must never: fetch a key.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.edge.credentials import CookieName, ParamName
from edgefast.api.model.fields import AS_SET, Duration, Element, HTTPHeaderName, expects
from edgefast.api.model.reference import (
    BackendObjectReference,
    BackendRef,
    LocalObjectReference,
)

#: Bytes of a key set that stands in the policy; of one in a ConfigMap edgefast/auth/jwt/key_set.py has the bound.
MAX_INLINE = 65536

ClaimPath = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=253,
        pattern=r"^[^\x00-\x1f\x7f]+\Z",
        extra=expects("the path of a claim such as realm_access.roles"),
    ),
]


class JWTHeaderExtractor(Element, frozen=True, kw_only=True):
    """A header that can contain a token."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, not case-sensitive.")]
    value_prefix: Annotated[
        Annotated[
            str,
            Meta(max_length=64, pattern=r"^[ -~]*\Z", extra=expects("a prefix such as `Bearer `")),
        ]
        | None,
        Meta(
            description="Text before the token, such as `Bearer ` with its space. A value without it "
            "has no token. Absent: no prefix."
        ),
    ] = None


class JWTExtractor(Element, frozen=True, kw_only=True):
    """Places of the token in a request. All of them are read."""

    headers: Annotated[
        tuple[JWTHeaderExtractor, ...], Meta(max_length=16, description="Headers.")
    ] = ()
    cookies: Annotated[
        tuple[CookieName, ...], Meta(max_length=16, extra=AS_SET, description="Names of cookies.")
    ] = ()
    params: Annotated[
        tuple[ParamName, ...],
        Meta(max_length=16, extra=AS_SET, description="Names of query parameters."),
    ] = ()


class ClaimToHeader(Element, frozen=True, kw_only=True):
    """A claim that the backend gets in a header."""

    header: Annotated[
        HTTPHeaderName,
        Meta(
            description="Request header to the backend with the claim. edgefast removes this header "
            "from client requests."
        ),
    ]
    claim: Annotated[
        ClaimPath,
        Meta(
            description="Path of the claim: `a.b` is b in a, or the claim `a.b`. Lists and objects are "
            "sent as Base64 of JSON."
        ),
    ]


class LocalJWKS(Element, frozen=True, kw_only=True):
    """Keys in the policy or in a ConfigMap."""

    type: Annotated[
        Literal["Inline", "ValueRef"], Meta(description="Selects the field with the keys.")
    ] = "Inline"
    inline: Annotated[
        Annotated[str, Meta(max_length=MAX_INLINE)] | None,
        Meta(description="The key set (RFC 7517)."),
    ] = None
    value_ref: Annotated[
        LocalObjectReference | None,
        Meta(description="A ConfigMap with the key set under `jwks`, or under its only key."),
    ] = None


class RemoteJWKS(Element, frozen=True, kw_only=True):
    """Keys that the issuer publishes."""

    uri: Annotated[
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=2048,
                pattern=r"^https?://[!-~]+\Z",
                extra=expects("a URL such as https://login.example.com/keys"),
            ),
        ],
        Meta(
            description="URL of the key set: https, or http if a backend is set. Redirects are not "
            "followed."
        ),
    ]
    backend_ref: Annotated[
        BackendObjectReference | None,
        Meta(
            description="Backend that gets the request instead of the URL's host. Set this or "
            "`backendRefs`."
        ),
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...], Meta(max_length=1, description="The same as a list with one entry.")
    ] = ()
    cache_duration: Annotated[
        Duration,
        Meta(
            description="Time between two requests for the key set, 10s to 24h. A token with an "
            "unknown key starts a request immediately, at most every 10s."
        ),
    ] = "300s"


class JWTProvider(Element, frozen=True, kw_only=True):
    """One issuer of tokens."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)],
        Meta(description="Name of the provider in rules and logs. Unique in the policy."),
    ]
    issuer: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2048)] | None,
        Meta(description="Required value of `iss`, case-sensitive. Absent: any."),
    ] = None
    audiences: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=2048)], ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="Accepted audiences: `aud` must contain one of them; a valid token for others "
            "gets 403. Empty: any.",
        ),
    ] = ()
    require_expiration: Annotated[
        bool,
        Meta(
            description="True: a token without `exp` gets 401. False: it is valid until the issuer's key changes."
        ),
    ] = True
    remote_jwks: Annotated[RemoteJWKS | None, Meta(description="URL of the provider's keys.")] = (
        field(default=None, name="remoteJWKS")
    )
    local_jwks: Annotated[
        LocalJWKS | None, Meta(description="Keys of the provider in the policy or in a ConfigMap.")
    ] = field(default=None, name="localJWKS")
    claim_to_headers: Annotated[
        tuple[ClaimToHeader, ...],
        Meta(max_length=32, description="Claims that the backend gets as headers."),
    ] = ()
    extract_from: Annotated[
        JWTExtractor | None,
        Meta(
            description="Places of the token in a request. Absent: header Authorization after `Bearer "
            "`, and query parameter access_token."
        ),
    ] = None


class JWT(Element, frozen=True, kw_only=True):
    """Signed tokens (RFC 7519). A request without a valid token of a provider gets 401."""

    optional: Annotated[
        bool,
        Meta(
            description="A request without a token passes. A request with an invalid token gets 401."
        ),
    ] = False
    fail_open: Annotated[
        bool,
        Meta(
            description="A request with an invalid token passes, too, as if it had no token. A policy "
            "with an error still denies all requests."
        ),
    ] = False
    providers: Annotated[
        tuple[JWTProvider, ...],
        Meta(
            min_length=1,
            max_length=4,
            description="Issuers. A valid token of one of them is enough.",
        ),
    ]


class JWTClaim(Element, frozen=True, kw_only=True):
    """A claim that a token must have."""

    name: Annotated[ClaimPath, Meta(description="Path of the claim, as in `claimToHeaders`.")]
    value_type: Annotated[
        Literal["String", "StringArray"],
        Meta(
            description="String: the claim is one of the values. StringArray: the claim is a list that "
            "contains one of them."
        ),
    ] = "String"
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=4096)], ...],
        Meta(min_length=1, max_length=128, description="Accepted values, case-sensitive."),
    ]


class JWTPrincipal(Element, frozen=True, kw_only=True):
    """Conditions on the token of a request. All fields that are set must match."""

    provider: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)],
        Meta(
            description="Provider that must have verified the token: one of this policy's `jwt`, or of "
            "the `jwt` that applies if this policy has none."
        ),
    ]
    scopes: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=253)], ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="Required scopes, all in claim `scope` or `scp`.",
        ),
    ] = ()
    claims: Annotated[
        tuple[JWTClaim, ...], Meta(max_length=16, description="Claims. All must match.")
    ] = ()
