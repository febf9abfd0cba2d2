"""Backend TLS: certificates for backends (proxy-ssl-*), as a BackendTLSPolicy of the Service.

In: annotations of one Ingress; its Secret. Out: `BackendTls`; why a Secret cannot be used; the BackendTLSPolicy of a port of a Service.
Without proxy-ssl-secret ingress-nginx reads none of the other annotations.
Source: ingress-nginx annotations/proxyssl, proxy_ssl_* of nginx.
Must never: leave a certificate unverified where an Ingress asks for verification.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from edgefast.api.core.secret import Secret
from edgefast.api.gateway.backendtlspolicy import (
    BackendTLSPolicy,
    BackendTLSPolicySpec,
    BackendTLSPolicyValidation,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK
from edgefast.api.model.reference import (
    LocalObjectReference,
    LocalPolicyTargetReferenceWithSectionName,
)
from edgefast.api.snapshot import Key
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.values import Check, NoValue, Values, one_of, pattern
from edgefast.translate.policy.backendtlspolicy import (
    CLIENT_CERTIFICATE,
    DEPTH,
    INSECURE,
    MAX_DEPTH,
)

__all__ = ["BackendTls", "check_backend_secret", "make_tls_policy", "read_backend_tls"]

#: Annotations that mean nothing without proxy-ssl-secret.
_PARTS = (
    "proxy-ssl-ciphers",
    "proxy-ssl-name",
    "proxy-ssl-protocols",
    "proxy-ssl-server-name",
    "proxy-ssl-verify-depth",
)
_NAME = pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")
_HOST = pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_PROTOCOLS = pattern(r"^((SSLv2|SSLv3|TLSv1|TLSv1\.1|TLSv1\.2|TLSv1\.3)( |$))+$")
_SWITCH = one_of("on", "off")


class BackendTls(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy-ssl-* annotations of an Ingress with proxy-ssl-secret."""

    secret: Key
    shows: bool = True  # the Secret has a certificate for edgefast
    verifies: bool = False
    name: str = ""  # in the certificate of the backend, and SNI
    depth: int = 1


def read_backend_tls(reader: AnnotationReader) -> BackendTls | None:
    """Return the annotations; None without proxy-ssl-secret, or where the locations are closed."""
    values, namespace, warn = reader.values, reader.namespace, reader.warn
    verifies = _read(values, "proxy-ssl-verify", _SWITCH) == "on"
    values.seen.update(("proxy-ssl-secret", *_PARTS))
    try:
        text = values.text("proxy-ssl-secret", lambda one: True)
    except NoValue:
        for part in _PARTS:
            if values.has(part):
                warn(part, "no effect without proxy-ssl-secret, as in ingress-nginx")
        return None
    closed: list[str] = []

    def refuse(name: str, message: str) -> None:
        closed.append(name)
        reader.close(name, message)

    if not _NAME(text):
        refuse("proxy-ssl-secret", 'it must be "namespace/name" of a Secret')
        return None
    space, _, secret = text.partition("/")
    if namespace and space != namespace:
        refuse("proxy-ssl-secret", "a Secret of another namespace is not served")
    name = _read(values, "proxy-ssl-name").strip().lower()
    if name and not _HOST(name):
        refuse("proxy-ssl-name", "not a host name")
    if verifies and not name:
        refuse("proxy-ssl-name", "proxy-ssl-verify is not served without it")
    _check_protocols(_read(values, "proxy-ssl-protocols"), refuse, warn)
    if _read(values, "proxy-ssl-ciphers") not in ("", "DEFAULT"):
        refuse("proxy-ssl-ciphers", "cipher suites are fixed, and others are not served")
    if name and _read(values, "proxy-ssl-server-name") != "on":
        warn("proxy-ssl-name", "edgefast sends it as SNI, also without proxy-ssl-server-name: on")
    try:
        depth = values.number("proxy-ssl-verify-depth") or 1
    except NoValue:
        depth = 1
    if not 0 < depth <= MAX_DEPTH:
        refuse("proxy-ssl-verify-depth", f"{depth} is not served (allowed: 1 to {MAX_DEPTH})")
    if closed:
        return None
    return BackendTls(secret=(space, secret), verifies=verifies, name=name, depth=depth)


def _read(values: Values, name: str, check: Check = lambda one: True) -> str:
    try:
        return values.text(name, check)
    except NoValue:
        return ""


def _check_protocols(
    text: str, refuse: Callable[[str, str], None], warn: Callable[[str, str], None]
) -> None:
    name = "proxy-ssl-protocols"
    if not text or not _PROTOCOLS(text):
        return
    versions = set(text.split())
    if not versions & {"TLSv1.2", "TLSv1.3"}:
        refuse(name, "edgefast uses TLS 1.2 and 1.3; older versions are not served")
    elif "TLSv1.2" not in versions:
        refuse(name, "TLS 1.3 alone is not served; edgefast uses TLS 1.2 and 1.3")
    elif "TLSv1.3" not in versions:
        warn(name, "edgefast uses TLS 1.2 and 1.3")


def check_backend_secret(secret: Secret | None, tls: BackendTls) -> str | BackendTls:
    """Return the settings with what the Secret has, or why it cannot be used."""
    from edgefast.translate.tls.certificate import (  # 25 ms, only with certificates
        parse_bundle,
        parse_pair,
    )

    named = f"Secret {'/'.join(tls.secret)}"
    if secret is None:
        return f"{named} not found"
    chain, key, bundle = (secret.value(one) for one in ("tls.crt", "tls.key", "ca.crt"))
    if chain and key:
        pair = parse_pair(chain, key)
        if isinstance(pair, str):
            return f"{named}: {pair}"
    elif not bundle:
        return f"{named} has neither tls.crt and tls.key nor ca.crt"
    if bundle:
        found = parse_bundle(bundle)
        if isinstance(found, str):
            return f"{named}: {found}"
    elif tls.verifies:
        return f"{named} lacks ca.crt, which proxy-ssl-verify needs"
    return msgspec.structs.replace(tls, shows=bool(chain and key))


def make_tls_policy(
    service: Key, number: int, port: str, tls: BackendTls | None
) -> BackendTLSPolicy:
    """Return the BackendTLSPolicy of a port; `port`: its name, `tls` None: without settings of an Ingress."""
    namespace, name = service
    target = LocalPolicyTargetReferenceWithSectionName(
        group="", kind="Service", name=name, section_name=port or None
    )
    options = {INSECURE: "true"}
    validation = BackendTLSPolicyValidation(
        well_known_ca_certificates="System",
        hostname=(tls.name if tls else "") or f"{name}.{namespace}.svc",
    )
    if tls is not None and tls.verifies:
        ref = LocalObjectReference(group="", kind="Secret", name=tls.secret[1])
        validation = BackendTLSPolicyValidation(ca_certificate_refs=(ref,), hostname=tls.name)
        options = {DEPTH: str(tls.depth)}
    if tls is not None and tls.shows:
        options = {**options, CLIENT_CERTIFICATE: tls.secret[1]}
    return BackendTLSPolicy(
        metadata=ObjectMeta(name=f"{name}{MARK}-{number}", namespace=namespace),
        spec=BackendTLSPolicySpec(target_refs=(target,), validation=validation, options=options),
    )
