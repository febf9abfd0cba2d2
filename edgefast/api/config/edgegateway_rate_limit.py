"""EdgeGateway rateLimit: the store of global counters.

In: `rateLimit` of the configuration. Out: `GatewayRateLimit`.
Source: spec sections 2 (rateLimit.backend) and 8.6.
Must never: hold a password in clear; references only.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fields import AS_SET, DNSSubdomain, Duration, Element, Namespace

_Address = Annotated[str, Meta(min_length=1, max_length=300)]


class SecretReference(Element, frozen=True, kw_only=True):
    """A Secret."""

    name: Annotated[DNSSubdomain, Meta(description="Name of the Secret.")]
    namespace: Annotated[
        Namespace | None,
        Meta(description="Its namespace. Absent: the controller's; in standalone: default."),
    ] = None


class SecretKeyReference(Element, frozen=True, kw_only=True):
    """One key of a Secret."""

    name: Annotated[DNSSubdomain, Meta(description="Name of the Secret.")]
    namespace: Annotated[
        Namespace | None,
        Meta(description="Its namespace. Absent: the controller's; in standalone: default."),
    ] = None
    key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)] | None,
        Meta(description="Key in the Secret. Absent: the default key that the field names."),
    ] = None


class RedisTLS(Element, frozen=True, kw_only=True):
    """TLS towards the store."""

    ca_certificate_ref: Annotated[
        SecretKeyReference | None,
        Meta(
            description="Secret with the CA certificates to trust, key ca.crt. Absent: the system's CA "
            "certificates."
        ),
    ] = None
    client_certificate_ref: Annotated[
        SecretReference | None,
        Meta(description="Secret with the client certificate, keys tls.crt and tls.key."),
    ] = None


class RedisSentinel(Element, frozen=True, kw_only=True):
    """A primary that sentinels know."""

    master: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)],
        Meta(description="Its name."),
    ]
    addresses: Annotated[
        tuple[_Address, ...],
        Meta(
            min_length=1,
            max_length=16,
            extra=AS_SET,
            description="Sentinels, host:port.",
        ),
    ]


class RedisBackend(Element, frozen=True, kw_only=True):
    """A Redis server, a Redis Cluster or a primary behind sentinels."""

    url: Annotated[
        _Address | None,
        Meta(
            description="Address: host:port, redis://host:port/database, or rediss://host:port "
            "with TLS. It must not contain a user or password."
        ),
    ] = None
    url_ref: Annotated[
        SecretKeyReference | None,
        Meta(description="Secret with the address (key url), instead of `url`."),
    ] = None
    password_ref: Annotated[
        SecretKeyReference | None,
        Meta(
            description="Secret with the password (key password) and an optional user (key username)."
        ),
    ] = None
    tls: Annotated[
        RedisTLS | None,
        Meta(description="TLS settings. Absent: no TLS, unless the address is rediss://."),
    ] = None
    sentinel: Annotated[
        RedisSentinel | None,
        Meta(description="Redis Sentinel, which finds the primary. Instead of `url`."),
    ] = None
    cluster: Annotated[bool, Meta(description="`url` is a node of a Redis Cluster.")] = False


class RateLimitBackend(Element, frozen=True, kw_only=True):
    """The counter store."""

    type: Annotated[Literal["Redis"], Meta(description="Type of the store.")]
    redis: Annotated[
        RedisBackend | None, Meta(description="Settings of Redis. Required with type Redis.")
    ] = None


class GatewayRateLimit(Element, frozen=True, kw_only=True):
    """Global rate limiting."""

    backend: Annotated[
        RateLimitBackend | None,
        Meta(
            description="The counter store. Absent in a cluster: RateLimitFilters are refused; in "
            "standalone: counters in shared memory."
        ),
    ] = None
    timeout: Annotated[
        Duration,
        Meta(
            description="Time limit for an answer of the store, 1ms to 10s. After it `failClosed` "
            "decides."
        ),
    ] = "20ms"
    fail_closed: Annotated[
        bool,
        Meta(description="true: requests get 500 when the store fails. false: they pass."),
    ] = False
