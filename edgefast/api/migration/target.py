"""Target: the target of a policy of another project.

In: the targets in a document. Out: a Struct; the labels of a Gateway's pods.
Must never: hold what the policy does to it.
"""

from __future__ import annotations

import msgspec

from edgefast.api.gateway.gateway import Gateway
from edgefast.api.loaded import Path
from edgefast.api.model.meta import LabelSelector

__all__ = ["Target", "pod_labels"]

#: The label that pods of a Gateway have wherever its implementation follows GEP-1762.
_GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name"


class Target(msgspec.Struct, frozen=True):
    """One target; `name` is "" where `selector` chooses among the objects of the namespace, of all with ""."""

    path: Path
    group: str
    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None = None
    section: str = ""
    of_pods: bool = False  # the labels are those of a Gateway's pods: its own, and what its controller gives them


def pod_labels(gateway: Gateway) -> dict[str, str]:
    """Return the labels that pods of a Gateway have."""
    wished = gateway.spec.infrastructure.labels if gateway.spec.infrastructure else {}
    return {**gateway.metadata.labels, **wished, _GATEWAY_LABEL: gateway.metadata.name}
