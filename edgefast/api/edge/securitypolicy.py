"""SecurityPolicy: access control: authorization rules, authentication of clients, and external authorization.

In: `gateway.edge.io/v1alpha1` documents. Out: `SecurityPolicy`. Its fields have the names that
Envoy Gateway gives them.
Source: GEP-713 (attachment), GEP-1494 (external authorization). `model/unsupported_fields.py` lists
what Envoy Gateway has and this release lacks. Such a field closes the policy: an unknown field
grants no access.
Must never: resolve a reference.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.edge.credentials import APIKeyAuth, BasicAuth
from edgefast.api.edge.jwt import JWT, JWTPrincipal
from edgefast.api.edge.oidc import OIDC
from edgefast.api.edge.policy_target import MergeType, Newer, PolicyTarget, TargetReferences
from edgefast.api.model.adopted import AdoptedPolicy
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import (
    AS_SET,
    CIDR,
    Duration,
    Element,
    Hostname,
    HTTPHeaderName,
    PreciseHostname,
    Resource,
    expects,
)
from edgefast.api.model.location_template import CHECK_PATH_LENGTH, CHECK_PATH_PATTERN
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import BackendObjectReference, BackendRef

#: Bytes of a request's body that an authorisation service is sent at most.
MAX_AUTH_BODY = 1024 * 1024

_URI_PATH = r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})*"

#: Variables of `redirectTo`.
SIGN_IN_VARIABLES = ("authority", "clientAddress", "escapedTarget", "host", "scheme", "target")

CheckMethod = Literal["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
Action = Literal["Allow", "Deny"]
HeaderNames = Annotated[tuple[HTTPHeaderName, ...], Meta(max_length=64, extra=AS_SET)]


class OperationPath(Element, frozen=True, kw_only=True):
    """A condition on the path that the router matched: normalised, without query."""

    type: Annotated[
        Literal["Exact", "PathPrefix", "RegularExpression"],
        Meta(
            description="PathPrefix compares whole segments. RegularExpression (RE2, ASCII) must match "
            "the whole path."
        ),
    ] = "PathPrefix"
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)],
        Meta(description="Path or expression."),
    ]


class AuthorizationOperation(Element, frozen=True, kw_only=True):
    """Method and path of a request. All fields that are set must match."""

    methods: Annotated[
        tuple[
            Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"],
            ...,
        ],
        Meta(max_length=16, extra=AS_SET, description="One of these methods. Absent: any."),
    ] = ()
    path: Annotated[OperationPath | None, Meta(description="The path. Absent: any.")] = None


class AuthorizationHeader(Element, frozen=True, kw_only=True):
    """A header that a request must have."""

    name: Annotated[
        HTTPHeaderName, Meta(description="Header name, not case-sensitive. Host is not allowed.")
    ]
    values: Annotated[
        tuple[Annotated[str, Meta(max_length=4096)], ...],
        Meta(min_length=1, max_length=256, description="Accepted values, case-sensitive."),
    ]


class ClientCertificateNames(Element, frozen=True, kw_only=True):
    """Names (subjectAltName) of a client certificate that an authority of the listener has issued. One name must match."""

    dns_names: Annotated[
        tuple[Hostname, ...],
        Meta(max_length=64, description="DNS names, compared as text: `*` matches only `*`."),
    ] = field(default=(), name="dnsNames")
    uris: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=2048)], ...],
        Meta(max_length=64, description="URIs such as spiffe://example.com/app, case-sensitive."),
    ] = ()


class AuthorizationPrincipal(Element, frozen=True, kw_only=True):
    """Client of a request or connection. All fields that are set must match."""

    client_cidrs: Annotated[
        tuple[CIDR, ...],
        Meta(
            max_length=256,
            description="Ranges of client addresses. EdgeProxy `clientAddress` determines the client "
            "address.",
        ),
    ] = field(default=(), name="clientCIDRs")
    server_names: Annotated[
        tuple[Hostname, ...],
        Meta(
            max_length=64,
            description="Server names of TLS (SNI). `*.example.com` matches all names below example.com. A "
            "connection without a server name matches Deny rules only.",
        ),
    ] = ()
    client_certificate: Annotated[
        ClientCertificateNames | None,
        Meta(
            description="Names of the client certificate. A connection without a valid one matches Deny "
            "rules only."
        ),
    ] = None
    headers: Annotated[
        tuple[AuthorizationHeader, ...],
        Meta(max_length=16, description="Headers. All must match."),
    ] = ()
    jwt: Annotated[
        JWTPrincipal | None,
        Meta(
            description="Verified token of the request. A rule with this field decides after `jwt` and "
            "`extAuth`."
        ),
    ] = None


class AuthorizationRule(Element, frozen=True, kw_only=True):
    """One rule. The first rule with matching conditions decides."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)] | None,
        Meta(description="Name of the rule in logs and in `edgefast explain`."),
    ] = None
    action: Annotated[Action, Meta(description="Allow: the request passes. Deny: it gets 403.")]
    operation: Annotated[
        AuthorizationOperation | None, Meta(description="Method and path of the request.")
    ] = None
    principal: Annotated[
        AuthorizationPrincipal | None, Meta(description="Client of the request.")
    ] = None


