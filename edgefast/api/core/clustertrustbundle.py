"""ClusterTrustBundle: CA certificates that are the same for all of a cluster.

In: `certificates.k8s.io/v1` or `v1beta1` documents. Out: `ClusterTrustBundle`.
Source: Kubernetes ClusterTrustBundle (beta in 1.33, stable in 1.37); every ServiceAccount may read
it, so it needs no grant.
Must never: be chosen by its signer; the Gateway API refers to it by name (GEP-5075).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from edgefast.api.model.fields import Element, Resource, expects
from edgefast.api.model.meta import ObjectMeta

__all__ = ["CERTIFICATES_GROUP", "BundleMeta", "ClusterTrustBundle", "ClusterTrustBundleSpec"]

CERTIFICATES_GROUP = "certificates.k8s.io"


class BundleMeta(ObjectMeta, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Its metadata: the name of a bundle of a signer begins with that of the signer, "example.com:internal:v1"."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            pattern=r"^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?\Z",
            extra=expects(
                "lower-case letters, digits, -, . and :, such as example.com:internal:v1"
            ),
        ),
    ]


class ClusterTrustBundleSpec(Element, frozen=True, kw_only=True):
    """`spec` of a ClusterTrustBundle; `trust_bundle` is PEM."""

    signer_name: str = ""
    trust_bundle: str = ""


class ClusterTrustBundle(Resource, frozen=True, kw_only=True):
    """A ClusterTrustBundle; it has no namespace."""

    metadata: BundleMeta
    spec: ClusterTrustBundleSpec = field(default_factory=ClusterTrustBundleSpec)
