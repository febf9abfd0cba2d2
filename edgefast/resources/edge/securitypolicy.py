"""SecurityPolicy: who may enter: rules of our own, proofs of who a client is, and the word of an authorisation service.

In: `gateway.edge.io/v1alpha1` documents. Out: `SecurityPolicy`. Its fields have the names that Envoy Gateway gives them.
Source: GEP-713 (attachment), GEP-1494 (external authorisation). What Envoy Gateway has and this release lacks stands in
`model/unserved.py`, and closes the policy: nobody gets in because a field is not known.
Must never: resolve a reference.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.resources.edge.credentials import APIKeyAuth, BasicAuth
from edgefast.resources.edge.jwt import JWT, JWTPrincipal
from edgefast.resources.edge.policytarget import Aim, MergeType, Newer, TargetReferences
from edgefast.resources.model.closed import Closed
from edgefast.resources.model.fields import (
    AS_SET,
    CIDR,
    Duration,
    Element,
    HTTPHeaderName,
    Resource,
    expects,
)
from edgefast.resources.model.meta import ObjectMeta
from edgefast.resources.model.reference import BackendObjectReference, BackendRef

#: Bytes of a request's body that an authorisation service is sent at most.
MAX_AUTH_BODY = 1024 * 1024

_URI_PATH = r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*"

Action = Literal["Allow", "Deny"]
HeaderNames = Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=64, extra=AS_SET)]


class OperationPath(Element, frozen=True, kw_only=True):
    """A condition on the path that the router matched: normalised, without query."""

    type: Annotated[
        Literal["Exact", "PathPrefix", "RegularExpression"],
        Meta(
            description="PathPrefix compares whole segments; RegularExpression (RE2, ASCII) all of it."
        ),
    ] = "PathPrefix"
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)],
        Meta(description="Path or expression."),
    ]


class AuthorizationOperation(Element, frozen=True, kw_only=True):
    """What a request does; whatever is said must hold."""

    methods: Annotated[
        tuple[
            Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"],
            ...,
        ],
        Meta(max_length=16, extra=AS_SET, description="One of these methods. Absent: any."),
    ] = ()
    path: Annotated[OperationPath | None, Meta(description="The path. Absent: any.")] = None


class AuthorizationHeader(Element, frozen=True, kw_only=True):
    """A header that a request must carry."""

    name: Annotated[HTTPHeaderName, Meta(description="Header name, without case; not Host.")]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=4096)], ...],
        Meta(min_length=1, max_length=256, description="One of them, to the letter."),
    ]


class AuthorizationPrincipal(Element, frozen=True, kw_only=True):
    """Who asks; whatever is said must hold."""

    client_cidrs: Annotated[
        tuple[CIDR, ...],
        Meta(
            max_length=256,
            description="The client's address is in one of these ranges. Who the client is says EdgeProxy "
            "`clientAddress`.",
        ),
    ] = field(default=(), name="clientCIDRs")
    headers: Annotated[
        tuple[AuthorizationHeader, ...],
        Meta(max_length=16, description="Headers, all of them."),
    ] = ()
    jwt: Annotated[
        JWTPrincipal | None,
        Meta(
            description="The token that proved who it is. A rule with it decides after `jwt` and `extAuth`."
        ),
    ] = None


class AuthorizationRule(Element, frozen=True, kw_only=True):
    """One rule; the first one whose conditions hold decides."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)] | None,
        Meta(description="A name for people and for `edgefast explain`."),
    ] = None
    action: Annotated[Action, Meta(description="Allow lets the request on, Deny answers 403.")]
    operation: Annotated[
        AuthorizationOperation | None, Meta(description="What the request does.")
    ] = None
    principal: Annotated[AuthorizationPrincipal | None, Meta(description="Who asks.")] = None


class Authorization(Element, frozen=True, kw_only=True):
    """Rules about requests, in order."""

    default_action: Annotated[Action, Meta(description="What is done where no rule holds.")] = (
        "Deny"
    )
    rules: Annotated[
        tuple[AuthorizationRule, ...],
        Meta(max_length=64, description="Rules; the first one that holds decides."),
    ] = ()


class ExtAuthHTTP(Element, frozen=True, kw_only=True):
    """An authorisation service that is asked with a request of HTTP."""

    backend_ref: Annotated[
        BackendObjectReference | None, Meta(description="The service; this or `backendRefs`.")
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...],
        Meta(max_length=16, description="The services, each with its share of the questions."),
    ] = ()
    path: Annotated[
        Annotated[
            str,
            Meta(
                max_length=1024,
                pattern=rf"^/{_URI_PATH}\Z",
                extra=expects("a path such as /auth"),
            ),
        ]
        | None,
        Meta(description="Stands before the request's own path: /auth asks for /auth/hello."),
    ] = None
    path_override: Annotated[
        Annotated[
            str,
            Meta(
                max_length=1024,
                pattern=rf"^/{_URI_PATH}(\?[?/]?{_URI_PATH})?\Z",
                extra=expects("a path such as /verify"),
            ),
        ]
        | None,
        Meta(description="Is asked for in place of the request's own path and query."),
    ] = None
    headers_to_backend: Annotated[
        HeaderNames,
        Meta(
            description="Headers of the service's answer that the backend gets. What a client sends under these names is "
            "removed, whatever the answer says."
        ),
    ] = ()


