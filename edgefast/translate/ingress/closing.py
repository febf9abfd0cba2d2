"""Closing: why a location answers 503.

In: a location, its Ingress, its host. Out: the field that closes the location. The first of these counts: the Ingress, another Ingress
of the host, an annotation, the access rules, custom-headers, an expression that is not RE2.
Must never: serve a location whose access rules or expression edgefast cannot serve.
"""

from __future__ import annotations

from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.draft import guard_of
from edgefast.translate.ingress.findings import Findings
from edgefast.translate.ingress.locations import Place
from edgefast.translate.ingress.responseheaders import find_custom_headers
from edgefast.translate.ingress.servers import Server, Source
from edgefast.translate.ingress.values import annotation_path

__all__ = ["closing_of_source", "find_closing"]

#: Annotations that authenticate; no-auth-locations are without.
_AUTHENTICATION = ("auth-url", "global-auth-url")


def find_closing(place: Place, source: Source, server: Server, findings: Findings) -> str:
    """Return the field for which a location answers 503, "" if it does not."""
    field = closing_of_source(place.path, source, server, findings)
    if field or place.kind != "refused":
        return field
    field = f"{place.location.field}.path"
    message = f'"{place.path}": {place.wrong}; requests that it can match get 503'
    note = Note(name=field, message=message, error=True, reason="NotSupported")
    findings.note(source, note)
    return field


def closing_of_source(path: str, source: Source, server: Server, findings: Findings) -> str:
    """Return the field of an Ingress for which a path answers 503, "" if it does not."""
    access = findings.access_of(source)
    if source.ingress.closed is not None:
        return source.ingress.closed.path or "spec"
    if server.closed_by is not None:
        return "metadata.annotations"
    open_ = guard_of(path, findings.settings) == "lists"  # authentication does not apply here
    for name in source.annotations.closed:
        if name == "ConfigMap":
            return "metadata.annotations"
        if name not in _AUTHENTICATION or not open_ or source.annotations.closes_no_auth:
            return annotation_path(name)
    if access.closed and (
        access.closed not in _AUTHENTICATION or not open_ or source.annotations.closes_no_auth
    ):
        is_global = access.closed == "global-auth-url"
        return "metadata.annotations" if is_global else annotation_path(access.closed)
    custom = find_custom_headers(source, findings.settings, findings.lookup)
    if custom.closed:
        findings.note(source, *custom.notes)
        return annotation_path("custom-headers")
    return ""
