"""Limit store: rateLimit of the configuration -> ir.RateLimitStore, the store of rate-limit counters.

In: the configuration, and the Secrets it names. Out: a `LimitStore`. Standalone without a backend
counts in shared memory. A cluster without a backend, and a backend with missing or invalid Secrets,
have no store. Rules with limits then answer 500: no configuration means "do not limit".
Source: spec sections 2 (rateLimit.backend) and 8.6.
Must never: show the content of a Secret, or tell routes which Secrets exist.
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from edgefast import ir
from edgefast.api.config.edgegateway_rate_limit import (
    GatewayRateLimit,
    RedisBackend,
    SecretKeyReference,
    SecretReference,
)
from edgefast.api.config.store_url import StoreURL, check_address, parse_store_url
from edgefast.api.model.units import parse_duration
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.deps.dependency_facts import Fact, Reader, World
from edgefast.translate.report.report import Report
from edgefast.translate.tls.keyring import Keyring

_PATH = "rateLimit.backend.redis"
_MAX_BUNDLE = 512 * 1024  # bytes; the store and its keys travel as one resource of at most 1 MiB
_DEFAULT_NAMESPACE = "default"  # of Secrets in standalone, where no controller has a namespace
_NOT_CONFIGURED = (
    "no store for rate-limit counters is configured; set rateLimit.backend in the configuration"
)
_NOT_VALID = "no store for rate-limit counters: rateLimit.backend in the configuration is not valid"


class LimitStore(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Where counters are; `refused` says why there is no store, for statuses of routes."""

    store: ir.RateLimitStore | None = None
    refused: str = ""
    problems: tuple[Problem, ...] = ()
    reads: frozenset[Fact] = frozenset()


def translate_limit_store(
    world: World, keyring: Keyring, previous: LimitStore | None, changed: Set[Fact]
) -> LimitStore:
    """Return the store; that of before when nothing it read has changed (and no setting)."""
    if previous is not None and changed.isdisjoint(previous.reads):
        return previous
    settings = world.settings
    config = settings.rate_limit
    if config.backend is None:
        if not settings.standalone:
            return LimitStore(refused=_NOT_CONFIGURED)
        return LimitStore(store=_finish(ir.RateLimitStore(kind="memory"), config))
    namespace = _DEFAULT_NAMESPACE if settings.standalone else settings.namespace
    secrets = _Secrets(Reader(world), keyring, Report(ObjectRef("EdgeGateway", "", "")), namespace)
    store = _translate_redis(config.backend.redis or RedisBackend(), secrets)
    problems = secrets.report.problems
    return LimitStore(
        store=None if problems else _finish(store, config),
        refused=_NOT_VALID if problems else "",
        problems=problems,
        reads=frozenset(secrets.reader.reads),
    )


def _finish(store: ir.RateLimitStore, config: GatewayRateLimit) -> ir.RateLimitStore:
    return msgspec.structs.replace(
        store, timeout=parse_duration(config.timeout), fail_closed=config.fail_closed
    )


