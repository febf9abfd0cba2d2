"""Pod selectors: which labels of XBackends Pods are followed by, namespace by namespace.

In: a snapshot. Out: the selectors, as texts that an API server takes. Each one is a watch, so there are MOST of them in a namespace: those of
the oldest XBackends; XBackends that say the same labels share one. The controller follows these, and translation refuses the others.
Selectors that are refused for what they say themselves have no place among them.
Must never: depend on anything but the XBackends of the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgefast.resources.gatewayapi.xbackend import EndpointSelector
from edgefast.resources.rules.rule import Violation
from edgefast.resources.rules.xbackend import check_labels
from edgefast.resources.snapshot import Key, Snapshot
from edgefast.translate.match.precedence import age_order

__all__ = ["MOST", "Selectors", "check_selector", "index_selectors"]

#: Different selectors of one namespace.
MOST = 16
#: Labels of one selector (maxProperties of the CRD).
_MOST_LABELS = 64
#: Characters of one, which stands in the URL of each list and watch: half of the 8 kB of a request line that servers and proxies take.
_MOST_TEXT = 4096
#: By namespace.
Selectors = Mapping[str, frozenset[str]]


def index_selectors(snapshot: Snapshot) -> Selectors:
    """Return the selectors that Pods are followed by."""
    found: dict[str, dict[str, None]] = {}
    for key in _by_age(snapshot):
        spec = snapshot.x_backends[key].spec
        labels = spec.endpoint_selector
        if spec.type != "EndpointSelector" or labels is None:
            continue
        if len(found.get(key[0], ())) < MOST and not any(check_selector(labels)):
            found.setdefault(key[0], {}).setdefault(labels.text)
    return {namespace: frozenset(texts) for namespace, texts in found.items()}


def check_selector(selector: EndpointSelector) -> Iterable[Violation]:
    """Check what a selector says, whatever others there are."""
    labels, path = selector.match_labels, ("matchLabels",)
    if not labels:
        said = "at least one label; none would select every Pod"
        return (Violation(path, "Required", said),)
    if len(labels) > _MOST_LABELS:
        return (Violation(path, "TooMany", f"{len(labels)} labels, at most {_MOST_LABELS}"),)
    if wrong := tuple(check_labels(selector)):
        return wrong
    if (size := len(selector.text)) > _MOST_TEXT:
        said = f"{size} characters of labels, at most {_MOST_TEXT}"
        return (Violation(path, "TooMany", said),)
    return ()


def _by_age(snapshot: Snapshot) -> list[Key]:
    table = snapshot.x_backends
    return sorted(table, key=lambda key: age_order(table[key].metadata))
