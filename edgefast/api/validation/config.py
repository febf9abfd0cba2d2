"""Config: rules about the EdgeGateway configuration.

In: parts of the configuration file. Out: violations.
Must never: connect to an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.config.edgegateway import (
    BackendAddresses,
    FleetCertificates,
    FleetRevocation,
    GatewayIngress,
    GatewayProvider,
    IngressPorts,
    LeaderElection,
    ProviderWatch,
)
from edgefast.api.config.edgegateway_rate_limit import (
    GatewayRateLimit,
    RateLimitBackend,
    RedisBackend,
    RedisSentinel,
)
from edgefast.api.config.store_url import (
    ADDRESS_PATTERN,
    URL_PATTERN,
    check_address,
    check_store_url,
    parse_store_url,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.edge import bad_cidr, is_cidr
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

_DNS_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
#: An entry of `ingress.adoptClasses`.
CLASS_PATTERN = rf"^{_DNS_NAME}(/[-A-Za-z0-9/._~]+)?$"

MIN_STORE_TIMEOUT = 1  # milliseconds
MAX_STORE_TIMEOUT = 10_000
MIN_LIFETIME = 3_600_000
MAX_LIFETIME = 90 * 24 * MIN_LIFETIME


@BOOK.on(
    GatewayProvider,
    "kubernetes",
    "orchestrator",
    cel="!(has(self.kubernetes) && has(self.orchestrator))",
    message="kubernetes and orchestrator are two names of the same settings",
)
def check_provider(one: GatewayProvider) -> Iterable[Violation]:
    """The settings have two names and are given once."""
    if one.kubernetes is not None and one.orchestrator is not None:
        return (
            Violation(
                ("orchestrator",), "Forbidden", "together with kubernetes (the same settings)"
            ),
        )
    return ()


@BOOK.on(
    ProviderWatch,
    "type",
    "namespaces",
    "namespace_selector",
    cel="self.type == 'Namespaces' ? (has(self.namespaces) && size(self.namespaces) > 0 && "
    "!has(self.namespaceSelector)) : (has(self.namespaceSelector) && !has(self.namespaces))",
    message="namespaces belongs to type Namespaces, namespaceSelector to NamespaceSelector",
)
def check_watch(one: ProviderWatch) -> Iterable[Violation]:
    """Namespaces are given by name or by label, as `type` says."""
    by_name = one.type == "Namespaces"
    if by_name and not one.namespaces:
        yield Violation(("namespaces",), "Required", f"with type {one.type}")
    if not by_name and one.namespaces:
        yield Violation(("namespaces",), "Forbidden", f"with type {one.type}")
    if not by_name and one.namespace_selector is None:
        yield Violation(("namespaceSelector",), "Required", f"with type {one.type}")
    if by_name and one.namespace_selector is not None:
        yield Violation(("namespaceSelector",), "Forbidden", f"with type {one.type}")


@BOOK.on(
    FleetCertificates,
    "lifetime",
    cel="duration(self.lifetime) >= duration('1h') && duration(self.lifetime) <= duration('2160h')",
    message="lifetime must be 1h to 2160h",
)
def check_lifetime(one: FleetCertificates) -> Iterable[Violation]:
    """A short lifetime causes constant renewals; a long one keeps a stolen certificate valid."""
    if not MIN_LIFETIME <= parse_duration(one.lifetime) <= MAX_LIFETIME:
        return (Violation(("lifetime",), "Invalid", f'"{one.lifetime}" (1h to 2160h)'),)
    return ()


@BOOK.on(
    FleetRevocation,
    "issued_before",
    cel="timestamp(self.issuedBefore) > timestamp('0001-01-01T00:00:00Z')",
    message="issuedBefore must be an existing date and time",
)
def check_revocation(one: FleetRevocation) -> Iterable[Violation]:
    """The pattern accepts February 30."""
    if not _is_time(one.issued_before):
        message = f'"{one.issued_before}" is not a time (such as 2026-11-29T12:00:00Z)'
        return (Violation(("issuedBefore",), "Invalid", message),)
    return ()


def _is_time(text: str) -> bool:
    """Tell whether RFC 3339 text in UTC, with the digits in their places, is an existing date and time."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    there = year > 0 and 1 <= month <= 12 and 1 <= day <= days[month - 1]
    return there and hour < 24 and minute < 60 and second < 60


@BOOK.on(
    BackendAddresses,
    "allowed_cidrs",
    cel="!has(self.allowedCIDRs) || self.allowedCIDRs.all(range, isCIDR(range))",
    message="allowedCIDRs must be ranges of addresses",
)
def check_allowed_cidrs(one: BackendAddresses) -> Iterable[Violation]:
    """Ranges are written as addresses with a prefix length."""
    for index, value in enumerate(one.allowed_cidrs):
        if not is_cidr(value):
            yield bad_cidr(("allowedCIDRs", index), value)


@BOOK.on(
    IngressPorts,
    "http",
    "https",
    cel="self.http != self.https",
    message="http and https must differ",
)
def check_ingress_ports(one: IngressPorts) -> Iterable[Violation]:
    """One port has one protocol."""
    if one.http == one.https:
        return (Violation(("https",), "Invalid", f"{one.https} (must differ from http)"),)
    return ()


