"""Fleet: listeners, virtual hosts, rules, clusters and secrets, with the parts of a rule. The other parts have modules beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal

from edgefast.ir.backend import Proxies, SessionPersistence, ZoneAware
from edgefast.ir.header_ops import HeaderOps
from edgefast.ir.http import HttpSettings
from edgefast.ir.layer4 import StreamRoute, StreamSettings
from edgefast.ir.policy import BackendPolicy, DirectResponse, ExtAuth, PathKind, PolicyUnit
from edgefast.ir.telemetry import AccessLog, Struct, Tracing

Protocol = Literal["HTTP", "HTTPS", "TLS", "TCP", "UDP"]
NameType = Literal["Hostname", "URI"]

# --- a rule and its parts -----------------------------------------------------------------------------------------


class ValueMatch(Struct, frozen=True, gc=False, order=True):
    """A header or query parameter predicate (HTTPHeaderMatch, HTTPQueryParamMatch); HTTPRouteFilter has some on cookies."""

    name: str  # headers: lower case; query parameters, and "cookie:" with the name of a cookie: as written
    value: str  # the exact value, or an RE2 pattern that must match the whole value
    regex: bool = False


class Match(Struct, frozen=True, gc=False, order=True):
    """One HTTPRouteMatch, and one way in which those of HTTPRouteFilters may hold; all its predicates must hold."""

    kind: PathKind
    path: str  # exact: whole path; prefix: without trailing slash ("" is the prefix "/"); regex: RE2, whole path
    method: str = ""  # "" is any method
    headers: tuple[ValueMatch, ...] = ()
    query: tuple[ValueMatch, ...] = ()


class PathRewrite(Struct, frozen=True, gc=False):
    """HTTPPathModifier of a rewrite or redirect; regex: HTTPRouteFilter urlRewrite."""

    kind: Literal["full", "prefix", "regex"]
    # full: the new path; prefix: without trailing slash, replaces the matched prefix (whole segments);
    # regex: replaces every match of `pattern`, \\1 to \\9 stand for its groups, \\0 for the match
    value: str
    pattern: str = ""  # RE2, of regex alone


class Redirect(Struct, frozen=True, gc=False):
    """HTTPRequestRedirectFilter; "" or 0 keeps what the request had, by the port rules of the Gateway API."""

    status: int = 302
    scheme: str = ""
    hostname: str = ""
    port: int = 0
    path: PathRewrite | None = None
    # Forms that Ingresses require: without one "/" at the end of path and query, with the port even if it is the default, without
    # the query of the request.
    trim_slash: bool = False
    write_port: bool = False
    drop_query: bool = False
    # Not "": the Location, with {variables} and \\1 to \\9 of `pattern`, before the query; the fields above it are not used.
    template: str = ""
    pattern: str = ""  # RE2, searched in the path
    relative: bool = False  # path and query alone


class Rewrite(Struct, frozen=True, gc=False):
    """HTTPURLRewriteFilter."""

    hostname: str = ""
    path: PathRewrite | None = None


class TextRewrite(Struct, frozen=True, gc=False):
    """One rewrite of a value (HTTPRouteFilter responseRewrite)."""

    # prefix: the value begins with `pattern`; exact: it is `pattern`, in any case and without a dot before it; regex: every match
    # of `pattern` (RE2) in it
    kind: Literal["prefix", "exact", "regex"]
    pattern: str
    value: str  # of regex: \\1 to \\9 stand for its groups; of a location: {scheme} and {host} for those of the request


class ResponseRewrite(Struct, frozen=True, gc=False):
    """Changes of headers in responses of backends (HTTPRouteFilter responseRewrite). Of each tuple the first that matches applies."""

    locations: tuple[TextRewrite, ...] = ()  # Location, and the URL in Refresh
    cookie_domains: tuple[TextRewrite, ...] = ()  # Domain in Set-Cookie; "" leaves it out
    cookie_paths: tuple[TextRewrite, ...] = ()  # Path in Set-Cookie


class Mirror(Struct, frozen=True, gc=False):
    """HTTPRequestMirrorFilter: a copy of numerator of denominator requests goes to the cluster."""

    cluster: str
    numerator: int = 100
    denominator: int = 100


class Cors(Struct, frozen=True, gc=False):
    """HTTPCORSFilter. A pattern is "*", an exact origin, or "scheme://*[.suffix][:port]"; lower case, no default port."""

    allow_origins: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    allow_credentials: bool = False
    max_age: int = 5  # seconds, the Gateway API default


class BackendRef(Struct, frozen=True, gc=False):
    """One share of a rule's traffic. `cluster` is "" when the reference is invalid: that share answers `status`."""

    cluster: str = ""
    weight: int = 1
    status: int = 500
    reason: str = ""  # why `cluster` is "", in words, for dump and explain
    request_headers: HeaderOps | None = None
    response_headers: HeaderOps | None = None
    rewrite: Rewrite | None = None
    redirect: Redirect | None = None
    mirrors: tuple[Mirror, ...] = ()
    cors: Cors | None = None
    treatment: BackendPolicy | None = None  # None: as the rule's
    # What the backend says of its clients (XBackend sessionPersistence), before all that is no Override; named always.
    session: SessionPersistence | None = None


