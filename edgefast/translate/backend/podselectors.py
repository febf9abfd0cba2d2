"""Pod selectors: which labels of XBackends Pods are followed by, namespace by namespace.

In: a snapshot. Out: the selectors, as texts that an API server takes. Each one is a watch, so there are MOST of them in a namespace: those of
the oldest XBackends; XBackends that say the same labels share one. The controller follows these, and translation refuses the others.
Must never: depend on anything but the XBackends of the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgefast.resources.snapshot import Key, Snapshot
from edgefast.translate.match.precedence import age_order

__all__ = ["MOST", "Selectors", "index_selectors"]

#: Different selectors of one namespace.
MOST = 16
#: By namespace.
Selectors = Mapping[str, frozenset[str]]


def index_selectors(snapshot: Snapshot) -> Selectors:
    """Return the selectors that Pods are followed by."""
    found: dict[str, dict[str, None]] = {}
    for key in _by_age(snapshot):
        spec = snapshot.x_backends[key].spec
        labels = spec.endpoint_selector
        if spec.type != "EndpointSelector" or labels is None or not labels.match_labels:
            continue
        known = found.setdefault(key[0], {})
        if len(known) < MOST:
            known.setdefault(labels.text)
    return {namespace: frozenset(texts) for namespace, texts in found.items()}


def _by_age(snapshot: Snapshot) -> list[Key]:
    table = snapshot.x_backends
    return sorted(table, key=lambda key: age_order(table[key].metadata))