@BOOK.on(
    GatewayIngress,
    "adopt_classes",
    cel=f"!has(self.adoptClasses) || self.adoptClasses.all(one, one.matches(r'{CLASS_PATTERN}'))",
    message="adoptClasses must be names of classes or values of spec.controller",
)
def check_adopted_classes(one: GatewayIngress) -> Iterable[Violation]:
    """A class has a DNS name; a controller has a domain, a slash and a path."""
    for index, name in enumerate(one.adopt_classes):
        if not re.fullmatch(CLASS_PATTERN, name):
            message = (
                f'"{name}" (a class such as nginx, or a controller such as k8s.io/ingress-nginx)'
            )
            yield Violation(("adoptClasses", index), "Invalid", message)


@BOOK.on(
    RateLimitBackend,
    "type",
    "redis",
    cel="has(self.redis)",
    message="redis must be set with type Redis",
)
def check_store(one: RateLimitBackend) -> Iterable[Violation]:
    """A store has an address."""
    if one.redis is None:
        return (Violation(("redis",), "Required", "with type Redis"),)
    return ()


@BOOK.on(
    RedisBackend,
    "url",
    "url_ref",
    "sentinel",
    cel="[has(self.url), has(self.urlRef), has(self.sentinel)].exists_one(given, given)",
    message="exactly one of url, urlRef and sentinel must be set",
)
def check_redis(one: RedisBackend) -> Iterable[Violation]:
    """The store is found in one way."""
    ways = (("url", one.url), ("urlRef", one.url_ref), ("sentinel", one.sentinel))
    given = [name for name, value in ways if value is not None]
    if not given:
        return (Violation(("url",), "Required", "this, urlRef or sentinel"),)
    return tuple(Violation((name,), "Forbidden", f"together with {given[0]}") for name in given[1:])


@BOOK.on(
    RedisBackend,
    "cluster",
    "sentinel",
    cel="!(has(self.cluster) && self.cluster && has(self.sentinel))",
    message="cluster and sentinel exclude each other",
)
def check_redis_mode(one: RedisBackend) -> Iterable[Violation]:
    """A Redis Cluster has no sentinels."""
    if one.cluster and one.sentinel is not None:
        return (Violation(("cluster",), "Forbidden", "together with sentinel"),)
    return ()


@BOOK.on(
    RedisBackend,
    "url",
    cel=f"!has(self.url) || self.url.matches(r'^{URL_PATTERN}$')",
    message="url must be host:port, redis://host:port/database or rediss://host:port",
)
def check_redis_url(one: RedisBackend) -> Iterable[Violation]:
    """An address is one, and holds no password: it would be printed with the configuration."""
    wrong = check_store_url(one.url) if one.url is not None else ""
    return (Violation(("url",), "Invalid", wrong),) if wrong else ()


@BOOK.on(
    RedisBackend,
    "url",
    "cluster",
    cel="!has(self.cluster) || !self.cluster || !has(self.url) || "
    "!self.url.matches('/0*[1-9][0-9]*$')",
    message="a Redis Cluster has only database 0",
)
def check_redis_database(one: RedisBackend) -> Iterable[Violation]:
    """A Redis Cluster has database 0 alone."""
    if one.cluster and one.url is not None and not check_store_url(one.url):
        if parse_store_url(one.url).database:
            return (Violation(("url",), "Invalid", "a Redis Cluster has only database 0"),)
    return ()


@BOOK.on(
    RedisSentinel,
    "addresses",
    cel=f"self.addresses.all(one, one.matches(r'^{ADDRESS_PATTERN}$'))",
    message="addresses must be host:port",
)
def check_sentinels(one: RedisSentinel) -> Iterable[Violation]:
    """Sentinels are found by plain addresses."""
    for index, address in enumerate(one.addresses):
        wrong = check_address(address)
        if wrong:
            yield Violation(("addresses", index), "Invalid", wrong)


@BOOK.on(
    GatewayRateLimit,
    "timeout",
    cel="duration(self.timeout) >= duration('1ms') && duration(self.timeout) <= duration('10s')",
    message="timeout must be 1ms to 10s",
)
def check_store_timeout(one: GatewayRateLimit) -> Iterable[Violation]:
    """A store that may take no time has none; one that may take long holds requests up."""
    if not MIN_STORE_TIMEOUT <= parse_duration(one.timeout) <= MAX_STORE_TIMEOUT:
        return (Violation(("timeout",), "Invalid", f'"{one.timeout}" (1ms to 10s)'),)
    return ()


@BOOK.on(
    LeaderElection,
    "lease_duration",
    "renew_deadline",
    "retry_period",
    cel="duration(self.leaseDuration) > duration(self.renewDeadline) && "
    "duration(self.renewDeadline) > duration(self.retryPeriod)",
    message="leaseDuration must be more than renewDeadline, and that more than retryPeriod",
)
def check_election(one: LeaderElection) -> Iterable[Violation]:
    """A leader gives up before another one takes over."""
    lease, renew, retry = map(
        parse_duration, (one.lease_duration, one.renew_deadline, one.retry_period)
    )
    if lease <= renew:
        yield Violation(
            ("leaseDuration",),
            "Invalid",
            f'"{one.lease_duration}" (more than renewDeadline, {one.renew_deadline})',
        )
    if renew <= retry:
        yield Violation(
            ("renewDeadline",),
            "Invalid",
            f'"{one.renew_deadline}" (more than retryPeriod, {one.retry_period})',
        )
