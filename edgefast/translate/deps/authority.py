"""Authority: the kinds of objects that hold CA certificates, and which of them this deployment has.

In: a reference to one. Out: its kind, or why it is invalid. ConfigMaps and Secrets (key ca.crt) are
namespaced. A ClusterTrustBundle is cluster-scoped, usable from every namespace, and present only
where the API server has the kind.
Source: Gateway API caCertificateRefs, GEP-5075 (InvalidKind where the kind is not served).
Must never: look whether the object exists, or check a ReferenceGrant.
"""

from __future__ import annotations

from collections.abc import Collection

from edgefast.api.core.clustertrustbundle import CERTIFICATES_GROUP
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.referencegrant import core_hint

__all__ = ["AUTHORITY_KINDS", "CLUSTER_KIND", "authority_of", "read_authority", "wrong_authority"]

#: Of the core group.
AUTHORITY_KINDS = ("ConfigMap", "Secret")
CLUSTER_KIND = "ClusterTrustBundle"
_CLUSTER_NAME = f"{CERTIFICATES_GROUP}/{CLUSTER_KIND}"


def authority_of(group: str, kind: str, missing: Collection[str] = ()) -> str:
    """Return the kind of an authority that a reference names, "" when it names none that is served."""
    if (group, kind) == (CERTIFICATES_GROUP, CLUSTER_KIND):
        return "" if kind in missing else kind
    return kind if not group and kind in AUTHORITY_KINDS else ""


def wrong_authority(group: str, kind: str, missing: Collection[str] = ()) -> str:
    """Say why a reference names no authority."""
    if (group, kind) == (CERTIFICATES_GROUP, CLUSTER_KIND):
        return f"the API server has no {_CLUSTER_NAME} (supported: {', '.join(AUTHORITY_KINDS)})"
    there = () if CLUSTER_KIND in missing else (_CLUSTER_NAME,)
    message = supported_text(f"{group}/{kind}" if group else kind, (*AUTHORITY_KINDS, *there))
    return ", ".join(part for part in (message, core_hint(group)) if part)


def read_authority(reader: Reader, kind: str, namespace: str, name: str) -> None:
    """Note that an authority was read: whoever did depends on it."""
    if kind == CLUSTER_KIND:
        reader.cluster_trust_bundle(name)
    elif kind == "Secret":
        reader.secret(namespace, name)
    else:
        reader.config_map(namespace, name)
