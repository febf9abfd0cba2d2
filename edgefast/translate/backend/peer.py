"""Peer: TLS of Backends and XBackends: trusted authorities, client certificate, required names.

In: the references of a Backend or XBackend. Out: secrets of the IR; every invalid reference is
refused.
Source: Gateway API BackendTLSPolicyValidation. A client certificate is in the namespace of the
object that presents it (GEP-4894, namespace-scoped persona).
Must never: trust fewer authorities than the object lists, or present a certificate of another
namespace.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast import ir
from edgefast.api.gateway.backendtlspolicy import SubjectAltName
from edgefast.api.model.reference import LocalObjectReference, SecretObjectReference
from edgefast.diagnostics.problem import supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.deps.authority import (
    CLUSTER_KIND,
    authority_of,
    read_authority,
    wrong_authority,
)
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.referencegrant import refusal_text, wrong_kind_text
from edgefast.translate.report.report import Report
from edgefast.translate.tls.keyring import Keyring, join_bundles

__all__ = ["UNVERIFIED", "UNVERIFIED_HINT", "read_authorities", "read_certificate", "read_names"]

#: The message about an object that switches verification off.
UNVERIFIED = (
    "certificates are not verified; anyone on the network path can read and change requests"
)
UNVERIFIED_HINT = "give the authority of the certificates in caCertificateRefs"

_NAME_TYPES: tuple[str, ...] = ("Hostname", "URI")


def read_authorities(
    refs: Iterable[LocalObjectReference],
    namespace: str,
    path: str,
    reader: Reader,
    keyring: Keyring,
    report: Report,
) -> ir.Secret | None:
    """Return the authorities that references name, as one; None: there are none. `path` is the field's."""
    bundles = []
    for at, ref in enumerate(refs):
        missing = reader.settings.missing
        kind = authority_of(ref.group, ref.kind, missing)
        if not kind:
            message = wrong_authority(ref.group, ref.kind, missing)
            report.refuse(f"{path}[{at}]", "InvalidKind", message)
            continue
        read_authority(reader, kind, namespace, ref.name)
        found = keyring.bundle(kind, "" if kind == CLUSTER_KIND else namespace, ref.name)
        if isinstance(found, str):
            report.refuse(f"{path}[{at}]", "InvalidCACertificateRef", found)
        else:
            bundles.append(found)
    return join_bundles(bundles)


def read_certificate(
    ref: SecretObjectReference,
    kind: str,
    namespace: str,
    reader: Reader,
    keyring: Keyring,
    report: Report,
) -> ir.Secret | None:
    """Return the certificate that an object of a `kind` in `namespace` shows."""
    path = "spec.tls.clientCertificateRef"
    target = (ref.namespace or namespace, ref.name)
    if (ref.group, ref.kind) != ("", "Secret"):
        report.refuse(path, "InvalidKind", wrong_kind_text(ref.group, ref.kind, "Secret"))
        return None
    if target[0] != namespace:
        message = refusal_text(kind, namespace, "Secret", *target)
        report.refuse(path, "RefNotPermitted", f"{message}; put the Secret beside the {kind}")
        return None
    reader.secret(*target)
    found = keyring.certificate(*target)
    if isinstance(found, str):
        report.refuse(path, "InvalidClientCertificateRef", found)
        return None
    return found.secret


def read_names(
    names: Iterable[SubjectAltName], path: str, report: Report, reason: Word = "Invalid"
) -> Iterable[tuple[ir.NameType, str]]:
    """Give the names of which a certificate must carry one; `path` is the field's."""
    for at, name in enumerate(names):
        if name.type not in _NAME_TYPES:
            report.refuse(f"{path}[{at}].type", reason, supported_text(name.type, _NAME_TYPES))
        elif name.type == "Hostname":
            yield "Hostname", name.hostname or ""
        else:
            yield "URI", name.uri or ""
