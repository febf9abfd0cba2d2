"""TLS: certificates, versions and client verification of HTTPS listeners.

In: a listener's `tls` and its Gateway's `tls.frontend` and `tls.backend`, with the keyring. The
references of a listener are its owner's, a Gateway or a ListenerSet: grants for one are not grants
for the other.
Out: ir.ListenerTls with the secrets it names; problems go to the listener's report.
Source: Gateway API ListenerTLSConfig, FrontendTLSValidation, GatewayBackendTLS.
Must never: serve a listener without a certificate, or without the client verification that it
requires.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgefast import ir
from edgefast.api.gateway.gateway import FrontendTLSValidation, Gateway
from edgefast.api.gateway.listener import Listener, ListenerTLSConfig
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import ref_of
from edgefast.api.model.reference import SecretObjectReference
from edgefast.diagnostics.problem import Problem, did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.deps.authority import CLUSTER_KIND, authority_of, wrong_authority
from edgefast.translate.deps.dependency_facts import World
from edgefast.translate.deps.referencegrant import (
    is_granted,
    refusal_text,
    wrong_kind_text,
)
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import is_foreign_option
from edgefast.translate.tls.client_rule import CLIENT_OPTIONS, translate_client_rule
from edgefast.translate.tls.keyring import STAPLE_KEY, Certified, Keyring, join_bundles

#: Key of `tls.options` for the lowest TLS version that clients may speak.
MIN_VERSION = "gateway.edge.io/tls-min-version"
TlsVersion = Literal["1.2", "1.3"]
_VERSIONS: dict[str, TlsVersion] = {"1.2": "1.2", "1.3": "1.3"}


class TlsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of one listener."""

    tls: ir.ListenerTls
    secrets: tuple[ir.Secret, ...]
    doubtful: tuple[Problem, ...] = ()  # certificates that clients refuse, or will soon
    hidden: tuple[Problem, ...] = ()  # of the Gateway, which the ListenerSet is not told

    @property
    def usable(self) -> bool:
        """Tell whether there is a certificate to show."""
        return bool(self.tls.certificates)


def translate_tls(
    gateway: Gateway,
    owner: Gateway | ListenerSet,
    listener: Listener,
    path: str,
    world: World,
    keyring: Keyring,
    report: Report,
) -> TlsOutcome:
    """Translate the TLS settings of one HTTPS listener; `path` is the listener's."""
    tls = listener.tls or ListenerTLSConfig()
    if tls.mode != "Terminate":
        message = f'"{tls.mode}" (supported: Terminate)'
        report.refuse(f"{path}.tls.mode", "UnsupportedValue", message)
    certificates, doubtful = _translate_certificates(
        owner, tls, (listener.hostname or "").lower(), path, world, keyring, report
    )
    validation, where = _validation_of(gateway, listener.port)
    authority, mine = None, report if owner is gateway else Report(ref_of(gateway))
    if validation is not None:
        authority = _translate_validation(gateway, validation, where, world, keyring, mine)
        if mine is not report:
            _report_set(mine, report)
    where = f"{path}.tls.options"

    def permits(namespace: str, name: str) -> bool:
        return _permits(owner, world, "Secret", namespace, name)

    client = translate_client_rule(tls.options, where, permits, keyring, report)
    if client is not None and listener.protocol != "HTTPS":
        message = f"needs protocol HTTPS, and the listener has {listener.protocol}"
        report.refuse(
            f"{where}[{CLIENT_OPTIONS[0]}]", "Forbidden", message, condition="UnsupportedValue"
        )
        client = None
    elif client is not None and validation is not None:
        message = "must not be set beside spec.tls.frontend of the Gateway for this port"
        report.refuse(
            f"{where}[{CLIENT_OPTIONS[0]}]", "Forbidden", message, condition="UnsupportedValue"
        )
        client = None
    insecure = validation is not None and validation.mode == "AllowInsecureFallback"
    return TlsOutcome(
        tls=ir.ListenerTls(
            certificates=tuple(one.name for one in certificates),
            min_version=_translate_options(tls, path, report),
            client_ca=authority.name if authority else "",
            client_insecure_fallback=insecure and authority is not None,
            client_rule=client[0] if client else None,
        ),
        secrets=(
            *certificates,
            *([authority] if authority else []),
            *([client[1]] if client else []),
        ),
        doubtful=doubtful,
        hidden=mine.problems if mine is not report else (),
    )