class Timeouts(Struct, frozen=True, gc=False):
    """HTTPRouteTimeouts in milliseconds; None is unset (the default of 15 s on response headers), 0 disables."""

    request: int | None = None
    backend_request: int | None = None


class Retry(Struct, frozen=True, gc=False):
    """HTTPRouteRetry."""

    codes: tuple[int, ...] = ()
    attempts: int = 1  # tries after the first; 0: none, whatever goes wrong
    backoff: int = (
        25  # milliseconds, least pause; grows by two with jitter, to ten times it at most
    )


class RateLimit(Struct, frozen=True, gc=False):
    """One rule of a RateLimitFilter, as one HTTPRoute rule uses it. All its conditions must hold for a request to count."""

    name: str  # "namespace/filter#2": the RateLimitFilter and the place of the rule in it; for logs and metrics
    counter: str  # names the counter, distinct values aside (docs/guides/rate-limits.md)
    requests: int  # let through per window; 0 blocks all
    unit: int  # length of the window in seconds
    headers: tuple[ValueMatch, ...] = ()
    # Lower case, sorted: a counter for each value; absent: nothing is counted.
    distinct_headers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # address ranges; the client must be in all of them
    distinct_source: bool = False  # a counter for each client address
    shadow: bool = False  # counts and reports, never refuses
    sliding: bool = False  # weighs in the window before
    # Window: counts in the store. Bucket: a token bucket of this machine; Parallel: requests in progress on this machine, at most `requests`.
    kind: Literal["Window", "Bucket", "Parallel"] = "Window"
    burst: int = 0  # of a Bucket: its tokens when it is full
    status: int = 0  # of a refusal; 0: 429
    excepts: tuple[str, ...] = ()  # address ranges; a client in one of them is not counted


class Rule(Struct, frozen=True, gc=False):
    """What happens to a request once one of the rule's matches has taken it."""

    route: str  # "namespace/name" of the HTTPRoute
    index: int  # its place in spec.rules
    name: str = ""  # spec.rules[].name
    source: str = ""  # "file:line" or "generation 3", for dump and explain
    status: int = 0  # not 0: answer with this status and nothing else (500: no valid backend or a broken filter)
    reason: str = ""  # why, in words, for dump and explain
    backends: tuple[BackendRef, ...] = ()
    request_headers: HeaderOps | None = None
    response_headers: HeaderOps | None = None
    redirect: Redirect | None = None
    rewrite: Rewrite | None = None
    mirrors: tuple[Mirror, ...] = ()
    cors: Cors | None = None
    timeouts: Timeouts | None = None
    retry: Retry | None = None
    rate_limits: tuple[RateLimit, ...] = ()
    # PolicyUnit.name, in the order in which they are asked: closed ones, authorizations, authorisation services.
    policies: tuple[str, ...] = ()
    ext_auth: ExtAuth | None = None  # the rule's own filter ExternalAuth, asked besides
    # PolicyUnit.name of traffic units. The first `ceilings` are Overrides; of the others the first that says a setting has it, but no
    # longer or more than any Override allows.
    traffic: tuple[str, ...] = ()
    ceilings: int = 0
    lost: tuple[tuple[str, str], ...] = ()  # units that do not hold here, and by whom; for explain
    direct: DirectResponse | None = None
    session: SessionPersistence | None = None  # its own, before all that is no override
    response_rewrite: ResponseRewrite | None = None

    def units(self) -> tuple[str, ...]:
        """Return the names of all units that the rule and its shares name, each once."""
        treated = [one.treatment.traffic for one in self.backends if one.treatment is not None]
        if not treated:
            return (*self.policies, *self.traffic)
        return tuple(dict.fromkeys((*self.policies, *self.traffic, *chain(*treated))))

    def each_treated(self) -> bool:
        """Tell whether all that gets requests has a treatment of its own: what `traffic` says of backends is then in force nowhere."""
        shares = [one for one in self.backends if one.cluster and one.weight]
        return bool(shares) and all(one.treatment is not None for one in shares)


