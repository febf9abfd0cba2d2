"""Policy: access and traffic policies in the IR.

In: written by `translate` only.
Out: a `PolicyUnit` is a resource of its own beside clusters, and rules name the units that apply to
them. A policy change therefore rebuilds none of its rules, even with ten thousand. Durations are
milliseconds, sizes are bytes.
Must never: hold the targets of a policy, or a credential in clear, but the client secret of `Oidc`.
"""

from __future__ import annotations

from typing import Literal

from edgefast.ir.backend import (
    HealthCheck,
    LoadBalancer,
    OutlierDetection,
    RetryBudget,
    RetryConstraint,
    SessionPersistence,
)
from edgefast.ir.credentials import AccessToken, ApiKeyAuth, BasicAuth, CredentialExtractors, Jwt
from edgefast.ir.header_ops import HeaderOps
from edgefast.ir.oidc import Oidc
from edgefast.ir.telemetry import Struct

Encoding = Literal["br", "gzip", "zstd"]


class Fault(Struct, frozen=True, gc=False):
    """Requests that wait or are refused on purpose (BackendTrafficPolicy faultInjection)."""

    delay: int = 0
    delay_share: int = 0
    status: int = (
        0  # 0: none is refused; a gRPC request is answered with what it becomes (gRPC over HTTP/2)
    )
    grpc_status: int | None = None  # of gRPC requests, in place of `status`
    abort_share: int = 0


class ErrorService(Struct, frozen=True, gc=False):
    """A service that writes the body of another answer (BackendTrafficPolicy responseOverride[].service)."""

    cluster: str
    path: str = ""  # in place of the request's; its query stays; "": the request's
    host: str = ""  # "": the request's
    headers: tuple[str, ...] = ()  # lower case, sorted; of the request
    all_headers: bool = False  # besides framing, credentials and the proxy's own
    fixed: tuple[tuple[str, str], ...] = ()  # headers, in place of the client's; lower case
    own_status: bool = False  # the client gets the status of the service
    timeout: int = 5_000


#: Source of the replaced answers; no_endpoints: 503 of the proxy for a backend without endpoints.
OverrideSource = Literal["all", "backend", "gateway", "no_endpoints"]


class ResponseOverride(Struct, frozen=True, gc=False):
    """Another answer in place of one (BackendTrafficPolicy responseOverride)."""

    statuses: tuple[tuple[int, int], ...]  # from, to, both included
    source: OverrideSource = "all"
    status: int = 0  # 0: as it was
    content_type: str = ""
    body: bytes = b""
    header: HeaderOps | None = None  # of an answer without service
    location: str = ""  # not "": a redirect there, `status` is 301 or 302
    service: ErrorService | None = None  # not None: it writes the answer


class Compression(Struct, frozen=True, gc=False):
    """Encodings for answers that have none (BackendTrafficPolicy compression; RFC 9110 8.4.1)."""

    encodings: tuple[Encoding, ...]  # in order of preference where the client has none
    min_size: int = 1024  # of answers that say their length


class Bandwidth(Struct, frozen=True, gc=False):
    """A limit for the body of each response (BackendTrafficPolicy bandwidthLimit.response)."""

    amount: int  # bytes in `period`
    period: int = 1000
    unlimited: int = 0  # first bytes of a response that have no limit


PathKind = Literal["exact", "prefix", "regex"]

# --- who may enter ------------------------------------------------------------------------------------------------


class AccessRule(Struct, frozen=True, gc=False):
    """One rule of an Authorization; all its conditions must hold, an empty one holds for all."""

    allow: bool
    name: str = ""
    sources: tuple[str, ...] = ()  # address ranges; the client must be in one of them
    # Lower case, exact or "*.example.com"; SNI must be one of them.
    server_names: tuple[str, ...] = ()
    # subjectAltNames; the client certificate must have one of them. DNS names are lower case.
    certificate: tuple[tuple[Literal["dns", "uri"], str], ...] = ()
    headers: tuple[
        tuple[str, tuple[str, ...]], ...
    ] = ()  # lower case; each must have one of its values
    methods: tuple[str, ...] = ()  # upper case; one of them
    # One of them. exact: whole path; prefix: without trailing slash, whole segments; regex: RE2, whole path
    paths: tuple[tuple[PathKind, str], ...] = ()
    token: AccessToken | None = None  # None: no token is asked for


class Authorization(Struct, frozen=True, gc=False):
    """Rules in order, the first that holds decides (SecurityPolicy authorization)."""

    rules: tuple[AccessRule, ...] = ()
    allow: bool = False  # what is decided where none holds


class AuthBackend(Struct, frozen=True, gc=False):
    """One share of an authorisation service's requests."""

    cluster: str
    weight: int = 1


class AuthCache(Struct, frozen=True, gc=False):
    """Answers of an authorisation service that are believed for a while."""

    ttl: int
    key_headers: tuple[str, ...] | None = None  # lower case, sorted; None: all that are sent to it