class ExtAuthGRPC(Element, frozen=True, kw_only=True):
    """An authorisation service that is asked with a call of gRPC: Check of envoy.service.auth.v3.Authorization."""

    backend_ref: Annotated[
        BackendObjectReference | None, Meta(description="The service; this or `backendRefs`.")
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...],
        Meta(max_length=16, description="The services, each with its share of the questions."),
    ] = ()


class ExtAuthBody(Element, frozen=True, kw_only=True):
    """The request's body, for the authorisation service."""

    max_request_bytes: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_AUTH_BODY)],
        Meta(description="Bytes that the service is sent at most; a larger body is answered 413."),
    ]


class ExtAuthCache(Element, frozen=True, kw_only=True):
    """Answers that are believed for a while: passes, 401 and 403; no errors."""

    ttl: Annotated[Duration, Meta(description="How long; at most 60s.")]
    key_headers: Annotated[
        Annotated[tuple[HTTPHeaderName, ...], Meta(min_length=1, max_length=16, extra=AS_SET)]
        | None,
        Meta(
            description="Headers of the cache key, beside method, host, path and authorization. `x-forwarded-for` is the "
            "client's address, `x-forwarded-proto` the scheme. Absent: all headers that the service gets. List every header that "
            "its answers depend on; edgefast refuses a header that no service gets."
        ),
    ] = None


class ExtAuth(Element, frozen=True, kw_only=True):
    """A question to an authorisation service before the request goes on, of HTTP or of gRPC."""

    http: Annotated[
        ExtAuthHTTP | None, Meta(description="The service, asked with a request of HTTP.")
    ] = None
    grpc: Annotated[
        ExtAuthGRPC | None,
        Meta(
            description="The service, asked with a call of gRPC (envoy.service.auth.v3.Authorization). It may set and remove any "
            "header of the request that is not of framing or the proxy's."
        ),
    ] = None
    headers_to_ext_auth: Annotated[
        HeaderNames,
        Meta(
            description="Request headers that the service gets. An HTTP service also gets host, method, path, "
            "authorization and the proxy's `x-forwarded-*`. Absent: a gRPC service gets all headers. edgefast refuses `via`, "
            "headers of framing, and `x-edge-*` that the proxy does not write."
        ),
    ] = ()
    body_to_ext_auth: Annotated[
        ExtAuthBody | None, Meta(description="The request's body as well. Absent: none of it.")
    ] = None
    timeout: Annotated[
        Duration, Meta(description="For the whole answer; more than 0s, at most 60s.")
    ] = "10s"
    fail_open: Annotated[
        bool,
        Meta(
            description="A request passes when the service cannot be reached, answers 5xx or is late. A policy with a "
            "mistake stays closed all the same."
        ),
    ] = False
    status_on_error: Annotated[
        Annotated[int, Meta(ge=400, le=599)],
        Meta(description="What is answered then, unless `failOpen` is set."),
    ] = 403
    allowed_statuses: Annotated[
        tuple[Annotated[int, Meta(ge=200, le=299)], ...],
        Meta(
            min_length=1,
            max_length=16,
            extra=AS_SET,
            description="Statuses of a service of HTTP that let a request pass.",
        ),
    ] = (200,)
    cache: Annotated[
        ExtAuthCache | None, Meta(description="Answers that are kept. Absent: every request asks.")
    ] = None


class SecurityPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of a SecurityPolicy."""

    target_refs: TargetReferences
    merge_type: MergeType = "Inherit"
    authorization: Annotated[
        Authorization | None,
        Meta(description="Rules about addresses, headers, methods, paths, claims."),
    ] = None
    api_key_auth: Annotated[APIKeyAuth | None, Meta(description="Keys of clients.")] = field(
        default=None, name="apiKeyAuth"
    )
    basic_auth: Annotated[BasicAuth | None, Meta(description="Names and passwords.")] = None
    jwt: Annotated[JWT | None, Meta(description="Signed tokens.")] = None
    ext_auth: Annotated[ExtAuth | None, Meta(description="An authorisation service.")] = None


class SecurityPolicy(Resource, frozen=True, kw_only=True):
    """Who may enter: for a Gateway, a listener, a route or one rule of it."""

    metadata: ObjectMeta
    spec: SecurityPolicySpec
    #: Written by the decoder and never by a document: it only keeps the targets of one with a mistake closed.
    closed: Closed | None = None
    #: As well: what fields that are not served mean it for, or all that a closed one is meant for.
    aimed: tuple[Aim, ...] = ()
    #: Written by whoever keeps the last good version: what is wrong with the one after it.
    newer: Newer | None = None
