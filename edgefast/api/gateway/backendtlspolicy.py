"""BackendTLSPolicy: TLS from the gateway to a Service.

In: `gateway.networking.k8s.io/v1` or `v1alpha3` documents. Out: `BackendTLSPolicy`.
Source: Gateway API v1.6 `backendtlspolicy_types.go`.
Must never: load certificates; translate resolves the references.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import (
    AnnotationValue,
    Element,
    Hostname,
    PreciseHostname,
    Resource,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import (
    LocalObjectReference,
    LocalPolicyTargetReferenceWithSectionName,
)

_URI = r"^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\?([^#]*))?(#(.*))?"
_WELL_KNOWN = (
    r"^(System|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]))\Z"
)


class SubjectAltName(Element, frozen=True, kw_only=True):
    """A name that the backend's certificate must carry; the payload named by `type`."""

    type: Literal["Hostname", "URI"]
    hostname: Hostname | None = None
    uri: Annotated[str, Meta(min_length=1, max_length=253, pattern=_URI)] | None = None


class BackendTLSPolicyValidation(Element, frozen=True, kw_only=True):
    """Whom to trust: CA objects or the system's; `hostname` is SNI and the name checked."""

    ca_certificate_refs: Annotated[tuple[LocalObjectReference, ...], Meta(max_length=8)] = ()
    well_known_ca_certificates: (
        Annotated[str, Meta(min_length=1, max_length=253, pattern=_WELL_KNOWN)] | None
    ) = field(default=None, name="wellKnownCACertificates")
    hostname: PreciseHostname
    subject_alt_names: Annotated[tuple[SubjectAltName, ...], Meta(max_length=5)] = ()


class BackendTLSPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of a BackendTLSPolicy."""

    target_refs: Annotated[
        tuple[LocalPolicyTargetReferenceWithSectionName, ...],
        Meta(min_length=1, max_length=16),
    ]
    validation: BackendTLSPolicyValidation
    options: Annotated[dict[str, AnnotationValue], Meta(max_length=16)] = field(
        default_factory=dict
    )


class BackendTLSPolicy(Resource, frozen=True, kw_only=True):
    """A namespaced policy attached to Services."""

    metadata: ObjectMeta
    spec: BackendTLSPolicySpec