class Authorization(Element, frozen=True, kw_only=True):
    """Rules about requests, in order."""

    default_action: Annotated[Action, Meta(description="Decision if no rule matches.")] = "Deny"
    rules: Annotated[
        tuple[AuthorizationRule, ...],
        Meta(max_length=64, description="Rules. The first one that matches decides."),
    ] = ()


class ExtAuthHeader(Element, frozen=True, kw_only=True):
    """A header with a fixed value."""

    name: Annotated[HTTPHeaderName, Meta(description="Name of the header.")]
    value: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)],
        Meta(description="Value: printable ASCII characters and tabs."),
    ]


class ExtAuthSignIn(Element, frozen=True, kw_only=True):
    """A redirect of clients without a valid credential."""

    redirect_to: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            pattern=rf"^(https?://|\{{scheme\}}://|/)(?:[-A-Za-z0-9/._~!$&'()*+,;=:@?%#]|\{{(?:{'|'.join(SIGN_IN_VARIABLES)})\}})*\Z",
            extra=expects("an address such as https://login.example.com/start?rd={escapedTarget}"),
            description="Location of the redirect (302). {scheme}, {authority}, {host}, {target}, {escapedTarget} and "
            "{clientAddress} are replaced by values of the request.",
        ),
    ]


class ExtAuthHTTP(Element, frozen=True, kw_only=True):
    """An authorization service that is called with HTTP."""

    backend_ref: Annotated[
        BackendObjectReference | None, Meta(description="The service. Set this or `backendRefs`.")
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...],
        Meta(max_length=16, description="The services, with weights for the calls."),
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
        Meta(description="Prefix for the request's path: with /auth the service gets /auth/hello."),
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
        Meta(description="Replaces the request's path and query."),
    ] = None
    path_template: Annotated[
        Annotated[
            str,
            Meta(
                max_length=CHECK_PATH_LENGTH,
                pattern=CHECK_PATH_PATTERN,
                extra=expects("a path such as /verify?uri={escapedTarget}"),
            ),
        ]
        | None,
        Meta(
            description="Replaces the request's path and query with a text with at most 8 variables: {method}, {scheme}, {host} (name in "
            "Host), {authority} (Host with its port), {target} (path and query as the client sent them), {escapedTarget} (as a value in "
            "a query), {path} and {query}."
        ),
    ] = None
    headers_to_backend: Annotated[
        HeaderNames,
        Meta(
            description="Headers of the service's answer that the backend gets. edgefast always "
            "removes these headers from client requests."
        ),
    ] = ()
    method: Annotated[
        CheckMethod | None,
        Meta(description="Method of the check. Absent: the method of the request."),
    ] = None
    hostname: Annotated[
        PreciseHostname | None,
        Meta(description="Host of the check. Absent: the Host of the request."),
    ] = None
    all_request_headers: Annotated[
        bool,
        Meta(
            description="The service gets all headers of the request, except framing headers and headers of the proxy."
        ),
    ] = False
    original_request: Annotated[
        Literal["XForwarded", "XOriginal"],
        Meta(
            description="Headers that describe the request. XForwarded: x-forwarded-method, -host and -uri. "
            "XOriginal: x-original-url, -method and -uri, x-real-ip, x-scheme and x-auth-request-redirect, as ingress-nginx sends them."
        ),
    ] = "XForwarded"
    headers: Annotated[
        tuple[ExtAuthHeader, ...],
        Meta(
            max_length=16,
            description="Headers with a fixed value that the service gets, in place of those of the client.",
        ),
    ] = ()
    denied_statuses: Annotated[
        Annotated[
            tuple[Annotated[int, Meta(ge=300, le=499)], ...],
            Meta(min_length=1, max_length=16, extra=AS_SET),
        ]
        | None,
        Meta(
            description="Statuses that deny a request. Other ones are errors, as a service that does not answer. "
            "Absent: all below 500 that do not allow it."
        ),
    ] = None
    headers_to_client_on_denied: Annotated[
        HeaderNames | None,
        Meta(
            description="Headers of a denial that the client gets, without the body. Absent: the whole answer."
        ),
    ] = None
    headers_to_client: Annotated[
        HeaderNames,
        Meta(
            description="Headers of an answer that allows a request, such as set-cookie, that edgefast adds to the response."
        ),
    ] = ()
    headers_to_client_on: Annotated[
        Literal["AllStatuses", "SuccessAndRedirect"],
        Meta(
            description="Responses that get them. SuccessAndRedirect: 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308, "
            "and redirects to the sign-in page. AllStatuses: also denials."
        ),
    ] = "AllStatuses"
    sign_in: Annotated[
        ExtAuthSignIn | None,
        Meta(
            description="Redirects clients that the service, or another check of the route, refuses with 401."
        ),
    ] = None


