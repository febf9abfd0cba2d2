"""Edge: rules about EdgeProxy, Backend and RateLimitFilter, each with its CEL twin for the CRD.

In: parts of edgefast's kinds. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.backend import (
    BackendEndpoint,
    BackendSpec,
    BackendTLS,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.edge.edgeproxy import ProxyAccessLog
from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetHPA,
    FleetPDB,
    FleetService,
    FleetShutdown,
)
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress
from edgefast.api.edge.ratelimitfilter import (
    LocalRateLimitRule,
    RateLimitFilterSpec,
    RateLimitHeaderMatch,
    RateLimitSelector,
    RateLimitSourceCIDR,
)
from edgefast.api.model.regex import explain_regex
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.hostname import check_hostname
from edgefast.api.validation.rule import RuleBook, Violation
from edgefast.netaddr import parse_network, read_address

BOOK = RuleBook()


def is_cidr(text: str) -> bool:
    """Tell whether a text is a range of addresses."""
    try:
        parse_network(text)
    except ValueError:
        return False
    return True


def bad_cidr(path: tuple[str | int, ...], value: str) -> Violation:
    """Return what is said of one that is none."""
    return Violation(
        path, "Invalid", f'"{value}" (expected a range of addresses such as 10.0.0.0/8)'
    )


@BOOK.on(
    FleetDeployment,
    "kind",
    "replicas",
    cel="!has(self.kind) || self.kind != 'DaemonSet' || !has(self.replicas)",
    message="replicas must not be set with kind DaemonSet",
)
def check_deployment(one: FleetDeployment) -> Iterable[Violation]:
    """A DaemonSet runs on every node, whatever number is asked for."""
    if one.kind == "DaemonSet" and one.replicas is not None:
        return (Violation(("replicas",), "Forbidden", "with kind DaemonSet"),)
    return ()


@BOOK.on(
    FleetHPA,
    "min_replicas",
    "max_replicas",
    cel="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
    message="minReplicas must be at most maxReplicas",
)
def check_hpa(one: FleetHPA) -> Iterable[Violation]:
    """The fewest are not more than the most."""
    if one.min_replicas is not None and one.min_replicas > one.max_replicas:
        return (
            Violation(
                ("minReplicas",),
                "Invalid",
                f"{one.min_replicas} (at most maxReplicas, {one.max_replicas})",
            ),
        )
    return ()


@BOOK.on(
    FleetPDB,
    "min_available",
    "max_unavailable",
    cel="has(self.minAvailable) != has(self.maxUnavailable)",
    message="exactly one of minAvailable and maxUnavailable must be set",
)
def check_pdb(one: FleetPDB) -> Iterable[Violation]:
    """One bound or the other."""
    if one.min_available is None and one.max_unavailable is None:
        return (Violation(("minAvailable",), "Required", "this or maxUnavailable"),)
    if one.min_available is not None and one.max_unavailable is not None:
        return (Violation(("maxUnavailable",), "Forbidden", "together with minAvailable"),)
    return ()


@BOOK.on(
    FleetService,
    "type",
    "load_balancer_class",
    "load_balancer_source_ranges",
    cel="!has(self.type) || self.type == 'LoadBalancer' || "
    "(!has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges))",
    message="loadBalancerClass and loadBalancerSourceRanges need type LoadBalancer",
)
def check_load_balancer(one: FleetService) -> Iterable[Violation]:
    """Settings of a load balancer need one."""
    if one.type in (None, "LoadBalancer"):
        return
    for name, value in (
        ("loadBalancerClass", one.load_balancer_class),
        ("loadBalancerSourceRanges", one.load_balancer_source_ranges),
    ):
        if value is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type}")


@BOOK.on(
    FleetService,
    "load_balancer_source_ranges",
    cel="!has(self.loadBalancerSourceRanges) || "
    "self.loadBalancerSourceRanges.all(range, isCIDR(range))",
    message="loadBalancerSourceRanges must be ranges of addresses",
)
def check_source_ranges(one: FleetService) -> Iterable[Violation]:
    """Check that every entry is a range of addresses."""
    for index, value in enumerate(one.load_balancer_source_ranges or ()):
        if not is_cidr(value):
            yield bad_cidr(("loadBalancerSourceRanges", index), value)


@BOOK.on(
    FleetService,
    "type",
    "external_traffic_policy",
    cel="!has(self.type) || self.type != 'ClusterIP' || !has(self.externalTrafficPolicy)",
    message="externalTrafficPolicy must not be set with type ClusterIP",
)
def check_traffic_policy(one: FleetService) -> Iterable[Violation]:
    """A ClusterIP has no external traffic."""
    if one.type == "ClusterIP" and one.external_traffic_policy is not None:
        return (Violation(("externalTrafficPolicy",), "Forbidden", "with type ClusterIP"),)
    return ()


@BOOK.on(
    FleetShutdown,
    "drain_timeout",
    "min_drain_duration",
    cel="!has(self.drainTimeout) || !has(self.minDrainDuration) || "
    "duration(self.minDrainDuration) <= duration(self.drainTimeout)",
    message="minDrainDuration must be at most drainTimeout",
)
def check_shutdown(one: FleetShutdown) -> Iterable[Violation]:
    """The shortest drain is not longer than the longest."""
    if one.drain_timeout is None or one.min_drain_duration is None:
        return ()
    if parse_duration(one.min_drain_duration) > parse_duration(one.drain_timeout):
        return (
            Violation(
                ("minDrainDuration",),
                "Invalid",
                f'"{one.min_drain_duration}" (at most drainTimeout, {one.drain_timeout})',
            ),
        )
    return ()


@BOOK.on(
    ProxyClientAddress,
    "trusted_cidrs",
    cel="!has(self.trustedCIDRs) || self.trustedCIDRs.all(range, isCIDR(range))",
    message="trustedCIDRs must be ranges of addresses",
)
def check_trusted(one: ProxyClientAddress) -> Iterable[Violation]:
    """Check that every entry is a range of addresses."""
    for index, value in enumerate(one.trusted_cidrs or ()):
        if not is_cidr(value):
            yield bad_cidr(("trustedCIDRs", index), value)


@BOOK.on(
    ProxyClientAddress,
    "proxy_protocol_cidrs",
    cel="!has(self.proxyProtocolCIDRs) || self.proxyProtocolCIDRs.all(range, isCIDR(range))",
    message="proxyProtocolCIDRs must be ranges of addresses",
)
def check_proxy_senders(one: ProxyClientAddress) -> Iterable[Violation]:
    """Check that every entry is a range of addresses."""
    for index, value in enumerate(one.proxy_protocol_cidrs or ()):
        if not is_cidr(value):
            yield bad_cidr(("proxyProtocolCIDRs", index), value)


@BOOK.on(
    ProxyAccessLog,
    "format",
    "template",
    "fields",
    "json",
    cel="[has(self.template), has(self.json), has(self.fields)].filter(given, given).size() <= 1 && "
    "(!has(self.format) || (self.format == 'json' ? !has(self.template) : "
    "has(self.template) && !has(self.json) && !has(self.fields)))",
    message="format text needs template; fields or json belong to format json",
)
def check_access_log(one: ProxyAccessLog) -> Iterable[Violation]:
    """Each format has its own way to say what is in a line, and one way is enough."""
    if one.format == "text" and one.template is None:
        yield Violation(("template",), "Required", "with format text")
    ways = [name for name in ("template", "json", "fields") if getattr(one, name) is not None]
    allowed = {"json": ("json", "fields"), "text": ("template",)}.get(one.format or "", ways)
    for name in ways:
        if name not in allowed:
            yield Violation((name,), "Forbidden", f"with format {one.format}")
    message = [name for name in ways if name in allowed]
    for name in message[1:]:
        yield Violation((name,), "Forbidden", f"together with {message[0]}")


@BOOK.on(
    BackendEndpoint,
    "ip",
    "fqdn",
    "unix",
    cel="[has(self.ip), has(self.fqdn), has(self.unix)].exists_one(given, given)",
    message="exactly one of ip, fqdn and unix must be set",
)
def check_endpoint(one: BackendEndpoint) -> Iterable[Violation]:
    """An endpoint is one thing."""
    given = [name for name in ("ip", "fqdn", "unix") if getattr(one, name) is not None]
    if not given:
        return (Violation((), "Required", "exactly one of ip, fqdn and unix"),)
    return tuple(Violation((name,), "Forbidden", f"together with {given[0]}") for name in given[1:])


@BOOK.on(
    IPEndpoint,
    "address",
    cel="isIP(self.address)",
    message="address must be an IPv4 or IPv6 address",
)
def check_address(one: IPEndpoint) -> Iterable[Violation]:
    """Addresses are addresses; a name belongs to fqdn."""
    if read_address(one.address) is None:
        return (
            Violation(
                ("address",), "Invalid", f'"{one.address}" (expected an IPv4 or IPv6 address)'
            ),
        )
    return ()


@BOOK.on(
    FQDNEndpoint,
    "hostname",
    cel="!isIP(self.hostname)",
    message="hostname must be a DNS name; an address belongs to ip",
)
def check_fqdn(one: FQDNEndpoint) -> Iterable[Violation]:
    """Names are names; an address belongs to ip."""
    message = check_hostname(one.hostname)
    return (
        (Violation(("hostname",), "Invalid", message, "use ip for addresses"),) if message else ()
    )


@BOOK.on(
    BackendTLS,
    "hostname",
    cel="!has(self.hostname) || !isIP(self.hostname)",
    message="hostname must be a DNS name, not an address",
)
def check_server_name(one: BackendTLS) -> Iterable[Violation]:
    """SNI carries names only (RFC 6066 section 3)."""
    message = check_hostname(one.hostname or "")
    return (Violation(("hostname",), "Invalid", message),) if message else ()


@BOOK.on(
    BackendSpec,
    "endpoints",
    "tls",
    cel="!has(self.tls) || has(self.tls.hostname) || self.endpoints.all(one, has(one.fqdn) && "
    "has(self.endpoints[0].fqdn) && one.fqdn.hostname == self.endpoints[0].fqdn.hostname)",
    message="tls.hostname must be set unless all endpoints have one fqdn",
)
def check_tls_hostname(one: BackendSpec) -> Iterable[Violation]:
    """A certificate is checked against one name, and an address is none."""
    if one.tls is None or one.tls.hostname is not None:
        return ()
    names = {endpoint.fqdn.hostname if endpoint.fqdn else "" for endpoint in one.endpoints}
    if len(names) == 1 and "" not in names:
        return ()
    message = "with endpoints other than one fqdn: it is the name that certificates must contain"
    return (Violation(("tls", "hostname"), "Required", message),)


@BOOK.on(
    BackendSpec,
    "protocol",
    "tls",
    cel="!has(self.protocol) || !has(self.tls)",
    message="protocol H2C is HTTP/2 without TLS; with tls, endpoints select HTTP/2 by ALPN",
)
def check_backend_protocol(one: BackendSpec) -> Iterable[Violation]:
    """With TLS, ALPN selects the protocol."""
    if one.protocol is None or one.tls is None:
        return ()
    message = "with tls: endpoints select HTTP/2 by ALPN; remove protocol or tls"
    return (Violation(("protocol",), "Forbidden", message),)


@BOOK.on(
    RateLimitFilterSpec,
    "type",
    "global_",
    "local",
    cel="self.type == 'Global' ? has(self.global) && !has(self.local) : has(self.local) && !has(self.global)",
    message="exactly the one of global and local that matches type must be set",
)
def check_global(one: RateLimitFilterSpec) -> Iterable[Violation]:
    """Limits are listed under the field of their type."""
    for name, limits, kind in (("global", one.global_, "Global"), ("local", one.local, "Local")):
        if one.type == kind and limits is None:
            yield Violation((name,), "Required", f"with type {kind}")
        if one.type != kind and limits is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type}")


@BOOK.on(
    LocalRateLimitRule,
    "limit",
    "max_parallel_requests",
    "burst",
    cel="has(self.limit) != has(self.maxParallelRequests) && (!has(self.burst) || has(self.limit))",
    message="exactly one of limit and maxParallelRequests must be set, and burst only with limit",
)
def check_local_rule(one: LocalRateLimitRule) -> Iterable[Violation]:
    """A rule limits a rate or the requests in progress."""
    if (one.limit is None) == (one.max_parallel_requests is None):
        return (Violation((), "Invalid", "exactly one of limit and maxParallelRequests"),)
    if one.burst is not None and one.limit is None:
        return (Violation(("burst",), "Forbidden", "without limit"),)
    return ()


@BOOK.on(
    RateLimitSourceCIDR,
    "type",
    "value",
    cel="has(self.value) || self.type == 'Distinct'",
    message="value must be set unless type is Distinct",
)
def check_source_value(one: RateLimitSourceCIDR) -> Iterable[Violation]:
    """Distinct without a range is of all addresses."""
    if one.value is None and one.type != "Distinct":
        return (Violation(("value",), "Required", f"with type {one.type}"),)
    return ()


@BOOK.on(
    RateLimitHeaderMatch,
    "type",
    "value",
    cel="self.type == 'Distinct' ? !has(self.value) : has(self.value)",
    message="value must be set unless type is Distinct",
)
def check_header(one: RateLimitHeaderMatch) -> Iterable[Violation]:
    """Distinct takes every value, the others compare with one."""
    if one.type == "Distinct" and one.value is not None:
        return (Violation(("value",), "Forbidden", "with type Distinct"),)
    if one.type != "Distinct" and one.value is None:
        return (Violation(("value",), "Required", f"with type {one.type}"),)
    return ()


@BOOK.on(
    RateLimitHeaderMatch,
    "type",
    "value",
    # `in`, because `||` would swallow the error of a pattern that does not compile.
    cel="self.type != 'RegularExpression' || !has(self.value) || "
    "''.matches(self.value) in [true, false]",
    message="value must be an RE2 expression",
)
def check_header_regex(one: RateLimitHeaderMatch) -> Iterable[Violation]:
    """Expressions are RE2, as the proxy compiles them."""
    if one.type != "RegularExpression" or one.value is None:
        return ()
    message = explain_regex(one.value, one.name)
    return (Violation(("value",), "Invalid", message),) if message else ()


@BOOK.on(
    RateLimitSelector,
    "headers",
    # Lowered once outside of the inner loop: an API server bounds the estimated cost of a rule.
    cel="!has(self.headers) || self.headers.map(one, one.name.lowerAscii()).all(name, "
    "self.headers.exists_one(other, other.name.lowerAscii() == name))",
    message="headers must have different names, whatever their case",
)
def check_header_names(one: RateLimitSelector) -> Iterable[Violation]:
    """Header names have no case, so two that differ in it alone are one."""
    seen: set[str] = set()
    for index, header in enumerate(one.headers):
        name = header.name.lower()
        if name in seen:
            yield Violation(("headers", index, "name"), "Duplicate", f'"{header.name}"')
        seen.add(name)


@BOOK.on(
    RateLimitSelector,
    "headers",
    "source_cidr",
    cel="has(self.sourceCIDR) || (has(self.headers) && size(self.headers) > 0)",
    message="a selector must have headers or sourceCIDR",
)
def check_selector(one: RateLimitSelector) -> Iterable[Violation]:
    """A selector that selects nothing in particular is a mistake."""
    if not one.headers and one.source_cidr is None:
        return (Violation((), "Required", "headers or sourceCIDR"),)
    return ()


@BOOK.on(
    RateLimitSourceCIDR,
    "value",
    "except_",
    cel="(!has(self.value) || isCIDR(self.value)) && (!has(self.except) || self.except.all(one, isCIDR(one)))",
    message="value and except must be ranges of addresses",
)
def check_source_cidr(one: RateLimitSourceCIDR) -> Iterable[Violation]:
    """Check that every entry is a range of addresses."""
    if one.value is not None and not is_cidr(one.value):
        yield bad_cidr(("value",), one.value)
    for at, text in enumerate(one.except_):
        if not is_cidr(text):
            yield bad_cidr(("except", at), text)
