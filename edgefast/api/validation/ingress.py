"""Ingress: rules about Ingresses: what an API server would refuse in a file.

In: backends, ports and paths of Ingresses. Out: violations.
Source: Kubernetes API validation (networking v1, `ValidateIngressSpec`).
Must never: judge a regular expression; edgefast/translate/ingress/locations.py does, with the annotations.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.ingress.ingress import (
    HTTPIngressPath,
    IngressBackend,
    IngressSpec,
    ServiceBackendPort,
)
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: What a path of type Exact or Prefix must not contain, and how it must not end.
_NEVER_INSIDE = ("//", "/./", "/../", "%2f", "%2F")
_NEVER_LAST = ("/..", "/.")


@BOOK.on(IngressBackend, "service", "resource")
def check_backend(one: IngressBackend) -> Iterable[Violation]:
    """A backend is a Service or another object."""
    if one.service is not None and one.resource is not None:
        return (Violation(("resource",), "Forbidden", "together with service"),)
    if one.service is None and one.resource is None:
        return (Violation(("service",), "Required", "this or resource"),)
    return ()


@BOOK.on(ServiceBackendPort, "name", "number")
def check_port(one: ServiceBackendPort) -> Iterable[Violation]:
    """A port has a name or a number."""
    if one.name and one.number:
        return (Violation(("name",), "Forbidden", "together with number"),)
    if not one.name and not one.number:
        return (Violation(("number",), "Required", "this or name"),)
    return ()


@BOOK.on(HTTPIngressPath, "path", "path_type")
def check_path(one: HTTPIngressPath) -> Iterable[Violation]:
    """A path of type Exact or Prefix is absolute and in normal form."""
    if one.path_type == "ImplementationSpecific":
        return
    if not one.path:
        yield Violation(("path",), "Required", f"with pathType {one.path_type}")
    for part in _NEVER_INSIDE:
        if part in one.path:
            yield Violation(("path",), "Invalid", f'"{one.path}" (must not contain {part})')
    for part in _NEVER_LAST:
        if one.path.endswith(part):
            yield Violation(("path",), "Invalid", f'"{one.path}" (must not end with {part})')


@BOOK.on(IngressSpec, "default_backend", "rules")
def check_spec(one: IngressSpec) -> Iterable[Violation]:
    """An Ingress has a default backend or rules."""
    if one.default_backend is None and not one.rules:
        return (Violation(("rules",), "Required", "this or defaultBackend"),)
    return ()
