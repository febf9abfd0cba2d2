"""Signed tokens, as a SecurityPolicy asks for them: issuers, their keys, claims.

In: parts of SecurityPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Source: RFC 7519 (tokens), RFC 7517 (key sets), RFC 6750 (where they are).
Must never: fetch a key.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.resources.edge.credentials import CookieName, ParamName
from edgefast.resources.model.fields import AS_SET, Duration, Element, HTTPHeaderName, expects
from edgefast.resources.model.reference import (
    BackendObjectReference,
    BackendRef,
    LocalObjectReference,
)

#: Bytes of a key set that stands in the policy; of one in a ConfigMap edgefast/keyset.py has the bound.
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
    """A header that may carry a token."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, without case.")]
    value_prefix: Annotated[
        Annotated[
            str,
            Meta(max_length=64, pattern=r"^[ -~]*\Z", extra=expects("a prefix such as `Bearer `")),
        ]
        | None,
        Meta(
            description="What stands before the token, such as `Bearer ` with its space; values without it carry none. Absent: "
            "nothing does."
        ),
    ] = None


class JWTExtractor(Element, frozen=True, kw_only=True):
    """Where a request may carry a token; whatever is named is looked at."""

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
    """A claim that the backend is told."""

    header: Annotated[
        HTTPHeaderName, Meta(description="A header with it; from clients nobody hears it.")
    ]
    claim: Annotated[
        ClaimPath,
        Meta(
            description="Path of the claim: `a.b` is b in a, or the claim `a.b`. Lists and objects are JSON in Base64."
        ),
    ]


class LocalJWKS(Element, frozen=True, kw_only=True):
    """Keys that are written down."""

    type: Annotated[
        Literal["Inline", "ValueRef"], Meta(description="Which of the fields has them.")
    ] = "Inline"
    inline: Annotated[
        Annotated[str, Meta(max_length=MAX_INLINE)] | None,
        Meta(description="The key set (RFC 7517)."),
    ] = None
    value_ref: Annotated[
        LocalObjectReference | None,
        Meta(description="A ConfigMap with the key set under `jwks`, or as its one key."),
    ] = None


class RemoteJWKS(Element, frozen=True, kw_only=True):
    """Keys that their issuer publishes."""

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
            description="Where they are: https, or http where a backend is named. Redirects are not followed."
        ),
    ]
    backend_ref: Annotated[
        BackendObjectReference | None,
        Meta(description="Who is asked in place of the URL's host; this or `backendRefs`."),
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...], Meta(max_length=1, description="The same as a list of one.")
    ] = ()
    cache_duration: Annotated[
        Duration,
        Meta(
            description="How often they are asked for, 10s to 24h. A token that names an unknown key asks at once, every 10s at most."
        ),
    ] = "300s"


class JWTProvider(Element, frozen=True, kw_only=True):
    """One issuer of tokens."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)],
        Meta(description="What rules and logs call it; of one policy each its own."),
    ]
    issuer: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2048)] | None,
        Meta(description="What `iss` must be, to the letter. Absent: anything."),
    ] = None
    audiences: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=2048)], ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="One of which must be in `aud`; a good token for others is answered 403. Empty: any.",
        ),
    ] = ()
    require_expiration: Annotated[
        bool,
        Meta(
            description="True: a token without `exp` gets 401. False: it is valid until the issuer's key changes."
        ),
    ] = True
    remote_jwks: Annotated[
        RemoteJWKS | None, Meta(description="Its keys, where it publishes them.")
    ] = field(default=None, name="remoteJWKS")
    local_jwks: Annotated[LocalJWKS | None, Meta(description="Its keys, written down.")] = field(
        default=None, name="localJWKS"
    )
    claim_to_headers: Annotated[
        tuple[ClaimToHeader, ...], Meta(max_length=32, description="Claims for the backend.")
    ] = ()
    extract_from: Annotated[
        JWTExtractor | None,
        Meta(
            description="Where a request may carry its tokens. Absent: header Authorization behind `Bearer `, query parameter "
            "access_token."
        ),
    ] = None


class JWT(Element, frozen=True, kw_only=True):
    """Signed tokens (RFC 7519); who has none that any provider is good for is answered 401."""

    optional: Annotated[
        bool, Meta(description="A request without a token passes; one with a bad token does not.")
    ] = False
    fail_open: Annotated[
        bool,
        Meta(
            description="A request with a bad token passes, too, as one without; its claims are nobody's. A policy with a mistake "
            "stays closed all the same."
        ),
    ] = False
    providers: Annotated[
        tuple[JWTProvider, ...],
        Meta(min_length=1, max_length=4, description="Issuers; a token of any of them will do."),
    ]


class JWTClaim(Element, frozen=True, kw_only=True):
    """A claim that a token must have."""

    name: Annotated[ClaimPath, Meta(description="Path of the claim, as in `claimToHeaders`.")]
    value_type: Annotated[
        Literal["String", "StringArray"],
        Meta(
            description="String: it is one of the values. StringArray: it is a list with one of them in it."
        ),
    ] = "String"
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=4096)], ...],
        Meta(min_length=1, max_length=128, description="One of them, to the letter."),
    ]


class JWTPrincipal(Element, frozen=True, kw_only=True):
    """What the token of a request must say; whatever is said must hold."""

    provider: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)],
        Meta(
            description="The provider that it is good for: of this policy's `jwt`, or of the one that holds, if this one has none."
        ),
    ]
    scopes: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=253)], ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="All of which are in claim `scope` or `scp`.",
        ),
    ] = ()
    claims: Annotated[
        tuple[JWTClaim, ...], Meta(max_length=16, description="Claims, all of them.")
    ] = ()