class ExtAuthGRPC(Element, frozen=True, kw_only=True):
    """An authorization service that is called with gRPC: Check of envoy.service.auth.v3.Authorization."""

    backend_ref: Annotated[
        BackendObjectReference | None, Meta(description="The service. Set this or `backendRefs`.")
    ] = None
    backend_refs: Annotated[
        tuple[BackendRef, ...],
        Meta(max_length=16, description="The services, with weights for the calls."),
    ] = ()


class ExtAuthBody(Element, frozen=True, kw_only=True):
    """The request's body, for the authorization service."""

    max_request_bytes: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_AUTH_BODY)],
        Meta(description="Most bytes of the body that the service gets; a larger body gets 413."),
    ]


class ExtAuthCache(Element, frozen=True, kw_only=True):
    """Cache for answers: allowed, 401 and 403. Errors are not cached."""

    ttl: Annotated[Duration, Meta(description="Lifetime of a cached answer, at most 60s.")]
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
    """Calls an authorization service with HTTP or gRPC before the request continues."""

    http: Annotated[
        ExtAuthHTTP | None, Meta(description="Calls the service with an HTTP request.")
    ] = None
    grpc: Annotated[
        ExtAuthGRPC | None,
        Meta(
            description="Calls the service with gRPC (envoy.service.auth.v3.Authorization). It can set "
            "and remove request headers, except framing headers and headers of the proxy."
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
        ExtAuthBody | None, Meta(description="Also sends the request's body. Absent: no body.")
    ] = None
    timeout: Annotated[
        Duration, Meta(description="Time limit for the whole answer, more than 0s and at most 60s.")
    ] = "10s"
    fail_open: Annotated[
        bool,
        Meta(
            description="A request passes if the service cannot be reached, answers 5xx or is late. A "
            "policy with an error still denies all requests."
        ),
    ] = False
    status_on_error: Annotated[
        Annotated[int, Meta(ge=400, le=599)],
        Meta(description="Status of the answer in these cases, unless `failOpen` is set."),
    ] = 403
    allowed_statuses: Annotated[
        tuple[Annotated[int, Meta(ge=200, le=299)], ...],
        Meta(
            min_length=1,
            max_length=100,
            extra=AS_SET,
            description="Statuses of an HTTP service that allow a request.",
        ),
    ] = (200,)
    cache: Annotated[
        ExtAuthCache | None,
        Meta(description="Caches answers. Absent: edgefast calls the service for each request."),
    ] = None


class SecurityPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of a SecurityPolicy."""

    target_refs: TargetReferences
    merge_type: MergeType = "Inherit"
    satisfy: Annotated[
        Literal["All", "Any"],
        Meta(
            description="All: a request must pass all features of the policy. Any: one of `authorization`, `apiKeyAuth`, `basicAuth` and "
            "`extAuth` is enough; edgefast asks them in this order. Any cannot be combined with `oidc` or `jwt`. Features that another policy replaces do not count."
        ),
    ] = "All"
    authorization: Annotated[
        Authorization | None,
        Meta(description="Rules about addresses, headers, methods, paths and claims."),
    ] = None
    api_key_auth: Annotated[APIKeyAuth | None, Meta(description="API keys of clients.")] = field(
        default=None, name="apiKeyAuth"
    )
    basic_auth: Annotated[BasicAuth | None, Meta(description="HTTP basic authentication.")] = None
    oidc: Annotated[OIDC | None, Meta(description="Login of browsers at an identity provider.")] = (
        None
    )
    jwt: Annotated[JWT | None, Meta(description="Signed tokens.")] = None
    ext_auth: Annotated[ExtAuth | None, Meta(description="External authorization service.")] = None


class SecurityPolicy(Resource, frozen=True, kw_only=True):
    """Access control for a Gateway, a listener, a route or one rule of it."""

    metadata: ObjectMeta
    spec: SecurityPolicySpec
    #: Written by the decoder and never by a document: it only keeps the targets of one with a mistake closed.
    closed: Closed | None = None
    #: As well: what fields that are not served mean it for, or all that a closed one is meant for.
    aimed: tuple[PolicyTarget, ...] = ()
    #: Written by whoever keeps the last good version: what is wrong with the one after it.
    newer: Newer | None = None
    #: Written by the decoder of a policy of another project (`--adopt`).
    adopted: AdoptedPolicy | None = None