class _Secrets:
    """Reads what references of the configuration name; each thing missing is a problem."""

    def __init__(self, reader: Reader, keyring: Keyring, report: Report, namespace: str) -> None:
        self.reader = reader
        self.report = report
        self._keyring = keyring
        self._namespace = namespace

    def value(self, ref: SecretKeyReference, key: str, path: str) -> bytes:
        """Return one value, b"" when it is not there; `key` is the usual name for it."""
        namespace, key = ref.namespace or self._namespace, ref.key or key
        secret = self.reader.secret(namespace, ref.name)
        if secret is None:
            self.report.refuse(path, "NotFound", f"Secret {namespace}/{ref.name} not found")
            return b""
        value = secret.value(key)
        if not value:
            self.report.refuse(path, "Invalid", f"Secret {namespace}/{ref.name} lacks {key}")
            return b""
        return value

    def text(self, ref: SecretKeyReference, key: str, path: str) -> str:
        """Return one value as text; line ends after it, as editors and `echo` leave, are none of it."""
        try:
            return self.value(ref, key, path).decode().rstrip("\r\n")
        except UnicodeDecodeError:
            message = f"{ref.key or key} of Secret {ref.name} is not UTF-8 text"
            self.report.refuse(path, "Invalid", message)
            return ""

    def user(self, ref: SecretKeyReference) -> str:
        """Return the user that stands beside a password, "" for none."""
        secret = self.reader.secret(ref.namespace or self._namespace, ref.name)
        if secret is None or not secret.value("username"):
            return ""
        one = SecretKeyReference(name=ref.name, namespace=ref.namespace, key="username")
        return self.text(one, "username", f"{_PATH}.passwordRef")

    def bundle(self, ref: SecretKeyReference, path: str) -> bytes:
        """Return a CA bundle that loads."""
        from edgefast.translate.tls.certificate import check_bundle

        bundle = self.value(ref, "ca.crt", path)
        wrong = check_bundle(bundle) if bundle else ""
        if len(bundle) > _MAX_BUNDLE:
            wrong = f"ca.crt has {len(bundle)} bytes, at most {_MAX_BUNDLE}"
        if wrong:
            message = wrong.replace("ca.crt", ref.key or "ca.crt", 1)
            self.report.refuse(path, "Invalid", f"Secret {ref.name}: {message}")
        return bundle

    def certificate(self, ref: SecretReference, path: str) -> ir.Secret:
        """Return a client certificate that fits its key."""
        namespace = ref.namespace or self._namespace
        self.reader.secret(namespace, ref.name)  # noted as read; the keyring keeps no record
        found = self._keyring.certificate(namespace, ref.name)
        if isinstance(found, str):
            self.report.refuse(path, "Invalid", found)
            return ir.Secret(name="")
        return found.secret


def _translate_redis(redis: RedisBackend, secrets: _Secrets) -> ir.RateLimitStore:
    """Translate all of it, even after a mistake, so that every mistake is found."""
    url = StoreURL(address="")
    addresses: tuple[str, ...] = ()
    if redis.sentinel is not None:
        addresses = redis.sentinel.addresses
        for at, address in enumerate(addresses):
            if wrong := check_address(address):
                where = f"{_PATH}.sentinel.addresses[{at}]"
                secrets.report.refuse(where, "Invalid", wrong)
    else:
        url = _translate_url(redis, secrets)
        addresses = (url.address,)
    store = ir.RateLimitStore(
        kind="redis",
        mode="sentinel" if redis.sentinel else "cluster" if redis.cluster else "single",
        addresses=addresses,
        master=redis.sentinel.master if redis.sentinel else "",
        database=url.database,
        tls=url.tls or redis.tls is not None,
    )
    if redis.password_ref is not None:
        store = msgspec.structs.replace(
            store,
            user=secrets.user(redis.password_ref),
            password=secrets.text(redis.password_ref, "password", f"{_PATH}.passwordRef"),
        )
    if redis.tls is None:
        return store
    bundle, shown = b"", ir.Secret(name="")
    if redis.tls.ca_certificate_ref is not None:
        where = f"{_PATH}.tls.caCertificateRef"
        bundle = secrets.bundle(redis.tls.ca_certificate_ref, where)
    if redis.tls.client_certificate_ref is not None:
        where = f"{_PATH}.tls.clientCertificateRef"
        shown = secrets.certificate(redis.tls.client_certificate_ref, where)
    return msgspec.structs.replace(
        store, ca=bundle, certificate=shown.certificate, private_key=shown.private_key
    )


def _translate_url(redis: RedisBackend, secrets: _Secrets) -> StoreURL:
    """Read the address from where it is; what is in a Secret is never shown."""
    path, problems = f"{_PATH}.url", len(secrets.report.refused)
    text = redis.url or ""
    if redis.url_ref is not None:
        path = f"{_PATH}.urlRef"
        text = secrets.text(redis.url_ref, "url", path)
    if len(secrets.report.refused) > problems:
        return StoreURL(address="")
    try:
        url = parse_store_url(text)
    except ValueError as error:
        secrets.report.refuse(path, "Invalid", str(error))
        return StoreURL(address="")
    if redis.cluster and url.database:
        secrets.report.refuse(path, "Invalid", "a Redis Cluster has only database 0")
    return url