def resolve_certificate(
    owner: Gateway | ListenerSet, ref: SecretObjectReference, world: World, keyring: Keyring
) -> Certified | tuple[Word | Literal[""], str]:
    """Return the certificate that a Gateway or a ListenerSet refers to, or (reason, message).

    The reason is RefNotPermitted, or "" for whatever the place of the reference calls invalid.
    """
    if (ref.group, ref.kind) != ("", "Secret"):
        return "", wrong_kind_text(ref.group, ref.kind, "Secret")
    own = ref_of(owner)
    namespace = ref.namespace or own.namespace
    if not _permits(owner, world, "Secret", namespace, ref.name):
        message = refusal_text(own.kind, own.namespace, "Secret", namespace, ref.name)
        return "RefNotPermitted", message
    found = keyring.certificate(namespace, ref.name)
    return ("", found) if isinstance(found, str) else found


def _translate_certificates(
    owner: Gateway | ListenerSet,
    tls: ListenerTLSConfig,
    hostname: str,
    path: str,
    world: World,
    keyring: Keyring,
    report: Report,
) -> tuple[tuple[ir.Secret, ...], tuple[Problem, ...]]:
    doubtful: list[Problem] = []
    certificates: dict[str, ir.Secret] = {}
    wrong: list[tuple[str, Word, str]] = []
    for at, ref in enumerate(tls.certificate_refs):
        where = f"{path}.tls.certificateRefs[{at}]"
        found = resolve_certificate(owner, ref, world, keyring)
        if isinstance(found, tuple):
            wrong.append((where, found[0] or "InvalidCertificateRef", found[1]))
            continue
        algorithm = found.pair.algorithm
        if algorithm in certificates and certificates[algorithm].name != found.secret.name:
            message = f"a listener serves one {algorithm} certificate; the first one is served"
            wrong.append((where, "InvalidCertificateRef", message))
        else:
            now = world.settings.now
            if other := found.pair.check_name(hostname):
                doubtful.append(report.warn(where, "CertificateNotValid", other))
            if late := found.pair.check_time(now):
                soon = found.pair.is_expiring(now)
                word: Word = "CertificateExpiring" if soon else "CertificateNotValid"
                doubtful.append(report.warn(where, word, late))
            certificates[algorithm] = _with_staple(found, where, world.settings.now, report)
    if not tls.certificate_refs:
        message = "a Secret with the certificate is required"
        report.unresolve(f"{path}.tls.certificateRefs", "InvalidCertificateRef", message)
    for where, reason, message in wrong:
        report.unresolve(
            where, "PartiallyInvalidCertificateRef" if certificates else reason, message
        )
    doubtful.sort(
        key=lambda one: one.reason, reverse=True
    )  # certificates that clients refuse now come first
    return tuple(certificates.values()), tuple(doubtful)


def _with_staple(found: Certified, where: str, now: int, report: Report) -> ir.Secret:
    """Return the certificate as it is served, with the OCSP response that is beside it, if that holds now."""
    staple = found.staple
    if staple is None:
        return found.secret
    wrong = staple if isinstance(staple, str) else staple.check_time(now)
    if wrong:
        report.warn(
            where, "Invalid", f"{STAPLE_KEY}: {wrong}; the certificate is served without it"
        )
    if wrong or isinstance(staple, str):
        return found.secret
    if staple.revoked:
        message = (
            f"{STAPLE_KEY}: the certificate was revoked at {staple.revoked}; clients refuse it"
        )
        report.warn(where, "Invalid", message)
    return msgspec.structs.replace(
        found.secret, staple=staple.response, staple_until=staple.not_after
    )