class ExtAuth(Struct, frozen=True, gc=False):
    """A question to an authorisation service (SecurityPolicy extAuth, HTTPRoute filter ExternalAuth)."""

    backends: tuple[AuthBackend, ...]
    path: str = ""  # put before the request's path
    path_override: str = ""  # in place of the request's path, with a query if it has one
    headers: tuple[
        str, ...
    ] = ()  # lower case, sorted; of the request, besides host, method, path and authorization; of gRPC these alone, () is all of them
    to_backend: tuple[
        str, ...
    ] = ()  # lower case, sorted; of the answer, they replace those of the request
    statuses: tuple[int, ...] = (200,)  # that let a request pass
    # Of an HTTP check; what is not set is as the request has it.
    method: str = ""
    host: str = ""
    all_headers: bool = (
        False  # besides framing and the proxy's own; `headers` counts for nothing then
    )
    original: bool = False  # x-original-* describe the request, not x-forwarded-*
    fixed: tuple[tuple[str, str], ...] = ()  # headers, in place of the client's; lower case
    denied: tuple[int, ...] | None = None  # statuses that deny; others fail. None: all below 500
    to_denied: tuple[str, ...] | None = (
        None  # lower case, of a denial without its body; None: all of it
    )
    to_client: tuple[str, ...] = ()  # lower case, of an answer that lets a request pass
    to_client_always: bool = True  # on responses of every status, denials too
    sign_in: str = ""  # Location of 302 in place of 401, with {variables}; "": 401 stays
    grpc: bool = False  # envoy.service.auth.v3.Authorization/Check, over HTTP/2; path, path_override, to_backend, statuses are not used
    body: int = 0  # bytes of the request's body that it gets at most; more is 413; 0: it gets none
    timeout: int = 10_000
    fail_open: bool = False  # no answer, or an answer 5xx: the request passes
    status_on_error: int = 403  # else it is answered with this
    cache: AuthCache | None = None
    path_template: str = ""  # in place of path and path_override, with {variables}


# --- how requests and backends are treated --------------------------------------------------------------------------


class Traffic(Struct, frozen=True, gc=False):
    """BackendTrafficPolicy; None is not said, 0 is without end."""

    body_size: int | None = None  # bytes of a request's body; more is 413
    request_timeout: int | None = None  # the whole answer
    idle_timeout: int | None = None  # neither side sends anything
    send_timeout: int | None = None  # the backend takes nothing of what waits for it
    connect_timeout: int | None = None  # of a connection to an endpoint
    retry_timeout: int | None = None  # from the first attempt to the beginning of the last
    fault: Fault | None = None
    override: tuple[ResponseOverride, ...] | None = None  # the first that matches
    compression: Compression | None = None
    bandwidth: Bandwidth | None = None
    load_balancer: LoadBalancer | None = None
    session: SessionPersistence | None = None
    # Of what a cluster has of all workers of a proxy; 0: none.
    max_connections: int | None = None
    max_endpoint_connections: int | None = None  # of each endpoint
    max_pending: int | None = None  # requests that wait for a connection
    max_requests: int | None = None
    max_retries: int | None = None
    retry_budget: RetryBudget | None = None
    max_connection_requests: int | None = None  # that one connection carries; 0: any number
    outlier: OutlierDetection | None = None
    check: HealthCheck | None = None
    panic: int | None = (
        None  # percent of a cluster's endpoints; fewer that are not out, and all are used
    )
    retry_constraint: RetryConstraint | None = None


class BackendPolicy(Struct, frozen=True, gc=False):
    """How requests are treated at one backend of a rule, where policies of its Service or Backend say something, too.

    In place of what Rule.traffic says of endpoints; what it says of requests and answers stays the rule's.
    """

    traffic: tuple[
        str, ...
    ] = ()  # as Rule.traffic; closed ones of the backend stand among the Overrides
    ceilings: int = 0
    lost: tuple[tuple[str, str], ...] = ()  # units that do not hold here, and by whom; for explain


# --- a unit -----------------------------------------------------------------------------------------------------


class PolicyUnit(Struct, frozen=True, gc=False):
    """One top-level feature of one policy; exactly one of its parts is set, none where `status` is not 0."""

    # "security/namespace/policy#authorization", "...#apiKeyAuth", "...#basicAuth", "...#oidc", "...#jwt", "...#extAuth", "...#closed",
    # "traffic/namespace/policy"
    name: str
    status: int = 0  # not 0: the unit is broken, requests that meet it are answered with this (500)
    # Why, in words, for dump and explain; of one that is not broken: that it is of the version before, and what the new one has.
    reason: str = ""
    any: bool = False  # one of its policy's units suffices (SecurityPolicy satisfy)
    authorization: Authorization | None = None
    api_key: ApiKeyAuth | None = None
    basic: BasicAuth | None = None
    oidc: Oidc | None = None
    jwt: Jwt | None = None
    ext_auth: ExtAuth | None = None
    traffic: Traffic | None = None
    # Of a broken one: where requests carry credentials for it, which no log shows.
    places: tuple[CredentialExtractors, ...] = ()


class DirectResponse(Struct, frozen=True, gc=False):
    """An answer of the proxy's own (HTTPRouteFilter directResponse)."""

    status: int = 200
    content_type: str = ""
    body: bytes = b""
