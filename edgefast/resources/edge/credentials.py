"""Credentials of clients: keys, names and passwords, as a SecurityPolicy asks for them.

In: parts of SecurityPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Source: RFC 7617 (Basic), RFC 6265 (cookies).
Must never: hold a credential: those are in Secrets, which are named here.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.resources.model.fields import AS_SET, Element, HTTPHeaderName, expects
from edgefast.resources.model.reference import SecretObjectReference

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
    """Where a request may carry a key; whatever is named is looked at."""

    headers: Annotated[
        tuple[HTTPHeaderName, ...],
        Meta(
            max_length=16,
            extra=AS_SET,
            description="Header names, without case. Of Authorization the key stands behind `Bearer `.",
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
    """Keys of clients; who has none is answered 401."""

    credential_refs: Annotated[
        tuple[SecretObjectReference, ...],
        Meta(
            min_length=1,
            max_length=16,
            description="Secrets with the keys: names are client ids, values their keys. One in another namespace needs a "
            "ReferenceGrant.",
        ),
    ]
    extract_from: Annotated[
        tuple[ExtractFrom, ...],
        Meta(min_length=1, max_length=16, description="Where a request may carry a key."),
    ]
    forward_client_id_header: Annotated[
        HTTPHeaderName | None,
        Meta(
            description="A header with the client id, for the backend; from clients nobody hears it."
        ),
    ] = field(default=None, name="forwardClientIDHeader")
    sanitize: Annotated[
        bool, Meta(description="The backend, and services that are asked, do not get the key.")
    ] = False


class BasicAuth(Element, frozen=True, kw_only=True):
    """Names and passwords (RFC 7617); who has none is answered 401."""

    users: Annotated[
        SecretObjectReference,
        Meta(
            description="A Secret whose key .htpasswd has a line for each user: name:hash, the hash as htpasswd -s ({SHA}), "
            "-m ($apr1$) or -B (bcrypt, cost at most 12) writes it. One in another namespace needs a ReferenceGrant."
        ),
    ]
    forward_username_header: Annotated[
        HTTPHeaderName | None,
        Meta(description="A header with the name, for the backend; from clients nobody hears it."),
    ] = None
