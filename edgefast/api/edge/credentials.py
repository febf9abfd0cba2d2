"""Credentials: API keys and basic auth of a SecurityPolicy.

In: parts of SecurityPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway
gives them.
Source: RFC 7617 (Basic), RFC 6265 (cookies).
Must never: hold a credential: those are in Secrets, which are named here.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.api.model.fields import AS_SET, Element, HTTPHeaderName, expects
from edgefast.api.model.reference import SecretObjectReference

CookieName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_`|~]+\Z",
        extra=expects("the name of a cookie such as key"),
    ),
]
ParamName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=r"^[!-~]+\Z",
        extra=expects("the name of a query parameter such as key"),
    ),
]


class ExtractFrom(Element, frozen=True, kw_only=True):
    """Places of the key in a request. All of them are read."""

    headers: Annotated[
        tuple[HTTPHeaderName, ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="Header names, not case-sensitive. In Authorization the key follows `Bearer `.",
        ),
    ] = ()
    cookies: Annotated[
        tuple[CookieName, ...], Meta(max_length=16, extra=AS_SET, description="Names of cookies.")
    ] = ()
    params: Annotated[
        tuple[ParamName, ...],
        Meta(max_length=16, extra=AS_SET, description="Names of query parameters."),
    ] = ()


class APIKeyAuth(Element, frozen=True, kw_only=True):
    """API keys of clients. A request without a valid key gets 401."""

    credential_refs: Annotated[
        tuple[SecretObjectReference, ...],
        Meta(
            min_length=1,
            max_length=16,
            description="Secrets with the keys: each name is a client id, and its value is the key. A "
            "Secret in another namespace needs a ReferenceGrant.",
        ),
    ]
    extract_from: Annotated[
        tuple[ExtractFrom, ...],
        Meta(min_length=1, max_length=16, description="Places of the key in a request."),
    ]
    forward_client_id_header: Annotated[
        HTTPHeaderName | None,
        Meta(
            description="Request header to the backend with the client id. edgefast removes this "
            "header from client requests."
        ),
    ] = field(default=None, name="forwardClientIDHeader")
    sanitize: Annotated[
        bool,
        Meta(
            description="Removes the key from requests to the backend and to authorization services."
        ),
    ] = False


class BasicAuth(Element, frozen=True, kw_only=True):
    """HTTP basic authentication (RFC 7617). A request without a valid name and password gets 401."""

    users: Annotated[
        SecretObjectReference,
        Meta(
            description="A Secret with the key .htpasswd, one line name:hash for each user. Hashes are "
            "those of htpasswd -s ({SHA}), -m ($apr1$) or -B (bcrypt, cost at most 12). A "
            "Secret in another namespace needs a ReferenceGrant."
        ),
    ]
    forward_username_header: Annotated[
        HTTPHeaderName | None,
        Meta(
            description="Request header to the backend with the user name. edgefast removes this "
            "header from client requests."
        ),
    ] = None
