"""Allowed namespaces: which namespaces may attach routes to a listener, or ListenerSets to a Gateway.

In: `namespaces` of allowedRoutes or allowedListeners.
Out: a warning for each value that only a newer API server knows, and for a missing selector. Both
select nothing.
Source: Gateway API RouteNamespaces, ListenerNamespaces; Kubernetes LabelSelectorRequirement.
Must never: let an unknown value select a namespace.
"""

from __future__ import annotations

from collections.abc import Collection

from edgefast.api.gateway.gateway import ListenerNamespaces
from edgefast.api.gateway.listener import RouteNamespaces
from edgefast.diagnostics.problem import supported_text
from edgefast.translate.report.report import Report

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_namespaces(
    namespaces: RouteNamespaces | ListenerNamespaces,
    words: Collection[str],
    report: Report,
    path: str,
) -> None:
    """Warn of what selects nothing; `words` are those of `from`, `path` is that of `namespaces`."""
    if namespaces.from_ not in words:
        message = f"{supported_text(namespaces.from_, words)}; no namespace is selected"
        report.warn(f"{path}.from", "NotSupported", message)
    if namespaces.selector is None:
        if namespaces.from_ == "Selector":
            message = "with from: Selector; no namespace is selected"
            report.warn(f"{path}.selector", "Required", message)
        return
    for at, one in enumerate(namespaces.selector.match_expressions):
        if one.operator not in _OPERATORS:
            message = f"{supported_text(one.operator, _OPERATORS)}; no namespace is selected"
            where = f"{path}.selector.matchExpressions[{at}].operator"
            report.warn(where, "NotSupported", message)
