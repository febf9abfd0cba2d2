"""Allowed namespaces: who may attach, routes to a listener or ListenerSets to a Gateway, as far as the words are known.

In: `namespaces` of allowedRoutes or allowedListeners. Out: a warning for each word that only a newer API server knows, and for a
selector that is missing: such words select nothing, so that nobody gets in by them.
Source: Gateway API RouteNamespaces, ListenerNamespaces; Kubernetes LabelSelectorRequirement.
Must never: let a word that is not known select a namespace.
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
