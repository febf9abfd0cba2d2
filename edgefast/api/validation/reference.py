"""Reference: rules about references and their lists.

In: backend references, parentRefs, targetRefs. Out: violations.
Source: CEL of the Gateway API v1.6 CRDs (`shared_types.go`, `object_reference_types.go`).
Must never: look a reference up.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicySpec
from edgefast.api.gateway.grpcroute import GRPCBackendRef, GRPCRouteSpec
from edgefast.api.gateway.httproute import HTTPBackendRef, HTTPRouteSpec
from edgefast.api.gateway.layer4_route import StreamRouteSpec, TLSRouteSpec
from edgefast.api.model.reference import BackendObjectReference, BackendRef, ParentReference
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()


@BOOK.on(BackendObjectReference, "group", "kind", "port")
@BOOK.on(HTTPBackendRef, "group", "kind", "port")
@BOOK.on(GRPCBackendRef, "group", "kind", "port")
@BOOK.on(BackendRef, "group", "kind", "port")
def check_service_port(ref: BackendObjectReference) -> Iterable[Violation]:
    """A Service needs a port, a Backend has its own."""
    if ref.port is None and ref.kind == "Service" and not ref.group:
        return (Violation(("port",), "Required", "a reference to a Service needs a port"),)
    return ()


@BOOK.on(HTTPRouteSpec, "parent_refs")
@BOOK.on(GRPCRouteSpec, "parent_refs")
@BOOK.on(TLSRouteSpec, "parent_refs")
@BOOK.on(StreamRouteSpec, "parent_refs")
def check_parent_refs(
    spec: HTTPRouteSpec | GRPCRouteSpec | TLSRouteSpec | StreamRouteSpec,
) -> Iterable[Violation]:
    """References to one parent must differ by sectionName or port, and all must say one."""
    refs = spec.parent_refs
    if len(refs) < 2:
        return
    by_parent: dict[tuple[str, str, str, str], list[tuple[int, ParentReference]]] = {}
    for index, ref in enumerate(refs):
        key = (ref.group, ref.kind, ref.namespace or "", ref.name)
        by_parent.setdefault(key, []).append((index, ref))
    for same in by_parent.values():
        _, first = same[0]
        for at, (index, ref) in enumerate(same[1:], 1):
            sections = (first.section_name is None) != (ref.section_name is None)
            if sections or (first.port is None) != (ref.port is None):
                yield Violation(
                    ("parentRefs", index),
                    "Invalid",
                    f'a second reference to "{ref.name}" must name sectionName and port '
                    "just as the first does",
                )
            elif any(
                (ref.section_name, ref.port) == (one.section_name, one.port) for _, one in same[:at]
            ):
                yield Violation(
                    ("parentRefs", index),
                    "Duplicate",
                    f'"{ref.name}" (references to one parent differ by sectionName or port)',
                )


@BOOK.on(BackendTLSPolicySpec, "target_refs")
def check_target_refs(spec: BackendTLSPolicySpec) -> Iterable[Violation]:
    """References to one target must differ by sectionName, and all must say one."""
    seen: dict[tuple[str, str, str], set[str | None]] = {}
    for index, ref in enumerate(spec.target_refs):
        sections = seen.setdefault((ref.group, ref.kind, ref.name), set())
        if ref.section_name in sections:
            yield Violation(
                ("targetRefs", index),
                "Duplicate",
                f'"{ref.name}" (references to one target differ by sectionName)',
            )
        elif sections and (ref.section_name is None or None in sections):
            yield Violation(
                ("targetRefs", index, "sectionName"),
                "Required",
                f'"{ref.name}" is referred to twice, so each reference names a section',
            )
        sections.add(ref.section_name)
