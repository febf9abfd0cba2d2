"""Ingress: the placeholder of an Ingress with an error, whose hosts and paths answer 503.

In: the plain value of a document, or of an API server's object, and its errors. Out: an Ingress with the hosts and paths that
can be read, and `closed`. A misspelled field counts as the one that its message suggests (readable.py). A path that cannot be
read is "/", a path type that cannot be read is Prefix. A rule whose host cannot be read closes nothing.
Must never: bring a backend into service, or raise for what a user wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from edgefast.api.decode.fail_closed.readable import (
    build,
    field_of,
    note_closed,
    read_meta,
    read_spec,
)
from edgefast.api.ingress.ingress import (
    CLASS_ANNOTATION,
    MAX_PATHS,
    MAX_RULES,
    HTTPIngressPath,
    HTTPIngressRuleValue,
    Ingress,
    IngressBackend,
    IngressRule,
    IngressSpec,
    IngressTLS,
)
from edgefast.api.loaded import Path
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["close_ingress"]

#: A backend with which a path can be built.
_ANY = {"service": {"name": "any", "port": {"number": 80}}}
#: The backend of a closed path: requests never reach it.
_NONE = IngressBackend()


def close_ingress(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, _: Collection[Path] = ()
) -> Ingress:
    """Return the closed Ingress of an object."""
    spec = read_spec(raw)
    name = field_of(spec, "ingressClassName", IngressSpec)
    backend = _NONE if isinstance(field_of(spec, "defaultBackend", IngressSpec), dict) else None
    metadata = read_meta(raw.get("metadata"), ref)
    return Ingress(
        metadata=msgspec.structs.replace(metadata, annotations=_read_class(raw)),
        spec=IngressSpec(
            ingress_class_name=name if isinstance(name, str) else None,
            default_backend=backend,
            tls=tuple(_read_tls(spec)),
            rules=tuple(_read_rules(spec)),
        ),
        closed=note_closed(first),
    )


def _read_class(raw: dict[str, Any]) -> dict[str, str]:
    """Return the annotation that names the class; no other one has a meaning for closed paths."""
    metadata = raw.get("metadata")
    given = metadata.get("annotations") if isinstance(metadata, dict) else None
    named = given.get(CLASS_ANNOTATION) if isinstance(given, dict) else None
    return {CLASS_ANNOTATION: named} if isinstance(named, str) else {}


def _items(value: object, limit: int) -> list[Any]:
    return value[:limit] if isinstance(value, list) else []


def _read_tls(spec: dict[str, Any]) -> Iterator[IngressTLS]:
    for one in _items(field_of(spec, "tls", IngressSpec), MAX_RULES):
        found: IngressTLS | None = build(IngressTLS, one) if isinstance(one, dict) else None
        if found is not None:
            yield found


def _read_rules(spec: dict[str, Any]) -> Iterator[IngressRule]:
    for one in _items(field_of(spec, "rules", IngressSpec), MAX_RULES):
        if not isinstance(one, dict):
            continue
        host: IngressRule | None = build(
            IngressRule, {"host": field_of(one, "host", IngressRule) or ""}
        )
        if host is None:
            continue
        http = field_of(one, "http", IngressRule)
        given = field_of(http, "paths", HTTPIngressRuleValue) if isinstance(http, dict) else None
        paths = _items(given, MAX_PATHS)
        made = tuple(map(_read_path, paths))
        yield IngressRule(host=host.host, http=HTTPIngressRuleValue(paths=made) if made else None)


def _read_path(one: object) -> HTTPIngressPath:
    given = one if isinstance(one, dict) else {}
    for wanted in (
        {"path": given.get("path", ""), "pathType": given.get("pathType", "Prefix")},
        {"path": given.get("path", ""), "pathType": "Prefix"},
    ):
        found: HTTPIngressPath | None = build(HTTPIngressPath, {**wanted, "backend": _ANY})
        if found is not None:
            return msgspec.structs.replace(found, backend=_NONE)
    return HTTPIngressPath(path="/", path_type="Prefix", backend=_NONE)
