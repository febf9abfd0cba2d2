"""Core: rules about core kinds and BackendTLSPolicy: what an API server would refuse in a file.

In: Services, EndpointSlices, Secrets, backend TLS validation. Out: violations.
Source: Kubernetes API validation (core v1, discovery v1); CEL of the BackendTLSPolicy CRD.
Must never: show the content of a Secret.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.secret import Secret
from edgefast.api.core.service import ServiceSpec
from edgefast.api.gateway.backendtlspolicy import (
    BackendTLSPolicyValidation,
    SubjectAltName,
)
from edgefast.api.model.meta import LabelSelectorRequirement
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()


@BOOK.on(ServiceSpec, "ports")
def check_service_ports(spec: ServiceSpec) -> Iterable[Violation]:
    """Several ports need names, and names differ."""
    names: set[str] = set()
    if len(spec.ports) < 2:
        return
    for index, port in enumerate(spec.ports):
        if not port.name:
            yield Violation(("ports", index, "name"), "Required", "with several ports")
        elif port.name in names:
            yield Violation(("ports", index, "name"), "Duplicate", f'"{port.name}"')
        names.add(port.name)


@BOOK.on(ServiceSpec, "type", "external_name")
def check_external_name(spec: ServiceSpec) -> Iterable[Violation]:
    """An ExternalName Service says which name."""
    if spec.type == "ExternalName" and spec.external_name is None:
        return (Violation(("externalName",), "Required", "with type ExternalName"),)
    return ()


@BOOK.on(EndpointSlice, "address_type", "endpoints")
def check_addresses(one: EndpointSlice) -> Iterable[Violation]:
    """Addresses are of the slice's type."""
    if one.address_type == "FQDN":
        return
    parse = ipaddress.IPv4Address if one.address_type == "IPv4" else ipaddress.IPv6Address
    for index, endpoint in enumerate(one.endpoints):
        for at, address in enumerate(endpoint.addresses):
            try:
                parse(address)
            except ValueError:
                yield Violation(
                    ("endpoints", index, "addresses", at),
                    "Invalid",
                    f'"{address}" (expected an {one.address_type} address)',
                )


@BOOK.on(Secret, "type", "data", "string_data")
def check_tls_secret(one: Secret) -> Iterable[Violation]:
    """A TLS Secret has both halves."""
    if one.type == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if one.value(key) is None:
                yield Violation(("data", key), "Required", "with type kubernetes.io/tls")


@BOOK.on(LabelSelectorRequirement, "operator", "values")
def check_requirement(one: LabelSelectorRequirement) -> Iterable[Violation]:
    """In and NotIn compare with values, Exists and DoesNotExist do not."""
    if one.operator in ("In", "NotIn"):
        if not one.values:
            return (Violation(("values",), "Required", f"with operator {one.operator}"),)
    elif one.values:
        return (Violation(("values",), "Forbidden", f"with operator {one.operator}"),)
    return ()


@BOOK.on(BackendTLSPolicyValidation, "ca_certificate_refs", "well_known_ca_certificates")
def check_authorities(one: BackendTLSPolicyValidation) -> Iterable[Violation]:
    """Authorities come from references or are well known, not both."""
    if one.ca_certificate_refs and one.well_known_ca_certificates is not None:
        return (
            Violation(("wellKnownCACertificates",), "Forbidden", "together with caCertificateRefs"),
        )
    if not one.ca_certificate_refs and one.well_known_ca_certificates is None:
        return (Violation(("caCertificateRefs",), "Required", "this or wellKnownCACertificates"),)
    return ()


@BOOK.on(SubjectAltName, "type", "hostname", "uri")
def check_alt_name(one: SubjectAltName) -> Iterable[Violation]:
    """Exactly the payload that `type` names."""
    for word, name, value in (("Hostname", "hostname", one.hostname), ("URI", "uri", one.uri)):
        if one.type == word and value is None:
            yield Violation((name,), "Required", f"with type {one.type}")
        elif one.type != word and value is not None:
            yield Violation((name,), "Forbidden", f"with type {one.type} (it belongs to {word})")