class Entry(Struct, frozen=True, gc=False):
    """One match of one rule inside a virtual host."""

    match: Match
    rule: int  # index into VirtualHost.rules


class VirtualHost(Struct, frozen=True, gc=False):
    """All rules that one hostname of one listener has: what a shard is compiled from."""

    listener: str  # Listener.name
    hostname: str  # "www.example.com", "*.example.com", or "*" (none given); lower case
    rules: tuple[Rule, ...]
    # in order of precedence, first match wins (translate/match/precedence.py)
    entries: tuple[Entry, ...]


# --- listeners ----------------------------------------------------------------------------------------------------


class ClientRule(Struct, frozen=True, gc=False):
    """Client certificates of one listener. Handshakes succeed without one; each request is checked."""

    ca: str  # Secret.name of the authorities and revocation lists
    mode: Literal["required", "optional", "any_issuer"] = (
        "required"  # any_issuer: optional, its issuer does not matter
    )
    depth: int = 1  # certificates between that of the client and an authority
    subject: str = ""  # RE2 that finds something in the distinguished name; "": any
    error_page: str = ""  # URL of a redirect in place of 400


class ListenerTls(Struct, frozen=True, gc=False):
    """TLS termination of one listener. Versions and client_ca belong to the port: equal on all its listeners."""

    certificates: tuple[str, ...]  # Secret.name, RSA and ECDSA side by side
    min_version: Literal["1.2", "1.3"] = "1.2"
    client_ca: str = ""  # Secret.name of a CA bundle; "" asks for no client certificate
    client_insecure_fallback: bool = False
    client_rule: ClientRule | None = None  # of this listener alone; client_ca is "" then


class Listener(Struct, frozen=True, gc=False):
    """One listener of one Gateway."""

    name: str  # "namespace/gateway/listener"
    port: int  # the listener's port: what clients and redirects speak of
    bind_port: int  # the port to bind; differs from `port` below 1024 in fleets
    protocol: Protocol
    hostname: str = "*"  # as VirtualHost.hostname
    tls: ListenerTls | None = None  # protocol TLS: None passes through, else it is terminated
    http: HttpSettings = HttpSettings()
    stream: StreamSettings = StreamSettings()  # of TLS, TCP and UDP
    access_log: AccessLog = AccessLog()
    tracing: Tracing | None = None
    # PolicyUnit.name of its filters, in their order: services that are asked of every request before it is routed.
    filters: tuple[str, ...] = ()
    # Bind addresses of its port, sorted. Empty: all that the proxy binds. Listeners of one port have equal or disjoint addresses.
    addresses: tuple[str, ...] = ()


# --- where requests go --------------------------------------------------------------------------------------------


class Endpoint(Struct, frozen=True, gc=False):
    """One address of a cluster."""

    address: str = ""  # IPv4, IPv6, or a unix socket's path
    port: int = 0  # 0 with a unix path
    hostname: str = ""  # fqdn to resolve again and again; `address` is "" then
    weight: int = 1
    zone: str = ""  # it is in; "" where nobody says


class UpstreamTls(Struct, frozen=True, gc=False):
    """TLS towards a cluster (BackendTLSPolicy, Backend spec.tls)."""

    sni: str
    ca: str = ""  # Secret.name of a CA bundle; "" is the system's bundle
    sans: tuple[tuple[NameType, str], ...] = ()  # when given, they replace `sni` in verification
    certificate: str = ""  # Secret.name of a client certificate
    insecure: bool = False  # the certificate of the endpoint is not verified
    depth: int = 0  # one more than the certificates between that of the endpoint and an authority; 0: the library's limit