def _translate_options(tls: ListenerTLSConfig, path: str, report: Report) -> TlsVersion:
    version: TlsVersion = "1.2"
    known = (MIN_VERSION, *CLIENT_OPTIONS)
    for key, value in sorted(tls.options.items()):
        where = f"{path}.tls.options[{key}]"
        if key in CLIENT_OPTIONS:
            continue
        if key != MIN_VERSION and is_foreign_option(key):
            report.warn(where, "NotSupported", f'"{key}" (supported: {", ".join(known)})')
        elif key != MIN_VERSION:
            message, hint = supported_text(key, known), did_you_mean(key, known)
            report.refuse(where, "NotSupported", message, hint, condition="UnsupportedValue")
        elif value in _VERSIONS:
            version = _VERSIONS[value]
        else:
            report.refuse(where, "UnsupportedValue", f'"{value}" (supported: 1.2, 1.3)')
    return version


def _validation_of(gateway: Gateway, port: int) -> tuple[FrontendTLSValidation | None, str]:
    """Return how clients of a port are verified, and the field path of that."""
    frontend = gateway.spec.tls.frontend if gateway.spec.tls else None
    if frontend is None:
        return None, ""
    for at, one in enumerate(frontend.per_port):
        if one.port == port:
            return one.tls.validation, f"spec.tls.frontend.perPort[{at}].tls.validation"
    return frontend.default.validation, "spec.tls.frontend.default.validation"


def _translate_validation(
    gateway: Gateway,
    validation: FrontendTLSValidation,
    path: str,
    world: World,
    keyring: Keyring,
    report: Report,
) -> ir.Secret | None:
    bundles = []
    for at, ref in enumerate(validation.ca_certificate_refs):
        where = f"{path}.caCertificateRefs[{at}]"
        missing = world.settings.missing
        kind = authority_of(ref.group, ref.kind, missing)
        if not kind:
            message = wrong_authority(ref.group, ref.kind, missing)
            report.unresolve(where, "InvalidCACertificateKind", message)
            continue
        everywhere = kind == CLUSTER_KIND
        if everywhere and ref.namespace:
            message = f"a {CLUSTER_KIND} has no namespace, but {ref.namespace} is set"
            report.unresolve(f"{where}.namespace", "InvalidCACertificateRef", message)
            continue
        namespace = "" if everywhere else ref.namespace or gateway.metadata.namespace
        if not everywhere and not _permits(gateway, world, kind, namespace, ref.name):
            message = refusal_text("Gateway", gateway.metadata.namespace, kind, namespace, ref.name)
            report.unresolve(where, "RefNotPermitted", message)
            continue
        found = keyring.bundle(kind, namespace, ref.name)
        if isinstance(found, str):
            report.unresolve(where, "InvalidCACertificateRef", found)
        else:
            bundles.append(found)
    if not bundles:
        message = "no reference has a valid CA certificate to verify clients"
        problem = report.refuse(f"{path}.caCertificateRefs", "NoValidCACertificate", message)
        if validation.ca_certificate_refs:
            report.follow(problem)  # of each reference, which has been told of already
    return join_bundles(bundles)


def _report_set(of_gateway: Report, report: Report) -> None:
    """Tell a ListenerSet that its Gateway cannot verify clients, and nothing of the Gateway's references."""
    path, message = (
        "spec.parentRef",
        "spec.tls.frontend of the Gateway has unresolved references",
    )
    for one in of_gateway.unresolved[:1]:
        report.unresolve(path, one.reason, message)
    for one in of_gateway.refused[:1]:
        report.follow(report.refuse(path, one.reason, message))  # told of the reference already


def _permits(
    owner: Gateway | ListenerSet, world: World, kind: str, namespace: str, name: str
) -> bool:
    own = ref_of(owner)
    return namespace == own.namespace or is_granted(
        world.grants.get(namespace, ()),
        kind=own.kind,
        namespace=own.namespace,
        to_group="",
        to_kind=kind,
        to_name=name,
    )