#: Different health checks that are made of a cluster: the first ones of its treatments. Rules with others do without.
CHECKS_MOST = 6

#: h2: HTTP/2 alone, from the first byte (prior knowledge), or agreed on in TLS. alpn: with TLS, what the backend takes.
UpstreamProtocol = Literal["http1", "h2", "alpn"]


class Cluster(Struct, frozen=True, gc=False):
    """A set of equal endpoints. `fallback` is used only while `endpoints` is empty (serving but terminating)."""

    name: str  # "service/namespace/name/port" or "backend/namespace/name[/port]", "/h2" after it when it has to be HTTP/2,
    # "@namespace/secret" after that when the Gateway shows a client certificate of its own to TLS backends; of datagrams "/udp" ends it
    endpoints: tuple[Endpoint, ...] = ()
    fallback: tuple[Endpoint, ...] = ()
    tls: UpstreamTls | None = None
    protocol: UpstreamProtocol = "http1"
    max_connections: int = 1024
    max_pending: int = 1024
    zones: ZoneAware | None = None  # as its Service says it; what policies say comes first
    # Ranges that hostnames of endpoints may resolve into although their addresses are never backends (inetaddr.RESERVED).
    allowed: tuple[str, ...] = ()
    # How rules, or their shares, treat it: how many of their traffic units are Overrides, and these, as in BackendPolicy; each once,
    # in the order in which their checks are made: sorted, but for a cluster with more than CHECKS_MOST different ones, of which the first are
    # made. For what is to be known of policies before a request comes, whether any says it or not (health checks). Of a cluster with more than
    # 64 ways only the first unit with a check of each that has one which is made, as the one unit of a way.
    treatments: tuple[tuple[int, tuple[str, ...]], ...] = ()


class Secret(Struct, frozen=True, gc=False):
    """Key material by name; never printed."""

    name: str  # "secret/namespace/name", "configmap/namespace/name" or "bundle/digest" of several CA references
    certificate: bytes = b""  # PEM chain
    private_key: bytes = b""  # PEM
    ca: bytes = b""  # PEM bundle
    crl: bytes = b""  # PEM revocation lists of its authorities
    staple: bytes = b""  # DER of an OCSP response for the certificate
    staple_until: int = 0  # seconds since 1970 from which on it is not stapled

    def __repr__(self) -> str:
        return f"Secret(name={self.name!r}, <redacted>)"


class RateLimitStore(Struct, frozen=True, gc=False):
    """Where the counters of rate limits are (EdgeGateway rateLimit); its secrets are never printed."""

    kind: Literal["memory", "redis"] = "memory"  # memory: shared by the workers of one machine
    mode: Literal["single", "sentinel", "cluster"] = "single"
    addresses: tuple[str, ...] = ()  # "host:port": server, nodes of the cluster, or sentinels
    master: str = ""  # the primary's name at the sentinels
    database: int = 0
    user: str = ""
    password: str = ""
    tls: bool = False
    ca: bytes = b""  # PEM bundle; b"" is the system's
    certificate: bytes = b""  # PEM chain of the client certificate
    private_key: bytes = b""  # PEM
    timeout: int = 20  # milliseconds that the store may take
    fail_closed: bool = False  # when it fails: 500, else let through

    def __repr__(self) -> str:
        return f"RateLimitStore({self.kind!r}, {self.mode!r}, {self.addresses!r}, <redacted>)"


class Fleet(Struct, frozen=True, gc=False):
    """All that one set of proxies serves. In standalone there is one, named "standalone"."""

    name: str
    listeners: tuple[Listener, ...] = ()
    virtual_hosts: Sequence[VirtualHost] = ()
    stream_routes: Sequence[StreamRoute] = ()  # by listener, hostname
    clusters: Sequence[Cluster] = ()
    secrets: tuple[Secret, ...] = ()
    policies: Sequence[PolicyUnit] = ()
    limit_store: RateLimitStore | None = None  # None: no rule has limits
    proxies: Proxies | None = None  # None: nobody asks which zone a proxy is in


class IR(Struct, frozen=True, gc=False):
    """The whole outcome for the data plane."""

    fleets: tuple[Fleet, ...] = ()
